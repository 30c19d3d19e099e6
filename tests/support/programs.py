"""Programs that are tested from outside, and what can be seen of processes."""

import contextlib
import os
import subprocess
import sys
import unittest

PATIENCE = 60  # Seconds after which a process that should have ended counts as hanging.


class Program:
    def __init__(self, path):
        self.path = path

    def run(self, *arguments, **more):
        return subprocess.run([self.path, *arguments], capture_output=True, text=True,
                              timeout=PATIENCE, **more)

    @contextlib.contextmanager
    def started(self, *arguments, **more):
        process = subprocess.Popen([self.path, *arguments], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **more)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    @contextlib.contextmanager
    def listening(self, *arguments, **more):
        """A process that tells where it listens, and its address."""
        ready, its_end = os.pipe()
        with self.started(*arguments, "--ready-fd", str(its_end), pass_fds=[its_end],
                          **more) as process:
            os.close(its_end)
            with os.fdopen(ready) as lines:
                yield process, lines.readline().strip()


def part_of_tests():
    """Takes "--part N/OF" from the command line. For load_tests: each OF-th test from the N-th on,
    so that the parts run side by side."""
    if "--part" not in sys.argv:
        return lambda loader, tests, pattern: tests
    at = sys.argv.index("--part")
    number, of = map(int, sys.argv[at + 1].split("/"))
    del sys.argv[at:at + 2]

    def load_tests(loader, tests, pattern):
        every = [test for case in tests for test in case]
        return unittest.TestSuite(every[number - 1::of])

    return load_tests


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
