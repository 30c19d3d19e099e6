"""Each subcommand has a manual page: the build's list (`described`) names those of the programs.

Usage: described_test.py ROOT
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def described(path):
    body = re.search(r"^described \+= \[\[\w+, '[\w-]+',\s*\[(.*?)\]\]\]", read(path),
                     re.DOTALL | re.MULTILINE)
    return re.findall(r"'([\w-]+)'", body[1])


class Described(unittest.TestCase):
    def test_weft(self):
        there = re.findall(r'\btable\.add\(\s*"([\w-]+)"', read("tools/weft/commands.cpp"))
        self.assertIn("info", there)
        self.assertEqual(sorted(there), sorted(described("tools/meson.build")))

    def test_weft_perf(self):
        there = re.findall(r'\badd_subcommand\(\s*"([\w-]+)"', read("perf/weft-perf/main.cpp"))
        self.assertIn("plan", there)
        self.assertEqual(sorted(there), sorted(described("perf/weft-perf/meson.build")))


if __name__ == "__main__":
    unittest.main()
