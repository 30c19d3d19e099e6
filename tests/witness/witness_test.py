"""The ledger's copies beside those that somebody else has seen.

Two processes move bytes, each watched by strace, which tells what the kernel copied for it: into and
out of sockets, and between two processes. Copies by the CPU are seen by a preloaded library around
memcpy and memmove. Each sum is compared with what the ledger says of that side and that mover; where
the ledger says that small pieces may have been bounced, with the sum of that side's movers, since the
bounce may stand in another's place.

Usage: witness_test.py PARTY MEMORY_COPIES PROVIDER...

Ends with 77 (skipped) where processes can't be watched.
"""

import collections
import contextlib
import glob
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
SIDES, MOVERS = ("here", "there"), ("kernel", "cpu")
PATIENCE = 100  # Seconds after which a process that should have ended counts as hanging.
CALLS = ("sendto,sendmsg,recvfrom,recvmsg,read,write,readv,writev,"
         "process_vm_readv,process_vm_writev")
# Not payload: heads of messages, the beginning of each (libfabric's tcp fetches 9000 bytes with it),
# the control connection, what is registered and read while an engine opens.
MARGIN = 0.03
SLACK = 1 << 20

RESULT = re.compile(r"^(\w+)\((\d+<([^>]*)>)?.* = (\d+)$")


def bytes_in(line):
    """What the kernel copied by one call, or 0 if it is none that moves bytes between processes."""
    call = RESULT.match(line)
    if not call:
        return 0
    name, _, file, result = call.groups()
    if name.startswith("process_vm_") or (file or "").startswith("socket:"):
        return int(result)
    return 0


class Watched:
    """A process of weft-witness-party's, in a folder for what is written down about it."""

    def __init__(self, folder, name, *arguments):
        self.trace = os.path.join(folder, name + ".trace")
        self.copies = os.path.join(folder, name + ".copies")
        preloaded = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), MEMORY_COPIES]))
        # A file for each thread: no call is cut in two by another's.
        self.process = subprocess.Popen(
            ["strace", "-ff", "--seccomp-bpf", "-qq", "-y", "-s", "0", "-e", "trace=" + CALLS,
             "-e", "signal=none", "-o", self.trace, "-E", "LD_PRELOAD=" + preloaded,
             "-E", "WITNESS_COPIES=" + self.copies, PARTY, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def kernel(self):
        total = 0
        for name in glob.glob(self.trace + ".*"):
            with open(name, encoding="ascii", errors="replace") as lines:
                total += sum(map(bytes_in, lines))
        return total

    def cpu(self):
        with open(self.copies, encoding="ascii") as file:
            return int(file.read())


@contextlib.contextmanager
def watched(*arguments):
    process = Watched(*arguments)
    try:
        yield process
    finally:
        process.process.kill()
        process.process.communicate()


class Ledger:
    """What a report says: bytes by mover and side, and where pieces may have been bounced."""

    def __init__(self, text):
        self.carried = 0
        self.copied, self.counted, self.bounced = collections.Counter(), [], set()
        for words in map(str.split, text.splitlines()):
            if words[0] == "carried":
                self.carried = int(words[1])
                continue
            _, mover, side, known, count = words
            self.copied[mover, side] += int(count)
            if known == "counted":
                self.counted.append(int(count))
            elif known == "unknown":
                self.bounced.add(side)


def moved(provider, *options):
    """The ledger of a transfer, and what the witnesses saw, both by mover and side."""
    options = ["--provider", provider, *options]
    with tempfile.TemporaryDirectory() as folder, watched(folder, "owner", *options) as owner:
        address = owner.process.stdout.readline().strip()
        if not address:
            raise RuntimeError(f"{provider}: the owner did not begin to listen")
        with watched(folder, "mover", *options, "--to", address) as mover:
            output, _ = mover.process.communicate(timeout=PATIENCE)
            owner.process.communicate(timeout=PATIENCE)
        if mover.process.returncode != 0 or owner.process.returncode != 0:
            raise RuntimeError(f"{provider}: a side ended with an error")
        seen = {(name, side): count() for side, watch in zip(SIDES, (mover, owner))
                for name, count in zip(MOVERS, (watch.kernel, watch.cpu))}
    return Ledger(output), seen


class Copies(unittest.TestCase):
    def compare(self, provider, *options):
        ledger, seen = moved(provider, *options)
        title = " ".join([provider, *options])
        for (mover, side), count in seen.items():
            print(f"{title}: {mover} {side}: ledger {ledger.copied[mover, side]}, seen {count}",
                  file=sys.stderr)
        margin = MARGIN * ledger.carried + SLACK
        for side, movers in itertools.product(SIDES, [MOVERS] if ledger.bounced else
                                              [[mover] for mover in MOVERS]):
            told = sum(ledger.copied[mover, side] for mover in movers)
            count = sum(seen[mover, side] for mover in movers)
            # What may be bounced is bounced once at most.
            most = told + (ledger.carried if side in ledger.bounced else 0)
            with self.subTest(path=title, movers=movers, side=side):
                self.assertGreaterEqual(count, told - margin)
                self.assertLessEqual(count, most + margin)
        for counted in ledger.counted:
            self.assertEqual(counted, ledger.carried, f"{title}: copied once, by this engine")

    def test_writes(self):
        for provider in PROVIDERS:
            self.compare(provider)

    def test_reads(self):
        for provider in PROVIDERS:
            self.compare(provider, "--read")

    def test_memory_that_can_be_mapped(self):
        for provider in PROVIDERS:
            self.compare(provider, "--shared")
            self.compare(provider, "--shared", "--read")
            self.compare(provider, "--shared", "--piece", "4096", "--pieces", "2048")

    def test_the_bounce(self):
        for provider in PROVIDERS:
            self.compare(provider, "--bounce")
            self.compare(provider, "--bounce", "--read")

    def test_small_pieces(self):
        for provider in PROVIDERS:
            self.compare(provider, "--piece", "4096", "--pieces", "2048")
            self.compare(provider, "--piece", "4096", "--pieces", "2048", "--read")


def trace_scope():
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as file:
            return int(file.read())
    except FileNotFoundError:
        return 0


def why_blind():
    """Why processes can't be watched here; empty if they can."""
    if shutil.which("strace") is None:
        return "there is no strace"
    tried = subprocess.run(["strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "true"],
                           capture_output=True, text=True, timeout=PATIENCE, check=False)
    if tried.returncode != 0:
        return f"strace can't: {tried.stderr.strip()}"
    if trace_scope() > 0 and os.geteuid() != 0 and any("shm" in name for name in PROVIDERS):
        return "kernel.yama.ptrace_scope keeps processes from each other's memory"
    return ""


if __name__ == "__main__":
    PARTY, MEMORY_COPIES, *PROVIDERS = sys.argv[1:]
    if why := why_blind():
        print("skipped:", why)
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
