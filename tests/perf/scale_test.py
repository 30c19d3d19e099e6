"""What a unit costs the engine when there are ten times as many: nothing may grow with the number of
the others. In instructions, bytes and allocations, which a loaded machine does not change.

Usage: scale_test.py FOLDER-OF-CALLGRIND.PY WEFT-SCALE [unittest arguments]
Ends with 77 (skipped) without valgrind.
"""

import json
import re
import shutil
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
        WEFT_SCALE, "--here", "--rounds", "1", "--json", "--of", dimension, "--counts", str(count),
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
        self.grows("peers", 2, 20, {"connect": 10, "prepare": 10, "carry": 1, "look": 1})

    def test_segments(self):
        self.grows("segments", 100, 1000,
                   {"add": 10, "grant": 10, "prepare": 10, "carry": 1, "release": 10})

    def test_blocks(self):
        # As many blocks in all, in fewer and larger transfers.
        self.grows("blocks", 20_000, 200_000, {"prepare": 10, "carry": 1})

    def test_transfers(self):
        self.grows("transfers", 2000, 20_000, {"carry_together": 10})

    def test_rails(self):
        self.grows("rails", 2, 16, {"connect": 8, "add": 8, "look": 8, "carry": 2})


if __name__ == "__main__":
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed")
        sys.exit(SKIPPED)
    unittest.main()
