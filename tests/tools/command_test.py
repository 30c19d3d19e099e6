"""The weft command from outside: real processes, their output, exit codes and ends.

Usage: command_test.py WEFT MACHINES [--part N/OF] [unittest arguments]

MACHINES prints the machine of a name as XML.
"""

import contextlib
import ctypes
import html
import json
import os
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from programs import PATIENCE, Program, children_of, is_running, part_of_tests  # noqa: E402

WEFT = sys.argv.pop(1)
MACHINES = sys.argv.pop(1)
load_tests = part_of_tests()
SMALL = ["--model", "gpt-oss-20b", "--tokens", "100", "--requests", "3"]
WORK = ["--tokens", "50", "--requests", "2", "--concurrency", "1"]
# Nemotron-H's kind: attention, and states that tensor parallelism cuts along their rows.
HYBRID = ["--model", "Nemotron-3-Nano", *WORK, "--decode-tp-size", "2", "--decode-tp-rank", "1",
          "--decode-placement", "fused", "--decode-block-tokens", "32"]
# Latents and pages of an indexer, from the second of two stages.
STAGE = ["--model", "DeepSeek-V3.2", *WORK, "--pp-size", "2", "--pp-rank", "1", "--block-tokens",
         "64"]
PROGRAM = Program(WEFT)
weft, started = PROGRAM.run, PROGRAM.started


def decode(*arguments):
    """A decode process that listens, and its address."""
    return PROGRAM.listening("decode", *arguments)


def secret_file(folder, text):
    path = os.path.join(folder, text)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write(text * 8 + "\n")
    return path


def shared_memory_of(*pids):
    names = os.listdir("/dev/shm")
    return [name for name in names if any(re.match(rf"weft-\d+-{pid}-", name) for pid in pids)]


def reap_orphans():
    """Children of children become children of this process, where no init takes them."""
    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


class Case(unittest.TestCase):
    def one_sentence(self, text):
        lines = [line for line in text.splitlines() if line]
        self.assertEqual(len(lines), 1, text)
        self.assertRegex(lines[0], r"^weft[a-z ]*: .")

    def fails(self, result, code, pattern):
        self.assertEqual(result.returncode, code, result.stderr + result.stdout)
        self.one_sentence(result.stderr)
        self.assertRegex(result.stderr, pattern)


