#!/usr/bin/env python3
"""The command lines of the guides run, as they stand there, on one machine.

Usage: guide_commands_test.py WEFT WEFT_PERF

Other machines' addresses are loopback's, folders and files that a reader has are made, and work is
made small. A command that listens serves those of the same page that name --peer. Measurements end
where their command line is accepted: before a table that can't be written. Needs what the guides
need: a line about a GPU, Graphviz or an installed NIXL may fail where there is none, but its command
line may not be wrong.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import check_pages  # noqa: E402
import pages  # noqa: E402
from programs import PATIENCE, Program  # noqa: E402

WRONG_COMMAND_LINE = 2
SMALL = {"--tokens": "32", "--requests": "1"}
QUICK = ["--time", "0.01", "--warm-up", "0", "--repeats", "1"]
NOT_HERE = "none/of/these"
# A mixture of experts that all ranks of the guides can share.
CONFIG = {"model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 2, "head_dim": 8,
          "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 256,
          "num_experts": 128, "num_experts_per_tok": 2, "moe_intermediate_size": 8}


class Guide:
    """Runs lines of one page in a folder; those that listen go on until its end."""

    def __init__(self, programs, folder, stack):
        self.programs = {name: Program(path) for name, path in programs.items()}
        self.folder, self.stack, self.listening = folder, stack, {}

    def here(self, words):
        """The words as this machine can take them."""
        renamed = {"/nvme/pages": "served", "file:/nvme/pages": "file:pages.bin", "~/venv": "venv",
                   "raw:4": "raw:1"}  # which needs a core for each endpoint
        words = [renamed.get(word, word) for word in words]
        for at, word in enumerate(words[:-1], 1):
            if word in SMALL:
                words[at] = SMALL[word]
            elif word == "--listen":
                words[at] = "127.0.0.1:0"
        return words

    def run(self, words):
        """Why the line is wrong; empty if it is right."""
        program, words = words[0], self.here(words[1:])
        if "--listen" in words or words[:1] == ["serve"]:
            return self.listen(program, words)
        measures = program == "weft-perf" and words[0] != "plan"
        if measures:
            if "--json" not in words:
                words += ["--json", ""]
            words[words.index("--json") + 1] = NOT_HERE
        elif "--peer" in words:
            words[words.index("--peer") + 1] = self.peer(words)
        if words[0] in ("demo", "prefill"):
            words += [word for each in SMALL.items() if each[0] not in words for word in each]
        ended = subprocess.run([self.programs[program].path, *words], capture_output=True,
                               text=True, cwd=self.folder, timeout=PATIENCE, check=False)
        return self.complaint(words, ended.returncode, ended.stderr, measures)

    @staticmethod
    def complaint(words, code, said, measures):
        if measures:
            return "" if code == 1 and NOT_HERE in said else f"exit code {code}: {said}"
        lacks_something = any(word in " ".join(words) for word in ("gpu:", "nixl", "--svg"))
        allowed = code != WRONG_COMMAND_LINE if lacks_something else code == 0
        return "" if allowed else f"exit code {code}: {said}"

    def listen(self, program, words):
        process, address = self.stack.enter_context(
            self.programs[program].listening(*words, cwd=self.folder))
        self.listening[words[0]] = address
        return "" if address else f"it does not listen: {process.communicate()[1]}"

    def peer(self, words):
        """Who listens for such a command on this page; else a decode."""
        wanted = {"fetch": "serve"}.get(words[0], "decode")
        if wanted not in self.listening:
            self.listen("weft", [wanted, "--listen", "127.0.0.1:0"])
        address = self.listening[wanted]
        if words[0] == "prefill":
            del self.listening[wanted]  # Decode ends after one.
        return address


def furnish(folder, weft, weft_perf):
    """What a reader of the guides has."""
    os.makedirs(os.path.join(folder, "served", "layer0"))
    for name, size in (("served/layer0/pages", 4096), ("weft.secret", 32), ("pages.bin", 4096)):
        descriptor = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(b"x" * size)
    with open(os.path.join(folder, "config.json"), "w", encoding="ascii") as file:
        json.dump(CONFIG, file)
    for name in ("machine.xml", "A.xml", "B.xml"):
        subprocess.run([weft, "topo", "--capture", name], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, timeout=PATIENCE)
    for name in ("fabric.json", "old.json"):
        subprocess.run([weft_perf, "--local", "--size", "4K,1M", *QUICK, "--json", name],
                       cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)


def main():
    programs = dict(zip(("weft", "weft-perf"), map(os.path.abspath, sys.argv[1:3])))
    done, wrong = set(), []
    with tempfile.TemporaryDirectory() as folder:
        furnish(folder, *programs.values())
        for path in pages.find(check_pages.ROOT):
            with contextlib.ExitStack() as stack:
                guide = Guide(programs, folder, stack)
                text = (check_pages.ROOT / path).read_text()
                for number, words in check_pages.commands(text):
                    line = " ".join(words)
                    known = line in done and "--listen" not in words
                    if words[0] not in programs or len(words) < 2 or known:
                        continue
                    done.add(line)
                    complaint = guide.run(words)
                    if complaint:
                        wrong.append(f"{path}:{number}: {line}: {complaint.strip()}")
    print("\n".join(wrong) if wrong else f"{len(done)} command lines are right")
    return 1 if wrong or not done else 0


if __name__ == "__main__":
    sys.exit(main())
