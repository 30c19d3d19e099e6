"""The weft-perf command with the memory of GPUs, over the CUDA driver that the loader finds.

Usage: perf_gpu_test.py WEFT-PERF WEFT-TOPO-MACHINES PERF-PEERS-FOLDER BUILD-FOLDER
       [unittest arguments]
"""

import json
import os
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from programs import Program  # noqa: E402

WEFT_PERF, MACHINES = Program(sys.argv.pop(1)), Program(sys.argv.pop(1))
PEERS, BUILD = sys.argv.pop(1), sys.argv.pop(1)
sys.path.insert(0, PEERS)
from memory import TILE_BYTES, GpuMemory  # noqa: E402

SHORT = ["--local", "--count", "20", "--repeats", "2", "--warm-up", "0", "--verify"]


class Gpus(unittest.TestCase):
    def points(self, *arguments):
        result = WEFT_PERF.run(*SHORT, *arguments, "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["points"]

    def test_every_byte_is_verified(self):
        points = self.points("--memory", "gpu:0,host", "--peer-memory", "gpu:1,shared",
                             "--operation", "write,read,signal", "--providers", "shm,tcp",
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

    def test_the_ways_between_gpus(self):
        """As they come, one of them copies once; else it goes through buffers of either side."""
        lent, staged = self.points("--memory", "gpu:0", "--peer-memory", "gpu:1", "--providers",
                                   "shm", "--gpu-path", "lent,staged", "--bounce-bytes", "32K",
                                   "--bounce-buffers", "2")
        self.assertEqual((lent["bytes_wrong"], staged["bytes_wrong"]), (0, 0))
        self.assertEqual(lent["copies_per_byte"], 1)
        self.assertGreaterEqual(staged["copies_per_byte"], 3)
        self.assertEqual(staged["point"]["fabric"]["bounce_bytes"], 32 << 10)
        self.assertEqual(staged["point"]["fabric"]["bounce_buffers"], 2)

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
                                 "--providers", "tcp,shm", "--initiators", "1,2")
        self.assertEqual(len(points), 24)
        self.assertEqual({point["bytes_wrong"] for point in points}, {0})

    def test_no_such_gpu(self):
        for memory, peer_memory, whose in (("gpu:7", "host", ""),
                                           ("host", "gpu:7", "the target: ")):
            result = WEFT_PERF.run(*SHORT, "--memory", memory, "--peer-memory", peer_memory)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stderr,
                             f"weft-perf: {whose}there is no GPU 7: there are 2 (unavailable)\n")


class Peers(unittest.TestCase):
    def test_wrong_bytes_are_found(self):
        length = 2 * TILE_BYTES + 77
        memory = GpuMemory(length)
        memory.fill(length, seed=3)
        self.assertIsNone(memory.first_wrong(length, seed=3))
        self.assertEqual(memory.first_wrong(length, seed=4), 0)
        memory.write(2 * TILE_BYTES + 75, b"??")
        self.assertEqual(memory.first_wrong(length, seed=3), 2 * TILE_BYTES)

    def test_memory_of_gpus_is_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            results = os.path.join(folder, "results.json")
            done = Program(os.path.join(PEERS, "run")).run(
                "--build", BUILD, "--fabrics", "gpu,gpu-tcp", "--sizes", "64K", "--windows", "1,2",
                "--gpu-bytes", "1M", "--gpu-tcp-bytes", "1M", "--rounds", "1", "--minutes", "2",
                "--latency-count", "20", "--without", "nixl-ucx", "--json", results)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(results, encoding="utf-8") as file:
                found = json.load(file)
        self.assertEqual(found["failures"], [])
        for each in ("samples", "checked"):
            self.assertEqual({(one["fabric"], one["window"]) for one in found[each]},
                             {(fabric, window) for fabric in ("gpu", "gpu-tcp")
                              for window in (1, 2)})


if __name__ == "__main__":
    unittest.main()
