"""failures.py tells what failed tests wrote, and nothing of the others."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

FAILURES = pathlib.Path(__file__).with_name("failures.py")
PASSES = "[ RUN      ] A.Fine\n[       OK ] A.Fine (3 ms)\n"
FAILS = "[ RUN      ] A.Bad\nx.cpp:1: Failure\n[  FAILED  ] A.Bad (3 ms)\n"


def told(**test):
    line = {"name": "weft:unit / a", "result": "FAIL", "duration": 1.25, "returncode": 1,
            "stdout": "", "stderr": None} | test
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "testlog.json"
        log.write_text(json.dumps(line) + "\n")
        run = subprocess.run([sys.executable, FAILURES, log], capture_output=True, text=True,
                             timeout=60, check=True)
        return run.stdout


class Failures(unittest.TestCase):
    def test_says_nothing_of_tests_that_did_not_fail(self):
        for result in ("OK", "EXPECTEDFAIL", "SKIP"):
            self.assertEqual("", told(result=result, stdout="much"))

    def test_leaves_out_tests_of_gtest_that_passed(self):
        self.assertEqual("=== weft:unit / a: FAIL after 1.2 s, exit status 1\n" + FAILS,
                         told(stdout=PASSES + FAILS + PASSES * 1000))

    def test_has_what_went_to_stderr_too(self):
        self.assertIn("\nout\nerr\n", told(result="TIMEOUT", stdout="out", stderr="err\n"))

    def test_has_the_end_of_much(self):
        lines = told(stdout="".join(f"line {i}\n" for i in range(1000))).splitlines()
        self.assertEqual(["(800 lines before)", "line 800"], lines[1:3])
        self.assertEqual("line 999", lines[-1])


if __name__ == "__main__":
    unittest.main()
