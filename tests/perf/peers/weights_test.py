"""perf/peers/weights: the command with plain streams, and without torch.

Usage: weights_test.py PERF-PEERS-FOLDER BUILD-FOLDER [unittest arguments]
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from programs import PATIENCE  # noqa: E402

PEERS, BUILD = sys.argv.pop(1), sys.argv.pop(1)
CONFIG = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
          "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
          "vocab_size": 200, "torch_dtype": "bfloat16"}


class Weights(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_it(self, *arguments):
        with open(self.path("config"), "w", encoding="ascii") as config:
            json.dump(CONFIG, config)
        with open(self.path("torch.py"), "w", encoding="ascii") as torch:
            torch.write("raise ImportError('there is no torch')\n")
        return subprocess.run(
            [sys.executable, os.path.join(PEERS, "weights"), "--build", BUILD, "--config",
             self.path("config"), "--trainers", "fsdp=2", "--ranks", "replicas=2", "--bytes", "1M",
             "--providers", "shm", "--rounds", "2", "--steps", "2", *arguments],
            env={**os.environ, "PYTHONPATH": self.folder}, capture_output=True, text=True,
            timeout=PATIENCE, check=False)

    def test_streams_beside_weft(self):
        ran = self.run_it("--json", self.path("found"))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stderr, "gloo is left out: .*there is no torch")
        self.assertRegex(ran.stdout, r"weft-shm +[\d.]+ \([\d.]+-[\d.]+\)\nstreams +[\d.]+ .*shm: ")
        with open(self.path("found"), encoding="utf-8") as file:
            found = json.load(file)
        self.assertEqual(sorted(found["seconds"]), ["streams", "weft-shm"])
        self.assertEqual(len(found["seconds"]["streams"]), 2)
        self.assertEqual(found["moved"]["arrived_bytes"], 2 * found["moved"]["model_bytes"])
        self.assertGreater(found["ratios"]["streams/shm"][0], 0)

    def test_what_is_wrong_is_told(self):
        self.assertEqual(self.run_it("--providers", "psm").returncode, 2)
        ran = self.run_it("--ranks", "tp=3")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("perf/peers/weights: ", ran.stderr)


if __name__ == "__main__":
    unittest.main()
