"""libfabric's own tests (fabtests) over the software EFA device: they were written for real NICs, so
what they find wrong is wrong with the device.

Fabtests' programs are looked for in the folder that WEFT_FABTESTS names, and on the PATH. Where there
are none, the exit code says that it was skipped (77).
"""

import argparse
import collections
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

SKIPPED = 77  # As test runners understand it.
PATIENCE = 60  # Seconds for a test; the longest takes a few.
# What fabtests end with where libfabric or its provider lacks something: ENODATA, ENOSYS.
LACKING = {61: "no such endpoint (ENODATA)", 38: "no such function (ENOSYS)"}

# One process each, about a NIC.
ALONE = ["fi_getinfo_test", "fi_dom_test -n 2", "fi_eq_test", "fi_cq_test", "fi_mr_test"]

# A server and a client each, with options that fabtests of all versions know.
PAIRS = {}
PAIRS["efa"] = [
    "fi_rdm",
    "fi_rdm_pingpong -I 20 -v",
    "fi_rdm_pingpong -I 20 -S 1048576 -v -U",
    "fi_rdm_pingpong -I 20 -c sread",
    "fi_rdm_pingpong -I 20 -c fd",
    "fi_rdm_cntr_pingpong -I 20",
    "fi_rdm_tagged_pingpong -I 20 -v",
    "fi_rdm_tagged_pingpong -I 20 -S 1048576 -v -U",
    "fi_rdm_tagged_bw -I 20 -v",
    "fi_rdm_tagged_peek",
    "fi_rdm_bw -I 20 -v",
    "fi_rma_bw -e rdm -o write -I 20 -v",
    "fi_rma_bw -e rdm -o writedata -I 20 -v",
    "fi_rma_bw -e rdm -o read -I 20 -v",
    "fi_rma_pingpong -e rdm -o write -I 20",
    "fi_rma_pingpong -e rdm -o writedata -I 20 -v",
    "fi_rdm_atomic -I 5",
    "fi_cq_data -e rdm",
    "fi_inject_test -e rdm -A inject",
    "fi_recv_cancel -e rdm",
    "fi_multi_recv -e rdm -I 20",
    "fi_unexpected_msg -e rdm -I 5 -M 64 -S 512",
    "fi_unexpected_msg -e rdm -I 5 -M 16 -S 1048576",
    "fi_flood -e rdm -T 1",
    "fi_multi_ep -e rdm",
    "fi_efa_rnr_read_cq_error",
    "fi_efa_rnr_queue_resend -c 1 -S 4",
    "fi_efa_rnr_queue_resend -c 1 -S 1048576",
    "fi_efa_rnr_queue_resend -c 1 -T -S 16384",
    "fi_efa_rnr_queue_resend -c 1 -o write -S 4",
]
PAIRS["efa-direct"] = [
    "fi_rdm_pingpong -I 20 -S 8192 -v",
    "fi_rdm_pingpong -I 20 -S 32 -c sread",
    "fi_rdm_pingpong -I 20 -S 32 -c fd",
    "fi_rdm_bw -I 20 -S 8192 -v",
    "fi_rma_bw -e rdm -o write -I 20 -S 1048576 -v",
    "fi_rma_bw -e rdm -o writedata -I 20 -S 1048576 -v",
    "fi_rma_bw -e rdm -o read -I 20 -S 1048576 -v",
    "fi_rma_pingpong -e rdm -o writedata -I 20 -S 65536 -v",
    "fi_efa_rnr_read_cq_error",
]


def program_of(command):
    words = command.split()
    places = os.pathsep.join([os.environ.get("WEFT_FABTESTS", ""), os.environ.get("PATH", "")])
    return shutil.which(words[0], path=places)


def free_port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def is_listened_to(port):
    """Whether a process waits there; without connecting, which would be taken for the client."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(FileNotFoundError), open(table, encoding="ascii") as lines:
            for line in list(lines)[1:]:
                local, state = line.split()[1], line.split()[3]
                if state == "0A" and int(local.rsplit(":", 1)[1], 16) == port:
                    return True
    return False


class Process:
    """One side of a test, or all of it."""

    def __init__(self, command, fabric, *options):
        arguments = [program_of(command), *command.split()[1:], "-p", "efa", "-f", fabric, *options]
        self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.text = ""

    def end(self, deadline):
        """Its exit code; None if it has none by then."""
        try:
            self.text, _ = self.process.communicate(timeout=max(0, deadline - time.monotonic()))
            return self.process.returncode
        except subprocess.TimeoutExpired:
            return None

    def kill(self):
        self.process.kill()
        self.text = self.process.communicate()[0] or self.text


def run_alone(command, fabric):
    process = Process(command, fabric)
    try:
        return process.end(time.monotonic() + PATIENCE), process.text
    finally:
        process.kill()


def run_pair(command, fabric):
    """The exit code of both sides or of the one that went wrong, and what they said."""
    deadline = time.monotonic() + PATIENCE
    port = free_port()
    sides = [Process(command, fabric, f"-E={port}")]
    try:
        server = sides[0].process
        while server.poll() is None and not is_listened_to(port) and time.monotonic() < deadline:
            time.sleep(0.01)
        if server.poll() is None:
            sides.append(Process(command, fabric, f"-E={port}", "127.0.0.1"))
        codes = []
        for side in reversed(sides):
            codes.append(side.end(deadline))
            if codes[-1] != 0:
                deadline = min(deadline, time.monotonic() + 5)
        wrong = [code for code in codes if code != 0]
        # Who finds something lacking ends, and the other one then has nobody to talk to.
        code = next((code for code in wrong if code in LACKING), wrong[0] if wrong else 0)
    finally:
        for side in sides:
            side.kill()
    return code, "".join(side.text for side in sides)


def cases(fabric):
    for command in ALONE:
        yield command, run_alone
    for command in PAIRS[fabric]:
        yield command, run_pair


def outcome(command, run, fabric):
    """Whether it passed, in a word and with the reason, and what it said if that is of interest."""
    if program_of(command) is None:
        return "skipped", "these fabtests have no such program", ""
    begin = time.monotonic()
    code, text = run(command, fabric)
    if code == 0:
        return "passed", f"{time.monotonic() - begin:.1f} s", ""
    if code in LACKING:
        return "skipped", LACKING[code], ""
    return "failed", f"no end within {PATIENCE} s" if code is None else f"exit code {code}", text


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fabric", choices=PAIRS, default="efa")
    parser.add_argument("words", metavar="WORD", nargs="*",
                        help="only those tests in whose commands one of the words stands")
    options = parser.parse_args()
    if program_of("fi_rdm_pingpong") is None:
        print("skipped: fabtests are not installed (no fi_rdm_pingpong on the PATH)")
        return SKIPPED
    # A test runner that has no more patience; what was started is ended then too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    ends = collections.Counter()
    for command, run in cases(options.fabric):
        if options.words and not any(word in command for word in options.words):
            continue
        word, why, text = outcome(command, run, options.fabric)
        ends[word] += 1
        print(f"{word:8} {command} ({why})")
        for line in text.splitlines()[-20:]:
            print(f"         | {line}")
        sys.stdout.flush()
    print(", ".join(f"{ends[word]} {word}" for word in ("passed", "failed", "skipped")))
    return 0 if ends["passed"] > 0 and ends["failed"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
