"""What a unit costs the engine when there are ten times as many: nothing may grow with the number of
the others. In instructions, bytes and allocations, which a loaded machine does not change.

Usage: scale_test.py FOLDER-OF-CALLGRIND.PY WEFT-SCALE [unittest arguments]
Ends with 77 (skipped) without valgrind.
"""

import json
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import callgrind  # noqa: E402

WEFT_SCALE = sys.argv.pop(1)
SKIPPED = 77
PATIENCE = 300
# What a unit may take more where there are more: logarithms, and room that grows ahead.
SLACK = 1.5


def instructions(costs):
    """Of each kind of work, without waiting: that takes as long as the other side does."""
    waits = sum(cost for (_, called), cost in costs.calls.items() if "wait_stopped(" in called)
    found = {}
    for function in costs.own:
        name = re.match(r"weft::perf::work::(\w+)\(", function)
        if name:
            found[name[1]] = costs.within(function) - (waits if name[1] == "release" else 0)
    return found


def measure(dimension, count):
    costs, text = callgrind.count(
        WEFT_SCALE, "--here", "--repeats", "1", "--json", "--of", dimension, "--counts", str(count),
        within="weft::perf::work::*", timeout=PATIENCE)
    rows = {row["what"]: row for row in json.loads(text)}
    return instructions(costs), rows


class Scale(unittest.TestCase):
    def grows(self, dimension, few, many, work):
        """`work`: what there is to do, and how many times as much of it there is in all."""
        before, rows_before = measure(dimension, few)
        after, rows_after = measure(dimension, many)
        for name, times in work.items():
            with self.subTest(work=name):
                self.assertGreater(before[name], 0)
                self.assertLess(after[name], before[name] * times * SLACK)
        self.assertEqual(rows_before.keys(), rows_after.keys())
        for name, row in rows_after.items():
            for kind, least in {"bytes": 64, "allocations": 1}.items():
                with self.subTest(work=name, of=kind):
                    allowed = max(least, rows_before[name][kind]) * SLACK
                    self.assertLess(row[kind], allowed)

    def test_peers(self):
        # Not fewer: a kilobyte of something else that is freed meanwhile would count for much.
        self.grows("peers", 8, 40, {"connect": 5, "prepare": 5, "carry": 1, "look": 1})

    def test_segments(self):
        self.grows("segments", 50, 500,
                   {"add": 10, "grant": 10, "prepare": 10, "carry": 1, "release": 10})

    def test_blocks(self):
        # As many blocks in all, in fewer and larger transfers.
        self.grows("blocks", 20_000, 200_000, {"prepare": 10, "carry": 1})

    def test_transfers(self):
        self.grows("transfers", 2000, 20_000, {"carry_together": 10})

    def test_rails(self):
        self.grows("rails", 2, 16, {"connect": 8, "add": 8, "look": 8, "carry": 2})


class Command(unittest.TestCase):
    def run_it(self, *arguments):
        return subprocess.run([WEFT_SCALE, *arguments], capture_output=True, text=True,
                              timeout=PATIENCE)

    def test_a_plot_is_tried_before_anything_is_measured(self):
        done = self.run_it("--plot", "/nowhere/x.svg")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("could not write '/nowhere/x.svg'", done.stderr)

    def test_counts_that_are_left_out_are_told(self):
        done = self.run_it("--of", "rails", "--counts", "1,65", "--repeats", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("65 rails are left out: 64 are the most", done.stderr)
        self.assertEqual({row["count"] for row in json.loads(done.stdout)}, {1})
        done = self.run_it("--of", "rails", "--counts", "65")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no count is left", done.stderr)


if __name__ == "__main__":
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed")
        sys.exit(SKIPPED)
    unittest.main()
