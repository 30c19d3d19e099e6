#!/usr/bin/env python3
"""Tests that generate_options.py refuses a table that is wrong, and a page that is stale.

Usage: options_test.py GENERATOR
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

GENERATOR = sys.argv.pop(1)
GOOD = """
[Group]
[window]
type = size_t
default = 4
range = 1 to 64
unit = operations
doc = Operations in flight.
[spin]
type = time
default = 100us
doc = How long it polls.
"""


class Options(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.table = pathlib.Path(folder.name) / "options.ini"
        self.output = pathlib.Path(folder.name) / "output"

    def run_on(self, text, mode, *arguments):
        self.table.write_text(text, encoding="utf-8")
        return subprocess.run([sys.executable, GENERATOR, mode, self.table, *arguments],
                              capture_output=True, text=True)

    def refuses(self, text, said):
        result = self.run_on(text, "page", self.output)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(said, result.stderr)

    def test_fields_have_their_types_defaults_and_docs(self):
        template = self.table.with_name("template")
        template.write_text("struct Config {@fields@\n};\n", encoding="utf-8")
        self.assertEqual(self.run_on(GOOD, "header", template, self.output).returncode, 0)
        header = self.output.read_text(encoding="utf-8")
        self.assertIn("  /// Operations in flight. Range: 1 to 64.\n  std::size_t window = 4;\n", header)
        self.assertIn("  Nanoseconds spin = std::chrono::microseconds(100);\n", header)

    def test_a_wrong_table(self):
        self.refuses(GOOD.replace("size_t", "float"), "[window] has the type float")
        self.refuses(GOOD.replace("1 to 64", "some"), "[window] has the range 'some'")
        self.refuses(GOOD.replace("unit", "units"), "[window] must have")
        self.refuses(GOOD.replace("doc = How", "# How"), "[spin] must have a type and a doc")

    def test_a_page_that_is_stale(self):
        self.assertEqual(self.run_on(GOOD, "page", self.output).returncode, 0)
        self.assertEqual(self.run_on(GOOD, "check", self.output).returncode, 0)
        result = self.run_on(GOOD.replace("default = 4", "default = 5"), "check", self.output)
        self.assertEqual(result.returncode, 1)
        self.assertIn("ninja options-page renews it", result.stderr)


if __name__ == "__main__":
    unittest.main()
