#!/usr/bin/env python3
"""Tests of the commands where there is no libfabric: engines still meet over Weft's own shm.

Usage: without_test.py WEFT WEFT-PERF     (run by tests/libfabric/without)
"""
import json
import subprocess
import sys
import unittest

WEFT, WEFT_PERF = sys.argv.pop(1), sys.argv.pop(1)
PATIENCE = 120


def weft(*arguments):
    return subprocess.run([WEFT, *arguments], capture_output=True, text=True, timeout=PATIENCE,
                          check=False)


class WithoutLibfabric(unittest.TestCase):
    def test_info_says_why(self):
        result = weft("info", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        libfabric = report["process"]["libfabric"]
        self.assertIn("libfabric", libfabric["problem"])
        self.assertEqual((libfabric["file"], libfabric["version"]), ("", ""))
        self.assertEqual(report["libfabric"], "not in use")
        self.assertEqual({rail["capability"]["provider"] for rail in report["rails"]}, {"shm"})
        reasons = {each["provider"].split(" ")[0]: each["reason"] for each in report["candidates"]}
        for provider in ("efa", "verbs", "tcp"):
            self.assertEqual(reasons[provider], libfabric["problem"])
        self.assertIn("libfabric not in use\nbecause ", weft("info").stdout)

    def test_provider_that_is_named(self):
        for provider in ("efa", "verbs", "tcp", "fi_shm"):
            result = weft("info", "--providers", provider)
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"provider '{provider}' can't be used", result.stderr)
            self.assertIn("libfabric.so.1", result.stderr)

    def test_transfers_between_processes(self):
        """Prefill and decode, which checks every byte."""
        result = weft("demo", "--model", "gpt-oss-20b", "--tokens", "512", "--requests", "4")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_perf_between_processes(self):
        result = subprocess.run([WEFT_PERF, "--local", "--size", "64K", "--window", "1",
                                 "--time", "0.05", "--repeats", "1"],
                                capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
