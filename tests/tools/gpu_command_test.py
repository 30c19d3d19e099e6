"""The weft command with KV caches in GPUs' memory, over the CUDA driver that the loader finds.

Usage: gpu_command_test.py WEFT [unittest arguments]
"""

import json
import os
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from programs import PATIENCE, Program  # noqa: E402

PROGRAM = Program(sys.argv.pop(1))
SMALL = ["--model", "gpt-oss-20b", "--tokens", "100", "--requests", "3"]
BYTES = 3 * 100 * 24 * 2 * 8 * 64 * 2


class Pair(unittest.TestCase):
    """Decode and prefill as two processes."""

    def all_is_right(self, report):
        self.assertTrue(report["ok"], report)
        self.assertEqual(report["bytes"], BYTES)
        self.assertEqual(report["bytes_wrong"], 0)
        self.assertGreater(report["bytes_checked"], BYTES)

    def handed_over(self, memory, decode_memory, provider, *arguments):
        """Prefill's report."""
        with PROGRAM.listening("decode", "--json", "--providers", provider, "--memory",
                               decode_memory) as (other, address):
            result = PROGRAM.run("prefill", "--peer", address, "--json", "--providers", provider,
                                 "--memory", memory, *SMALL, *arguments)
            self.assertEqual(result.returncode, 0, result.stderr)
            output, errors = other.communicate(timeout=PATIENCE)
        self.assertEqual(other.returncode, 0, errors)
        there, here = json.loads(output), json.loads(result.stdout)
        self.assertEqual((here["memory"], there["memory"]), (memory, decode_memory))
        self.all_is_right(here)
        self.all_is_right(there)
        return here

    def test_gpus_on_both_sides(self):
        self.assertEqual(self.handed_over("gpu:0", "gpu:1", "tcp")["transport"], "device-copy")

    def test_the_same_gpu_on_both_sides(self):
        self.handed_over("gpu:0", "gpu:0", "tcp")

    def test_a_gpu_here(self):
        self.handed_over("gpu:0", "shared", "tcp")

    def test_a_gpu_there(self):
        self.handed_over("host", "gpu:1", "tcp")

    def test_as_between_hosts(self):
        report = self.handed_over("gpu:0", "gpu:1", "tcp", "--transport", "bounce")
        self.assertEqual(report["transport"], "bounce")

    def test_over_shm(self):
        self.assertEqual(self.handed_over("gpu:0", "gpu:1", "shm")["transport"], "device-copy")

    def test_layouts_of_many_shapes(self):
        for arguments in (["--block-tokens", "32", "--order", "block-major"],
                          ["--placement", "fused", "--layer-groups", "1"],
                          ["--head-order", "hnd", "--concurrency", "3"]):
            with self.subTest(arguments=arguments):
                self.handed_over("gpu:0", "gpu:1", "tcp", *arguments)

    def test_the_path_is_through_the_gpus_memory(self):
        report = self.handed_over("gpu:0", "gpu:1", "tcp", "--transport", "bounce", "--explain")
        first, *_, last = [hop for hop in report["explained"]["hops"] if hop["ledger"]]
        self.assertEqual((first["what"], first["by"], first["ledger"], first["known"]),
                         ("memory of a GPU \u2192 bounce buffer", "copy_engine", BYTES, "counted"))
        self.assertEqual((last["what"], last["by"], last["ledger"]),
                         ("the peer's bounce buffer \u2192 the peer's memory of a GPU",
                          "copy_engine", BYTES))

    def test_a_copy_that_fails_is_told(self):
        with mock.patch.dict(os.environ, {"WEFT_CUDA_SIM_FAIL": "cuMemcpyDtoH:2:700"}):
            decode = PROGRAM.listening("decode", "--memory", "gpu:0")
            with decode as (other, address):
                del os.environ["WEFT_CUDA_SIM_FAIL"]
                result = PROGRAM.run("prefill", "--peer", address, *SMALL)
                _, errors = other.communicate(timeout=PATIENCE)
        self.assertEqual((other.returncode, result.returncode), (1, 1))
        self.assertIn("weft decode: cuMemcpyDtoH failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)", errors)


class Demo(unittest.TestCase):
    def test_each_side_has_its_own(self):
        result = PROGRAM.run("demo", "--json", *SMALL, "--memory", "gpu:1", "--decode-memory",
                             "gpu:0")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual([report[side]["memory"] for side in ("prefill", "decode")],
                         ["gpu:1", "gpu:0"])
        self.assertEqual(report["decode"]["bytes_wrong"], 0)

    def test_both_sides_have_the_same(self):
        result = PROGRAM.run("demo", *SMALL, "--memory", "gpu:1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("gpu:1"), 2)
        self.assertEqual(result.stdout.count("every byte right"), 2)


class Mistakes(unittest.TestCase):
    def refused(self, sentence, *arguments, **environment):
        with mock.patch.dict(os.environ, environment):
            result = PROGRAM.run(*arguments)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        command = f"weft {arguments[0]}"
        self.assertEqual(result.stderr, f"{command}: {sentence} (see {command} --help)\n")

    def test_no_such_gpu(self):
        sentence = "--memory: there is no GPU 7: there are 2"
        self.refused(sentence, "decode", "--memory", "gpu:7")
        self.refused(sentence, "demo", "--memory", "gpu:7")
        # Nobody is asked before.
        self.refused(sentence, "prefill", "--peer", "127.0.0.1:1", *SMALL, "--memory", "gpu:7")
        self.refused("--decode-memory: there is no GPU 2: there are 2", "demo",
                     "--decode-memory", "gpu:2")

    def test_no_gpu(self):
        self.refused("--memory: cuInit failed: CUDA_ERROR_NO_DEVICE (100)", "decode", "--memory",
                     "gpu:0", WEFT_CUDA_SIM_GPUS="0")

    def test_as_json(self):
        result = PROGRAM.run("decode", "--memory", "gpu:7", "--json")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--memory: there is no GPU 7: there are 2",
                      json.loads(result.stdout)["error"])

    def test_a_cache_that_the_gpu_has_no_room_for(self):
        result = PROGRAM.run("demo", *SMALL, "--decode-memory", "gpu:0",
                             env=os.environ | {"WEFT_CUDA_SIM_MEMORY": "1048576"})
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^weft demo: decode: cuMemAlloc of \S+ MiB on GPU 0 "
                                        r"failed: CUDA_ERROR_OUT_OF_MEMORY \(2\)")


if __name__ == "__main__":
    unittest.main()