class Demo(Case):
    def hands_over(self, *arguments):
        result = weft("demo", "--json", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        report = json.loads(result.stdout)
        for side in ("prefill", "decode"):
            self.assertTrue(report[side]["ok"])
            self.assertEqual(report[side]["bytes_wrong"], 0)
            self.assertGreater(report[side]["bytes_checked"], report[side]["bytes"])
            self.assertEqual(sum(rail["bytes"] for rail in report[side]["rails"]),
                             report[side]["bytes"])
        return report["decode"]

    def test_shm(self):
        report = self.hands_over(*SMALL, "--providers", "shm")
        self.assertEqual(report["path"], "shm, one-sided")
        self.assertEqual(report["bytes"], 3 * 100 * 24 * 2 * 8 * 64 * 2)

    def test_tcp(self):
        self.assertEqual(self.hands_over(*SMALL, "--providers", "tcp")["path"], "tcp, one-sided")

    def test_bounce(self):
        report = self.hands_over(*SMALL, "--transport", "bounce")
        self.assertEqual(report["path"], "shm, bounce")

    def explained(self, *arguments):
        result = weft("demo", "--explain", "--json", *SMALL, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        report = json.loads(result.stdout)
        self.assertNotIn("explained", report["decode"])
        return report["prefill"]["bytes"], report["prefill"]["explained"]

    def test_explained_over_shm(self):
        size, explained = self.explained("--providers", "shm")
        hop, = explained["hops"]
        self.assertEqual((hop["by"], hop["side"], hop["known"]), ("cpu", "here", "counted"))
        self.assertEqual((hop["declared"], hop["ledger"]), (size, size))
        self.assertEqual(explained["copies_in_ledger"], 1)
        self.assertEqual(explained["differences"], [])
        self.assertTrue(set(explained["rails_used"]) <= set(explained["rails_declared"]))

    def test_explained_bounce(self):
        size, explained = self.explained("--transport", "bounce", "--providers", "tcp")
        self.assertEqual([(hop["by"], hop["side"], hop["known"]) for hop in explained["hops"][:4]],
                         [("cpu", "here", "counted"), ("kernel", "here", "declared"),
                          ("kernel", "at the peer", "declared"), ("cpu", "at the peer", "declared")])
        self.assertTrue(all(hop["declared"] == hop["ledger"] == size
                            for hop in explained["hops"][:4]))
        # What the provider bounces nobody counts.
        self.assertEqual({hop["known"] for hop in explained["hops"][4:]}, {"unknown"})
        self.assertTrue(all("below" in each for each in explained["differences"]))

    def test_explained_text(self):
        result = weft("demo", "--explain", *SMALL, "--providers", "shm")
        self.assertEqual(result.returncode, 0, result.stderr)
        for word in ("declared, and carried: write over shm: 1 copy of each byte",
                     "the peer's host memory", "1.00 declared, 1.00 in the ledger", "queued",
                     "none: the ledger has each copy that the path declares"):
            self.assertIn(word, result.stdout)

    def test_memory_of_its_own(self):
        result = weft("demo", "--json", *SMALL, "--memory", "host", "--decode-memory", "shared")
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        report = json.loads(result.stdout)
        self.assertEqual([report[side]["memory"] for side in ("prefill", "decode")],
                         ["host", "shared"])
        self.assertEqual(report["decode"]["bytes_wrong"], 0)

    def test_hybrid_to_one_of_two_ranks(self):
        """Half of the heads and of each row of the convolutions, in a layout of another server."""
        state = 23 * ((64 * 64 + 2 * 8 * 128) * 3 * 2 + 64 * 64 * 128 * 4) // 2
        report = self.hands_over(*HYBRID)
        self.assertEqual(report["bytes"], 2 * (50 * 6 * 2 * 128 * 2 + state))

    def test_indexer_of_the_second_stage(self):
        report = self.hands_over(*STAGE)
        self.assertEqual(report["bytes"], 2 * 50 * 30 * (576 * 2 + 132))

    def test_other_layouts_on_the_two_sides(self):
        self.hands_over(*SMALL, "--block-tokens", "64", "--head-order", "hnd",
                        "--decode-head-order", "nhd", "--decode-placement", "fused")

    def test_blocks_are_used_again(self):
        # Room for one request at a time, so that each of ten meets what the one before left.
        self.hands_over("--model", "gpt-oss-20b", "--tokens", "60", "--requests", "10",
                        "--concurrency", "4", "--blocks", "4", "--decode-blocks", "5")

    def test_one_layer_group_for_each_layer(self):
        self.assertEqual(self.hands_over(*SMALL, "--layer-groups", "1000")["layer_groups"], 24)

    def test_tables(self):
        result = weft("demo", *SMALL)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        for word in ("weft prefill:", "weft decode:", "time to first layers", "GB/s", "operations",
                     "rails", "every byte right"):
            self.assertIn(word, result.stdout)

    def test_progress_bar(self):
        arguments = ["demo", "--model", "llama-3.1-8b", "--tokens", "256", "--requests", "24"]
        self.assertEqual(weft(*arguments, "--progress", "auto").stderr, "")
        self.assertIn("GB/s", weft(*arguments, "--progress", "always").stderr)

    def test_failure_of_one_side_is_told_once(self):
        self.fails(weft("demo", *SMALL, "--blocks", "3"), 1, "needs 7 blocks and the cache has 3")
        self.fails(weft("demo", *SMALL, "--decode-blocks", "3"), 1, "decode's cache has 3")

    def test_too_little_memory(self):
        self.fails(weft("demo", "--model", "llama-3.1-405b", "--tokens", "10000000"), 1,
                   "takes .* and the machine has .* free")

    def interrupted(self, number, code):
        with started("demo", "--model", "llama-3.1-8b", "--tokens", "64", "--requests", "1000000",
                     "--progress", "always") as process:
            process.stderr.read(1)  # The bar: both sides are at work.
            children = children_of(process.pid)
            self.assertEqual(len(children), 2)
            process.send_signal(number)
            self.assertEqual(process.wait(PATIENCE), code)
            self.assertFalse(any(is_running(child) for child in children))
            self.assertEqual(shared_memory_of(*children), [])

    def test_interrupt(self):
        self.interrupted(signal.SIGINT, 130)

    def test_terminate(self):
        self.interrupted(signal.SIGTERM, 143)

    def test_interrupt_while_memory_is_filled(self):
        """Filling and checking gigabytes take seconds, and more beside load: Ctrl-C ends them."""
        for waits in (0.3, 1, 2):
            with started("demo", "--model", "llama-3.1-70b", "--tokens", "8K", "--requests", "8",
                         "--concurrency", "1") as process:
                time.sleep(waits)
                process.send_signal(signal.SIGINT)
                begin = time.monotonic()
                self.assertEqual(process.wait(PATIENCE), 130)
                # Killed children would have had five seconds to obey.
                self.assertLess(time.monotonic() - begin, 4)

    def test_interrupt_while_blocks_are_waited_for(self):
        with decode("--providers", "shm") as (other, address):
            with started("prefill", "--peer", address, "--model", "llama-3.1-8b", "--tokens", "64",
                         "--requests", "1000000", "--concurrency", "4", "--blocks", "4",
                         "--progress", "always") as prefill:
                prefill.stderr.read(1)
                prefill.send_signal(signal.SIGINT)
                begin = time.monotonic()
                self.assertEqual(prefill.wait(PATIENCE), 130)
                self.assertLess(time.monotonic() - begin, 4)
            self.assertEqual(other.wait(PATIENCE), 1)

    def test_killed_child_ends_it(self):
        for victim in (0, 1):
            with started("demo", "--model", "llama-3.1-8b", "--tokens", "64", "--requests",
                         "1000000", "--providers", "tcp", "--progress", "always") as process:
                process.stderr.read(1)
                children = children_of(process.pid)
                os.kill(children[victim], signal.SIGKILL)
                self.assertEqual(process.wait(PATIENCE), 1)
                self.assertRegex(process.stderr.read(), "was killed by signal 9")
                self.assertFalse(any(is_running(child) for child in children))

    def test_killed_parent_takes_its_children_along(self):
        reap_orphans()
        with started("demo", "--model", "llama-3.1-8b", "--tokens", "64", "--requests", "1000000",
                     "--progress", "always") as process:
            process.stderr.read(1)
            children = children_of(process.pid)
            watched = [os.pidfd_open(child) for child in children]
            process.kill()
            for descriptor in watched:
                self.wait_readable(descriptor)
                os.close(descriptor)
            for child in children:
                os.waitpid(child, 0)
        # What they could not remove, the next run does.
        weft("info")
        self.assertEqual(shared_memory_of(*children), [])

    def wait_readable(self, descriptor):
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        self.assertTrue(poller.poll(1000 * PATIENCE), "a child outlives its parent")


class Pair(Case):
    def test_two_processes(self):
        with decode("--json") as (other, address):
            result = weft("prefill", "--peer", address, *SMALL)
            self.assertEqual(result.returncode, 0, result.stderr)
            output, _ = other.communicate(timeout=PATIENCE)
        self.assertEqual(other.returncode, 0)
        self.assertTrue(json.loads(output)["ok"])

    def test_metrics(self):
        with decode("--metrics", "127.0.0.1:0") as (process, _):
            told = re.fullmatch(r"weft decode: metrics at (\S+)\n", process.stderr.readline())
            with urllib.request.urlopen(f"http://{told[1]}/metrics", timeout=PATIENCE) as response:
                self.assertEqual(response.headers.get_content_type(), "text/plain")
                self.assertIn("\nweft_peers_up 0\n", response.read().decode())
            with urllib.request.urlopen(f"http://{told[1]}/snapshot", timeout=PATIENCE) as response:
                self.assertEqual(json.load(response)["slowest_transfers"], [])
            self.fails(weft("decode", "--metrics", told[1]), 1, "the port is in use already")

    def test_secrets(self):
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = secret_file(folder, "ours"), secret_file(folder, "theirs")
            with decode("--secret-file", ours) as (other, address):
                for wrong, pattern in ((["--secret-file", theirs], "another secret"),
                                       ([], "asks for a secret")):
                    self.fails(weft("prefill", "--peer", address, *SMALL, *wrong), 1, pattern)
                result = weft("prefill", "--peer", address, *SMALL, "--secret-file", ours)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(other.wait(PATIENCE), 0)
            result = weft("demo", *SMALL, "--secret-file", ours)
            self.assertEqual(result.returncode, 0, result.stderr)
            result = weft("info", "--secret-file", ours)
            self.assertIn(ours, result.stdout)
            self.assertNotIn("ours" * 8, result.stdout)
            os.chmod(ours, 0o644)
            self.fails(weft("info", "--secret-file", ours, "--json"), 1, "by everybody")

    def test_ranks_of_other_sizes(self):
        with decode("--tp-size", "2", "--tp-rank", "1") as (other, address):
            result = weft("prefill", "--peer", address, *SMALL, "--tp-size", "4", "--tp-rank", "2",
                          "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(other.wait(PATIENCE), 0)
        self.assertEqual(json.loads(result.stdout)["bytes"], 3 * 100 * 24 * 2 * 2 * 64 * 2)

    def test_ranks_beyond_a_host(self):
        """16 ranks have two replicas of each head; a replica of attention is a name."""
        with decode("--tp-size", "16", "--tp-rank", "13", "--dp-size", "4", "--dp-rank", "2") as (
                other, address):
            result = weft("prefill", "--peer", address, *SMALL, "--tp-size", "16", "--tp-rank",
                          "13", "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(other.wait(PATIENCE), 0)
        self.assertEqual(json.loads(result.stdout)["bytes"], 3 * 100 * 24 * 2 * 64 * 2)

    def refused(self, decode_arguments, prefill_arguments, pattern):
        with decode(*decode_arguments) as (other, address):
            self.fails(weft("prefill", "--peer", address, *SMALL, *prefill_arguments), 1, pattern)
            _, errors = other.communicate(timeout=PATIENCE)
        self.assertEqual(other.returncode, 1)
        self.one_sentence(errors)
        self.assertRegex(errors, pattern)

    def test_other_model(self):
        self.refused(["--model", "qwen3-8b"], [], "serves Qwen3-8B and prefill GPT-OSS-20B")

    def test_other_element_type(self):
        self.refused(["--dtype", "fp8"], [], "holds fp8 and prefill's bf16")

    def test_ranks_with_nothing_to_exchange(self):
        self.refused(["--tp-size", "2", "--tp-rank", "1"], ["--tp-size", "2"], "has nothing for")
        self.refused(["--pp-size", "3", "--pp-rank", "2"], ["--pp-size", "2"], "has nothing for")

    def ended(self, victim_is_decode, number, own_code, provider):
        common = ["--providers", provider, "--progress", "always", "--timeout", "10"]
        work = ["--model", "llama-3.1-8b", "--tokens", "64", "--requests", "1000000"]
        with decode(*common) as (other, address):
            with started("prefill", "--peer", address, *common, *work) as prefill:
                prefill.stderr.read(1)
                other.stderr.read(1)
                victim, survivor = (other, prefill) if victim_is_decode else (prefill, other)
                victim.send_signal(number)
                begin = time.monotonic()
                _, errors = survivor.communicate(timeout=PATIENCE)
                self.assertLess(time.monotonic() - begin, 30)
                self.assertEqual(survivor.returncode, 1)
                self.assertRegex(errors, r"weft (prefill|decode): .*(goodbye|ended|went down|gone)")
                victim.communicate(timeout=PATIENCE)
                self.assertEqual(victim.returncode, own_code)
                ids = (victim.pid, survivor.pid)
        weft("info")
        self.assertEqual(shared_memory_of(*ids), [])

    def test_killed_decode(self):
        self.ended(True, signal.SIGKILL, -signal.SIGKILL, "tcp")

    def test_killed_prefill_over_shm(self):
        self.ended(False, signal.SIGKILL, -signal.SIGKILL, "shm")

    def test_interrupted_decode(self):
        self.ended(True, signal.SIGINT, 130, "shm")

    def test_terminated_prefill(self):
        self.ended(False, signal.SIGTERM, 143, "shm")

    def test_interrupted_while_nobody_comes(self):
        with decode() as (process, _):
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 130)
            self.one_sentence(errors)

    def test_nobody_comes(self):
        self.fails(weft("decode", "--timeout", "0.2"), 1, "nobody connected in time")


class Mistakes(Case):
    def test_usage(self):
        self.fails(weft(), 2, "required")
        self.fails(weft("bogus"), 2, "no command 'bogus'")
        self.fails(weft("prefill", "--peer", "127.0.0.1:1"), 2, "--model")
        self.fails(weft("demo", "--dtype", "fp4"), 2, "'fp4' is none of bf16, fp8")
        self.fails(weft("demo", "--tokens", "-1"), 2, "--tokens")
        self.fails(weft("demo", "--unknown"), 2, "--unknown")
        self.fails(weft("demo", "--tokns", "5"), 2, "'--tokns'; did you mean '--tokens'")
        self.fails(weft("prefill", "--peeer", "x"), 2, "'--peeer'; did you mean '--peer'")
        self.fails(weft("dmeo"), 2, "'dmeo'; did you mean 'demo'")

    def test_ranks_that_can_not_be(self):
        """At once, and not after a minute in which nobody connects."""
        self.fails(weft("decode", "--tp-size", "2", "--tp-rank", "5"), 2, "5 is no rank of")
        for command in (["decode"], ["prefill", "--peer", "127.0.0.1:1"]):
            self.fails(weft(*command, "--model", "gpt-oss-20b", "--tp-size", "3"), 2,
                       "3 ranks can't share the 8 heads")

    def test_what_a_model_keeps(self):
        result = weft("kv", "Nemotron-3-Nano", "--tp-size", "2", "--tp-rank", "1", "--peer-pp-size",
                      "2", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        shown = json.loads(result.stdout)
        self.assertEqual(shown["bytes_per_token"], 6 * 2 * 2 * 128 * 2)
        self.assertEqual(shown["rank"]["bytes_per_token"], 6 * 2 * 128 * 2)
        self.assertEqual(shown["rank"]["written_by"], [{"pp": 0, "tp": 0}, {"pp": 1, "tp": 0}])
        text = weft("kv", "DeepSeek-V3.2", "--server", "sglang", "--block-tokens", "64").stdout
        for word in ("61 layers: 0-60", "latent", "index_scales", "written by rank 0 of stage 0"):
            self.assertIn(word, text)

    def test_a_config_json(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "config.json")
            with open(path, "w", encoding="ascii") as file:
                json.dump({"model_type": "llama", "num_hidden_layers": 2, "head_dim": 8,
                           "num_key_value_heads": 4}, file)
            shown = json.loads(weft("kv", path, "--json").stdout)
            self.assertEqual(shown["bytes_per_token"], 2 * 2 * 4 * 8 * 2)
            with open(path, "w", encoding="ascii") as file:
                json.dump({"model_type": "llama", "sliding_window": 8}, file)
            self.fails(weft("kv", path), 1, "is missing")
        self.fails(weft("kv", "no-such-model"), 1, "No model")
        self.fails(weft("kv", "/no/such/config.json"), 1, "config.json' can't be read: No such file")
        self.fails(weft("kv", "/tmp"), 1, "'/tmp' can't be read: Is a directory")
        self.fails(weft("kv", "GPT-OSS-20B", "--tp-size", "3"), 1, "3 ranks can't share")
        self.fails(weft("kv", "GPT-OSS-20B", "--pp-rank", "1"), 2, "1 is no rank of --pp-size 1")

    def test_weights_of_a_config_json(self):
        with tempfile.TemporaryDirectory() as folder:
            config, result = os.path.join(folder, "config.json"), os.path.join(folder, "perf.json")
            with open(config, "w") as file:
                json.dump({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
                           "num_hidden_layers": 2, "num_attention_heads": 4,
                           "num_key_value_heads": 2, "vocab_size": 100}, file)
            with open(result, "w") as file:
                json.dump({"format": "weft-perf",
                           "points": [{"gigabytes_per_second": {"median": 2.5}}]}, file)
            plan = ["weights", "plan", "--config", config, "--trainers", "fsdp=3", "--ranks",
                    "tp=2,replicas=2"]
            shown = json.loads(weft(*plan, "--fan-out", "chain", "--json").stdout)
            self.assertEqual((shown["fan_out"], shown["hops"]), ("chain", 4))
            self.assertEqual(sum(pair["bytes"] for pair in shown["pairs"]), shown["bytes"])
            self.assertEqual([rank["name"] for rank in shown["trainers"]],
                             ["trainer0", "trainer1", "trainer2"])
            self.assertEqual(shown["trainers"][0]["gbps"], 100)
            shown = json.loads(weft(*plan, "--result", result, "--nics", "2", "--json").stdout)
            self.assertEqual(shown["ranks"][3]["gbps"], 10)
            text = weft(*plan, "--gbps", "25").stdout
            self.assertIn("4 x 25 Gb/s", text)
            self.assertRegex(text, r"trainer2 +-> rank3 ")
            self.fails(weft(*plan, "--result", config), 1, "no results of weft-perf")
            self.fails(weft(*plan[:-1], "tp=3"), 1, "can't be dealt out to tp=3")
            self.fails(weft(*plan[:-1], "xp=3"), 2, "xp=3")

    def test_weights_of_files(self):
        with tempfile.TemporaryDirectory() as folder:
            shard = {"name": "w", "dtype": "float32", "shape": [4, 8]}
            half = [{**shard, "begin": [row, 0], "extent": [2, 8]} for row in (0, 2)]
            paths = []
            for side, shards in (("publishers", half[0]), ("publishers", half[1]),
                                 ("subscribers", shard)):
                paths.append(os.path.join(folder, f"{len(paths)}.json"))
                with open(paths[-1], "w") as file:
                    json.dump({side: [{"name": f"rank{len(paths)}", "shards": [shards]}]}, file)
            shown = json.loads(weft("weights", "plan", *paths, "--json").stdout)
            self.assertEqual([(pair["from"], pair["bytes"]) for pair in shown["pairs"]],
                             [("rank1", 64), ("rank2", 64)])
            self.fails(weft("weights", "plan", paths[0], paths[2]), 1, "rank3: tensor w")
            with open(paths[0], "w") as file:
                file.write("{]")
            self.fails(weft("weights", "plan", *paths), 1, "0.json")
            self.fails(weft("weights", "plan", "no-such-file"), 1, "can't be read")
            self.fails(weft("weights", "plan"), 2, "FILE")

    def test_memory_that_is_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            # The loader finds this one, which is none.
            with open(os.path.join(folder, "libcuda.so.1"), "wb"):
                pass
            path = os.pathsep.join([folder, os.environ.get("LD_LIBRARY_PATH", "")])
            environment = os.environ | {"LD_LIBRARY_PATH": path.rstrip(os.pathsep)}
            for command in (["decode"], ["prefill", "--peer", "127.0.0.1:1", *SMALL], ["demo"]):
                self.fails(weft(*command, "--memory", "gpu:0", env=environment), 2,
                           f"weft {command[0]}: --memory: there is no CUDA driver: ")
            self.fails(weft("demo", "--decode-memory", "gpu:0", env=environment), 2,
                       "weft demo: --decode-memory: there is no CUDA driver: ")
        for memory in ("disk", "gpu", "gpu:x", "node:-1"):
            self.fails(weft("decode", "--memory", memory), 2,
                       f"'{memory}' is no memory: it is host, shared, node:N or gpu:N")

    def test_messages_name_options(self):
        self.fails(weft("decode", "--listen", "0.0.0.0:0", "--allow-unauthenticated-network"), 2,
                   "--listen .* needs --advertise")

    def test_unknown_model_lists_the_known(self):
        for command in (["prefill", "--peer", "127.0.0.1:1"], ["decode"], ["demo"]):
            self.fails(weft(*command, "--model", "llama-4"), 2, "Llama-3.1-8B.*DeepSeek-V3")

    def test_errors_as_json(self):
        for arguments, code in ((["demo", "--model", "x"], 2),
                                (["prefill", "--peer", "127.0.0.1:1", "--model", "qwen3-8b"], 1)):
            result = weft(*arguments, "--json")
            self.assertEqual(result.returncode, code)
            self.assertTrue(json.loads(result.stdout)["error"])

    def test_quiet_says_it_once(self):
        result = weft("prefill", "--peer", "127.0.0.1:1", "--model", "qwen3-8b", "--json", "--quiet")
        self.assertEqual(result.stderr, "")
        self.assertTrue(json.loads(result.stdout)["error"])

    def prefill(self, address, *more):
        return weft("prefill", "--peer", address, "--model", "qwen3-8b", *more)

    def test_wrong_addresses(self):
        self.fails(self.prefill("nowhere.invalid:7000"), 1, "nowhere.invalid")
        self.fails(self.prefill("127.0.0.1"), 1, "port")
        self.fails(self.prefill("127.0.0.1:x"), 1, "port|'127.0.0.1:x'")
        self.fails(weft("decode", "--listen", "nowhere.invalid:0"), 1, "nowhere.invalid")

    def test_closed_port(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        self.fails(self.prefill(f"127.0.0.1:{port}"), 1, "nothing listens")

    def test_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            self.fails(weft("decode", "--listen", f"127.0.0.1:{port}"), 1, "in use")

    def test_listening_to_the_world_has_to_be_said(self):
        self.fails(weft("decode", "--listen", "192.0.2.1:0"), 1, "anybody|authenticat")

    def test_http_server(self):
        with self.server(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n") as port:
            self.fails(self.prefill(f"127.0.0.1:{port}"), 1, "does not speak Weft's protocol")

    def test_other_version(self):
        with self.server(b"WEFT\xe7\x03\xe7\x03\r\n\r\n") as port:
            self.fails(self.prefill(f"127.0.0.1:{port}"), 1, "version")

    def test_silent_server(self):
        with self.server(b"") as port:
            self.fails(self.prefill(f"127.0.0.1:{port}", "--timeout", "0.5"), 1, "deadline|time")

    @contextlib.contextmanager
    def server(self, answer):
        """Accepts one connection and says `answer` to the first bytes it gets."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def serve():
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1000)
                    connection.sendall(answer)
                    while connection.recv(1000):
                        pass
            thread = threading.Thread(target=serve)
            thread.start()
            yield listener.getsockname()[1]
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive())

    def test_an_option_twice(self):
        self.fails(weft("kv", "GPT-OSS-20B", "--tokens", "1", "--tokens", "2"), 2,
                   "--tokens is given more than once")

    def test_a_port_alone(self):
        self.fails(weft("decode", "--listen", "7045"), 2, "has no host: write 127.0.0.1:7045")

    def test_nobody_is_let_in_unasked(self):
        result = weft("decode", "--listen", "192.0.2.1:0")
        self.fails(result, 1, "--secret-file .* --allow-unauthenticated-network")

    def test_unknown_provider(self):
        self.fails(weft("demo", "--providers", "pigeon"), 1, "no provider 'pigeon'")


class Info(Case):
    @unittest.skipUnless(os.path.exists("/dev/full"), "nothing that is always full")
    def test_standard_output_that_is_full(self):
        for arguments in (["info"], ["info", "--json"], ["--help"], ["--version"], ["info", "-h"],
                          ["help", "info"], ["topo", "--capture", "-"]):
            with open("/dev/full", "w", encoding="ascii") as full:
                result = subprocess.run([WEFT, *arguments], stdout=full, stderr=subprocess.PIPE,
                                        text=True, timeout=PATIENCE, check=False)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("No space left on device", result.stderr)

    def test_standard_descriptors_that_are_closed(self):
        for how, command, code in (("2>&-", ["bogus"], 2), ("2>&-", ["prefill"], 2),
                                   ("2>&-", ["kv", "no-such-model"], 1), (">&- 2>&-", ["info"], 1),
                                   ("<&-", ["info"], 0), (">&-", ["--help"], 1)):
            result = subprocess.run(["sh", "-c", f'exec "$@" {how}', "sh", WEFT, *command],
                                    capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(result.returncode, code, (how, command, result.stderr))
        self.fails(subprocess.run(["sh", "-c", f'exec "$@" >&-', "sh", WEFT, "info"],
                                  capture_output=True, text=True, timeout=PATIENCE), 1,
                   "standard output: Bad file descriptor")

    def test_text(self):
        result = weft("info")
        self.assertEqual(result.returncode, 0, result.stderr)
        for word in ("libfabric", "used", "not used", "shm:0", "tcp:0", "all have their defaults"):
            self.assertIn(word, result.stdout)
        self.assertEqual(len(re.findall(r"shm:0", result.stdout)), 1, "a line for each rail")
        self.assertNotIn("keys_enforced", result.stdout)

        self.assertRegex(result.stdout, r"\nlibfabric: /\S*libfabric\S* +\(")

    def test_libfabric_that_is_named_and_can_not_be_loaded(self):
        environment = os.environ | {"WEFT_LIBFABRIC": "/no/such/libfabric.so"}
        result = weft("info", env=environment)
        self.assertEqual(result.returncode, 1)
        self.assertIn("WEFT_LIBFABRIC names", result.stderr)
        self.assertIn("/no/such/libfabric.so", result.stderr)
        result = weft("info", "--providers", "shm", env=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("libfabric not in use", result.stdout)

    def test_verbose(self):
        result = weft("info", "--verbose")
        self.assertEqual(result.returncode, 0, result.stderr)
        for word in ("Rail shm:0", "Rail tcp:0", "keys_enforced", "death_after", "FI_MR_CACHE_MONITOR"):
            self.assertIn(word, result.stdout)

    def test_process(self):
        others = {name: value for name, value in os.environ.items() if not name.startswith("FI_")}
        result = weft("info", "--json", env={**others, "FI_MR_CACHE_MONITOR": "memhooks"})
        process = json.loads(result.stdout)["process"]
        libfabric = process["libfabric"]
        self.assertIn("libfabric", libfabric["file"])
        self.assertRegex(libfabric["version"], r"^\d+\.\d+$")
        self.assertTrue(libfabric["found"])
        self.assertEqual((libfabric["problem"], libfabric["others"]), ("", []))
        found = {each["name"]: (each["value"], each["set"]) for each in process["variables"]}
        self.assertEqual(found["FI_MR_CACHE_MONITOR"], ("memhooks", "set before"))
        self.assertEqual(found["FI_EFA_FORK_SAFE"], ("1", "set by prepare_process()"))

    def test_json(self):
        result = weft("info", "--json", "--providers", "tcp", "--rails", "3")
        report = json.loads(result.stdout)
        self.assertEqual([rail["name"] for rail in report["rails"]], ["tcp:0", "tcp:1", "tcp:2"])
        self.assertTrue(all("proof" in rail["capability"] for rail in report["rails"]))
        self.assertTrue(all(each["reason"] for each in report["candidates"]))
        self.assertEqual(report["nic_counters"], [], "tcp has no RDMA NIC below it")

    def test_provider_by_the_name_that_libfabric_has_for_it(self):
        result = weft("info", "--json", "--providers", "tcp;ofi_rxm")
        report = json.loads(result.stdout)
        self.assertEqual({rail["capability"]["provider"] for rail in report["rails"]},
                         {"tcp;ofi_rxm"})
        reasons = {each["provider"]: each["reason"] for each in report["candidates"]}
        self.assertIn("not among", reasons["tcp (net)"])

    def test_help(self):
        for arguments in ([], ["info"], ["topo"], ["explain"], ["decode"], ["prefill"], ["demo"],
                          ["serve"], ["fetch"], ["nixl"]):
            result = weft(*arguments, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertIn("Exit codes:", result.stdout)
            self.assertIn("Examples:", result.stdout)


class Help(Case):
    COMMANDS = ("info", "topo", "explain", "decode", "prefill", "demo", "serve", "fetch",
                "nixl")

    def test_command(self):
        self.assertEqual(weft("help").stdout, weft("--help").stdout)
        for command in self.COMMANDS:
            result = weft("help", command)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(result.stdout, weft(command, "--help").stdout)
        self.fails(weft("help", "dmeo"), 2, "did you mean 'demo'")

    def test_lines_fit(self):
        for arguments in ([], *([command] for command in self.COMMANDS)):
            for columns, longest in (("80", 80), ("100", 100), ("300", 100)):
                result = self.wide(columns, "help", *arguments)
                self.assertLessEqual(max(map(len, result.splitlines())), longest, arguments)

    def test_lines_of_tables_fit(self):
        for arguments in (["info"], ["info", "--verbose"], ["topo"], ["explain"],
                          ["explain", "--providers", "tcp", "--policy", "max-copies=0"],
                          ["demo", "--explain", *SMALL]):
            output = self.wide("100", *arguments)
            self.assertLessEqual(max(map(len, output.splitlines())), 100, output)
        wide = self.wide("100", "info", "--wide")
        self.assertGreater(max(map(len, wide.splitlines())), 100)

    def wide(self, columns, *arguments):
        return subprocess.run([WEFT, *arguments], capture_output=True, text=True, timeout=PATIENCE,
                              env={**os.environ, "COLUMNS": columns}).stdout

    def test_figures_are_explained(self):
        output = weft("demo", "--model", "gpt-oss-20b", "--tokens", "1", "--requests", "1",
                      "--layer-groups", "1").stdout
        for word in ("1 request of 1 token", "the first of 1 layer group", "in the end the whole cache"):
            self.assertIn(word, " ".join(output.split()))

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_manual_pages(self):
        for arguments in ([], *([command] for command in self.COMMANDS)):
            page = weft("help", "--man", *arguments).stdout
            result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=page, text=True,
                                    capture_output=True, timeout=PATIENCE, check=True)
            self.assertEqual(result.stderr, "")

    def completed(self, *words):
        """What bash offers for the last of the words."""
        script = (f'source <("{WEFT}" completion bash); COMP_WORDS=("$@"); '
                  'COMP_CWORD=$(($# - 1)); _weft; printf "%s\n" "${COMPREPLY[@]}"')
        return subprocess.run(["bash", "-c", script, "bash", "weft", *words], text=True, check=True,
                              capture_output=True, timeout=PATIENCE).stdout.split()

    @unittest.skipUnless(shutil.which("bash"), "there is no bash")
    def test_completion(self):
        self.assertEqual(self.completed("de"), ["decode", "demo"])
        self.assertEqual(self.completed("demo", "--dtype", ""), ["bf16", "fp8"])
        self.assertEqual(self.completed("demo", "--tok"), ["--tokens"])
        self.assertEqual(self.completed("nixl", "un"), ["uninstall"])
        self.assertEqual(self.completed("help", "inf"), ["info"])
        self.assertEqual(self.completed("demo", "--tokens", ""), [])
        self.fails(weft("completion", "tcsh"), 2, "tcsh")

    def test_completions_of_other_shells(self):
        for shell, words in (("zsh", ["#compdef weft", "_arguments"]),
                             ("fish", ["complete -c weft", "-l providers"])):
            output = weft("completion", shell).stdout
            for word in words:
                self.assertIn(word, output)
            if shutil.which(shell):
                subprocess.run([shell, "-n"], input=output, text=True, check=True, timeout=PATIENCE)


class Explain(Case):
    def report(self, *arguments, code=0):
        result = weft("explain", "--json", *arguments)
        self.assertEqual(result.returncode, code, result.stderr + result.stdout)
        return json.loads(result.stdout)

    def test_text(self):
        result = weft("explain", "--providers", "tcp")
        self.assertEqual(result.returncode, 0, result.stderr)
        for word in ("write over tcp: 2 copies", "the kernel copies", "socket buffer", "limit"):
            self.assertIn(word, result.stdout)

    def test_two_engines_of_one_process(self):
        path = self.report("--providers", "tcp", "--direction", "read")
        self.assertEqual((path["provider"], path["direction"], path["copies"]), ("tcp", "read", 2))
        self.assertEqual(path["hops"][0]["from"]["side"], "remote")
        self.assertIsNone(path["refused"])
        path = self.report("--providers", "shm")
        self.assertEqual((path["provider"], path["copies"]), ("shm", 1))

    def test_memory_of_a_gpu_at_the_peer(self):
        path = self.report("--providers", "tcp", "--peer-memory", "gpu:1")
        self.assertEqual((path["transport"], path["copies"]), ("bounce", 4))
        self.assertEqual(path["hops"][-1]["to"]["gpu"], 1)
        self.assertTrue(any(each.startswith("GPUDirect at the peer: ")
                            for each in path["not_used"]))

    def test_a_running_decode_is_not_disturbed(self):
        with decode("--providers", "tcp", *SMALL[:2]) as (process, address):
            for _ in range(2):
                path = self.report("--providers", "tcp", "--peer", address)
                self.assertEqual((path["provider"], path["copies"]), ("tcp", 2))
            done = weft("prefill", "--providers", "tcp", "--peer", address, *SMALL)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(process.wait(PATIENCE), 0)

    def test_policies(self):
        kept = self.report("--providers", "tcp", "--policy", "max-copies=2,providers=tcp")
        self.assertIsNone(kept["refused"])
        refused = self.report("--providers", "tcp", "--policy", "forbid-cpu-copies", code=1)
        self.assertIn("the transfer's policy forbids copies by the CPU", refused["refused"])
        self.assertEqual((refused["error"], refused["code"]),
                         (refused["refused"], "policy_refused"))
        self.fails(weft("explain", "--providers", "tcp", "--policy", "max-copies=1"), 1,
                   "refused: the transfer's policy allows 1 copy of each byte")

    def test_class_of_the_config_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write('providers = ["tcp"]\n[policy.latency]\nmax_copies = 0\n')
            file.flush()
            environment = {**os.environ, "WEFT_CONFIG_FILE": file.name}
            for priority, code in (("normal", 0), ("bulk", 0), ("latency", 1)):
                result = subprocess.run([WEFT, "explain", "--priority", priority],
                                        capture_output=True, text=True, timeout=PATIENCE,
                                        env=environment)
                self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn("the policy of class latency allows no copies", result.stderr)

    @unittest.skipUnless(shutil.which("dot"), "Graphviz is not installed")
    def test_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "path.svg")
            self.assertEqual(weft("explain", "--providers", "tcp", "--svg", file).returncode, 0)
            with open(file, encoding="utf-8") as picture:
                self.assertIn("socket buffer", picture.read())

    def test_what_is_not_there(self):
        self.fails(weft("explain", "--memory", "gpu:4096"), 1, "no GPU 4096")
        self.fails(weft("explain", "--memory", "node:4096"), 1, "no NUMA node 4096")
        self.fails(weft("explain", "--peer", "127.0.0.1:1", "--timeout", "10"), 1, "127.0.0.1:1")

    def test_wrong_command_lines(self):
        self.fails(weft("explain", "--memory", "disk"), 2, "'disk' is no memory")
        self.fails(weft("explain", "--peer-memory", "gpu:x"), 2, "'gpu:x' is no memory")
        self.fails(weft("explain", "--policy", "max-copies=few"), 2, "a number of copies")
        self.fails(weft("explain", "--policy", "fast"), 2, "a policy has no 'fast'.* max-copies")


class Topo(Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def machine(self, name):
        return self.write(name + ".xml", subprocess.run([MACHINES, name], check=True,
                                                        capture_output=True).stdout)

    def report(self, *arguments):
        result = weft("topo", "--json", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        self.assertEqual(result.stderr, "")
        return json.loads(result.stdout)

    def test_this_machine(self):
        result = weft("topo")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("NUMA node", result.stdout)
        self.assertGreaterEqual(len(self.report()["numa"]), 1)

    def test_json(self):
        report = self.report("--xml", self.machine("p5"))
        self.assertEqual(list(report)[:4], ["numa", "gpus", "nics", "unplaced"])
        self.assertEqual(list(report["gpus"][0])[:4], ["pci", "name", "numa", "nics"])
        self.assertEqual(list(report["nics"][0])[:5], ["name", "pci", "numa", "gbps", "gpus"])
        self.assertEqual(list(report["numa"][0])[:5],
                         ["id", "package", "bytes", "distances", "nics"])
        self.assertEqual(len(report["gpus"]), 8)
        self.assertEqual(len(report["nics"]), 32)
        names = {nic["name"]: nic for nic in report["nics"]}
        for gpu in report["gpus"]:
            self.assertEqual(len(gpu["nics"]), 4)
            for nic in gpu["nics"]:
                self.assertEqual(names[nic]["gpus"], [gpu["pci"]])
                self.assertEqual(names[nic]["numa"], gpu["numa"])
        drives = {drive["name"]: drive for drive in report["drives"]}
        self.assertEqual(len(drives), 9)
        self.assertEqual(drives["nvme203n1"]["nics"], report["gpus"][7]["nics"])
        self.assertEqual(drives["nvme203n1"]["numa"], 1)
        for key in ("gpus", "nics", "drives"):
            addresses = [device["pci"] for device in report[key]]
            self.assertEqual(addresses, sorted(addresses))

    def test_text(self):
        result = weft("topo", "--xml", self.machine("p4d"))
        self.assertEqual(result.returncode, 0, result.stderr)
        for word in ("NUMA node 1", "root complex", "GPU 7", "rdmap16s27", "efa, 100 Gb/s",
                     "served by", "host memory", "drive nvme160n1", "files on drive"):
            self.assertIn(word, result.stdout)

    def test_variable_names_the_machine_where_no_option_does(self):
        p4d, p5 = self.machine("p4d"), self.machine("p5")
        for arguments, nics in (([], 4), (["--xml", p5], 32)):
            result = subprocess.run([WEFT, "topo", "--json", *arguments], capture_output=True,
                                    text=True, timeout=PATIENCE,
                                    env={**os.environ, "WEFT_TOPO_XML": p4d})
            self.assertEqual(len(json.loads(result.stdout)["nics"]), nics, result.stderr)

    def test_pairing(self):
        p5, p4d = self.machine("p5"), self.machine("p4d")
        pairing = self.report("--xml", p4d, "--peer-xml", p5)["pairing"]
        self.assertEqual(len(pairing["to_peer"]), 4)
        self.assertEqual(len(pairing["from_peer"]), 32)
        self.assertEqual(len(pairing["gpus"]), 8)
        for row in pairing["to_peer"] + pairing["from_peer"]:
            self.assertAlmostEqual(sum(each["percent"] for each in row["with"]), 100)
        result = weft("topo", "--xml", p4d, "--peer-xml", p5)
        for word in ("to the peer", "from the peer", "12.5 %", "GPU 7 here"):
            self.assertIn(word, result.stdout)

    def test_capture_and_back(self):
        self.assertEqual(self.report("--capture", self.path("here.xml")),
                         {"captured": self.path("here.xml")})
        there = self.report("--xml", self.path("here.xml"))
        self.assertEqual([node["id"] for node in there["numa"]],
                         [node["id"] for node in self.report()["numa"]])
        self.assertNotIn(os.uname().nodename.encode(), self.read("here.xml"))

    @unittest.skipUnless(shutil.which("dot"), "Graphviz is not installed")
    def test_pictures(self):
        with open(self.path("p5.svg"), "w", encoding="ascii") as old:
            old.write("old")
        self.report("--xml", self.machine("p5"), "--svg", self.path("p5.svg"), "--png",
                    self.path("p5.png"))
        svg = self.read("p5.svg").decode()
        for word in ("GPU 7", "rdmap201s0", "100 Gb/s", "</svg>"):
            self.assertIn(word, svg)
        self.assertEqual(self.read("p5.png")[:4], b"\x89PNG")
        self.assertEqual(sorted(os.listdir(self.folder)), ["p5.png", "p5.svg", "p5.xml"])
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("p5.svg")).st_mode), 0o666 & ~mask)

    def fails_to_draw(self, pattern, path=None, environment=None):
        before = os.listdir(self.folder)
        result = subprocess.run([WEFT, "topo", "--svg", path or self.path("x.svg")],
                                capture_output=True, text=True, timeout=PATIENCE,
                                env=environment or os.environ)
        self.fails(result, 1, pattern)
        self.assertEqual(os.listdir(self.folder), before)

    def with_dot(self, script):
        """Programs are looked for where there is but one: a shell script named dot."""
        os.chmod(self.write("dot", b"#!/bin/sh\n" + script), 0o755)
        return {**os.environ, "PATH": self.folder}

    def test_no_dot(self):
        self.fails_to_draw("package graphviz", environment={**os.environ, "PATH": self.folder})

    def test_broken_dot(self):
        for script, pattern in ((b"echo '<svg'; printf 'out of \\033ink' >&2; exit 3",
                                 r"could not draw it: out of \\x1bink"),
                                (b"echo '<svg'; kill -9 $$", "could not draw it"),
                                (b"exit 0", "could not draw it")):
            self.fails_to_draw(pattern, environment=self.with_dot(script))

    def test_interrupt_while_dot_is_at_work(self):
        new, pid = self.path("new"), self.path("pid")
        script = f"echo $$ > {new}; /bin/mv {new} {pid}; exec /bin/sleep 1000"
        with started("topo", "--svg", self.path("x.svg"),
                     env=self.with_dot(script.encode())) as process:
            while not os.path.exists(pid):
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(PATIENCE), 130)
            self.one_sentence(process.stderr.read())
        self.assertFalse(is_running(int(self.read("pid"))))
        self.assertFalse(os.path.exists(self.path("x.svg")))

    @unittest.skipUnless(shutil.which("dot"), "Graphviz is not installed")
    def test_picture_that_can_not_be_written(self):
        self.fails_to_draw("No such file", self.path("none/x.svg"))
        self.fails_to_draw("Is a directory", self.folder)

    def test_capture_that_can_not_be_written(self):
        self.fails(weft("topo", "--capture", self.path("none/x.xml")), 1, "No such file")
        self.assertEqual(os.listdir(self.folder), [])

    def test_unknown_file(self):
        for option in ("--xml", "--peer-xml"):
            self.fails(weft("topo", option, self.path("none.xml")), 1, "none.xml")

    def test_garbage(self):
        p5 = self.machine("p5")
        whole = self.read("p5.xml")
        for content in (b"", b"\0" * 1000, b"no XML", b"<topology/>", whole[:len(whole) // 2],
                        bytes(range(256))):
            garbage = self.write("garbage.xml", content)
            self.fails(weft("topo", "--xml", garbage), 1, "garbage.xml")
            self.fails(weft("topo", "--xml", p5, "--peer-xml", garbage), 1, "garbage.xml")
        self.fails(weft("topo", "--xml", self.folder), 1, "not a regular file")

    def test_hostile_names(self):
        # XML allows controls of a terminal too, if they are of the upper set.
        evil = html.escape('"]; <B></TABLE>>\u009b31m\u202e').encode()
        self.machine("p5")
        hostile = self.write("p5.xml", self.read("p5.xml").replace(b"rdmap79s0", evil))
        arguments = ["--xml", hostile]
        if shutil.which("dot"):
            arguments += ["--svg", self.path("p5.svg")]
        for more in ([], ["--json"], ["--peer-xml", hostile]):
            result = weft("topo", *arguments, *more)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertNotRegex(result.stdout, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
            self.assertIn(r"\u202e", result.stdout)

    def test_hostile_file_name(self):
        self.fails(weft("topo", "--xml", b"\x1b[31m\xff"), 1, r"\\x1b\[31m")
        result = weft("topo", "--json", "--quiet", "--xml", b"\x1b[31m\xff")
        self.assertTrue(json.loads(result.stdout)["error"])

    def test_options_that_exclude_each_other(self):
        for option in ("--xml", "--peer-xml", "--svg", "--png"):
            self.fails(weft("topo", "--capture", self.path("x"), option, self.path("y")), 2,
                       "exclude")
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
