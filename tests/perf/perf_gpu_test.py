"""The weft-perf command with the memory of GPUs, over the CUDA driver that the loader finds.

Usage: perf_gpu_test.py WEFT-PERF WEFT-TOPO-MACHINES [unittest arguments]
"""

import json
import os
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from programs import Program  # noqa: E402

WEFT_PERF, MACHINES = Program(sys.argv.pop(1)), Program(sys.argv.pop(1))
SHORT = ["--local", "--count", "20", "--repeats", "2", "--warm-up", "0", "--verify"]


class Gpus(unittest.TestCase):
    def points(self, *arguments):
        result = WEFT_PERF.run(*SHORT, *arguments, "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["points"]

    def test_every_byte_is_verified(self):
        points = self.points("--memory", "gpu:0,host", "--peer-memory", "gpu:1,shared",
                             "--operation", "write,read,signal", "--provider", "shm,tcp",
                             "--pieces", "16", "--pattern", "random")
        self.assertEqual(len(points), 24)
        for point in points:
            self.assertEqual(point["bytes_wrong"], 0, point)
            self.assertGreaterEqual(point["bytes_checked"], 2 * 2 * 4 * 65536)

    def test_the_same_on_both_sides(self):
        point, = self.points("--memory", "gpu:1")
        self.assertEqual(point["point"]["work"]["memory"], "gpu:1")
        self.assertEqual(point["point"]["work"]["peer_memory"], "gpu:1")
        self.assertEqual(point["bytes_wrong"], 0)

    def test_a_machine_whose_topology_has_the_gpus(self):
        """A p5 has them where the driver says."""
        machine = MACHINES.run("p5").stdout
        for address in ("0000:53:00.0", "0000:64:00.0"):
            self.assertIn(address, machine)
        with tempfile.NamedTemporaryFile("w", suffix=".xml", encoding="utf-8") as file, \
                mock.patch.dict(os.environ, {"WEFT_TOPO_XML": file.name}):
            file.write(machine)
            file.flush()
            points = self.points("--memory", "gpu:0,host,gpu:1", "--peer-memory", "gpu:1,host",
                                 "--provider", "tcp,shm", "--initiators", "1,2")
        self.assertEqual(len(points), 24)
        self.assertEqual({point["bytes_wrong"] for point in points}, {0})

    def test_no_such_gpu(self):
        for memory, peer_memory, whose in (("gpu:7", "host", ""),
                                           ("host", "gpu:7", "remote_failed: the target: ")):
            result = WEFT_PERF.run(*SHORT, "--memory", memory, "--peer-memory", peer_memory)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stderr,
                             f"weft-perf: {whose}unavailable: there is no GPU 7: there are 2\n")


if __name__ == "__main__":
    unittest.main()
