"""That weft-bench knows its benchmarks, and that they run. No figures.

Usage: bench_test.py WEFT-BENCH [unittest arguments]
"""

import subprocess
import sys
import unittest

BENCH = sys.argv.pop(1)
PATIENCE = 60


def bench(*words):
    return subprocess.run([BENCH, *words], capture_output=True, text=True, timeout=PATIENCE)


def listed():
    """The benchmarks, and what each is about."""
    return dict(line.split(maxsplit=1) for line in bench("--list").stdout.splitlines())


class Bench(unittest.TestCase):
    def test_each_is_listed_in_a_line(self):
        names = listed()
        self.assertIn("core-cost", names)
        for name, about in names.items():
            self.assertLess(len(f"  {name} {about}"), 100)

    def test_each_has_a_command_line(self):
        for name in listed():
            with self.subTest(name=name):
                self.assertEqual(bench(name, "--help").returncode, 0)
                self.assertEqual(bench(name, "--bogus").returncode, 2)

    def test_what_is_not_there_is_named(self):
        result = bench("core-costs")
        self.assertEqual(result.returncode, 2)
        self.assertIn("'core-costs'", result.stderr)
        self.assertEqual(bench().returncode, 2)

    def test_they_run(self):
        few = ("--repeats", "1", "--time", "0.005", "--size", "64K", "--window", "1")
        for words in (("core-cost", "--benchmark_filter=cut", "--benchmark_min_time=0.001"),
                      ("ledger-cost", "--providers", "null", "--engines", "1", "--time", "0.001"),
                      ("lease-cost", "--providers", "tcp", *few),
                      ("mapped-copies", *few),
                      ("nic-costs", "--providers", "tcp", "--max-nics", "1", "--repeats", "1",
                       "--segment", "1M")):
            with self.subTest(words=words):
                result = bench(*words)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertNotEqual(result.stdout, "")


if __name__ == "__main__":
    unittest.main()
