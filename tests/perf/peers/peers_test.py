"""The parts of perf/peers that need no peers, and the command where there are none.

Usage: peers_test.py PERF-PEERS-FOLDER BUILD-FOLDER [unittest arguments]
"""

import collections
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from programs import PATIENCE, Program, children_of, is_running  # noqa: E402

PEERS, BUILD = sys.argv.pop(1), sys.argv.pop(1)
sys.path.insert(0, PEERS)
from campaign import Campaign, MOST_FAILURES, Results, turns  # noqa: E402
from cell import (ALL, ALONE, BANDWIDTH, LATENCY, TOGETHER, Cell, Took, cells_of,  # noqa: E402
                  parse_bytes, show_bytes)
from children import Child, Failed, output_of, started  # noqa: E402
from command import facts  # noqa: E402
from memory import TILE_BYTES, HostMemory  # noqa: E402
from picture import script  # noqa: E402
from report import markdown, ratios  # noqa: E402
from side import Side  # noqa: E402
from spread import quantile, ratio, spread  # noqa: E402
from ucx import parse_csv, parse_version  # noqa: E402
from weft_perf import Weft, WeftPerf  # noqa: E402

# As ucx_perftest 1.13.1 prints them.
BANDWIDTH_TEXT = """\
[1795363668.545675] [vm:17799:0]        perftest.c:900  UCX  WARN  CPU affinity is not set (bound to 4 cpus). Performance may be impacted.
iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
2000,5.583,32.658,32.658,1913.77,1913.77,30620,30620
"""
LATENCY_TEXT = """\
iterations,99.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
2000,134.652,18.879,18.879,206.90,206.90,52968,52968
"""
REFUSED = """\
[1795363082.709057] [vm:3922 :0]        perftest.c:405  UCX  ERROR client failed. connect() failed: Connection refused
"""


class UcxPerftest(unittest.TestCase):
    def test_figures_go_by_the_names_above_them(self):
        self.assertEqual(parse_csv(BANDWIDTH_TEXT)["overall_bw"], 1913.77)
        self.assertEqual(parse_csv(LATENCY_TEXT)["99.0_percentile_lat"], 134.652)

    def test_the_last_figures_count(self):
        self.assertEqual(parse_csv(BANDWIDTH_TEXT + LATENCY_TEXT)["overall_bw"], 206.90)

    def test_no_figures_are_a_failure(self):
        heading = BANDWIDTH_TEXT.splitlines()[1]
        for text in ("", REFUSED, heading, heading + "\n2000,5.5\n",
                     heading + "\n2000,5.583,32.658,32.658,1913.77,much,30620,30620\n"):
            with self.subTest(text), self.assertRaises(Failed):
                parse_csv(text)

    def test_version(self):
        self.assertEqual(parse_version("# Version 1.13.1\n# Git branch '<unknown>'\n"), "1.13.1")
        self.assertEqual(parse_version("# Library version: 1.18.0\n"), "1.18.0")
        self.assertEqual(parse_version(""), "unknown")


class Statistics(unittest.TestCase):
    def test_spread(self):
        self.assertEqual(spread([3, 9, 1]), (3, 1, 9))

    def test_quantile(self):
        self.assertEqual(quantile(range(1, 101), 0.5), 50)
        self.assertEqual(quantile(range(1, 101), 0.99), 99)
        self.assertEqual(quantile([7], 0.01), 7)

    def test_a_ratio_is_of_rounds_that_both_have(self):
        self.assertEqual(ratio({0: 4, 1: 6, 2: 100}, {0: 2, 1: 3, 3: 1}), (2, 2, 2))
        self.assertIsNone(ratio({0: 1}, {1: 1}))

    def test_rounds_are_paired(self):
        """The machine was three times slower in some rounds, for both alike."""
        theirs = {n: 1.0 if n % 2 else 3.0 for n in range(9)}
        ours = {n: 2 * value for n, value in theirs.items()}
        self.assertEqual(ratio(ours, theirs), (2, 2, 2))

    def test_an_interval_holds_the_median_and_grows_with_the_spread(self):
        calm = ratio({n: 2 + n / 100 for n in range(7)}, dict.fromkeys(range(7), 1))
        wild = ratio({n: 2 + n for n in range(7)}, dict.fromkeys(range(7), 1))
        for middle, low, high in (calm, wild):
            self.assertTrue(low < middle < high)
        self.assertGreater(wild[2] - wild[1], 10 * (calm[2] - calm[1]))


class Turns(unittest.TestCase):
    CELLS, NAMES = ["small", "large", "huge"], ["a", "b", "c", "d"]

    def order(self, seed, rounds=5):
        return list(turns(self.CELLS, self.NAMES, rounds, seed))

    def test_each_peer_has_its_turn_in_each_cell_of_each_round(self):
        counts = collections.Counter(self.order(seed=3))
        self.assertEqual(len(counts), 5 * len(self.CELLS) * len(self.NAMES))
        self.assertEqual(set(counts.values()), {1})

    def test_peers_of_a_cell_follow_one_another(self):
        order, step = self.order(seed=3), len(self.NAMES)
        for start in range(0, len(order), step):
            self.assertEqual(len({each[:2] for each in order[start:start + step]}), 1)

    def test_order_changes_with_the_round_and_the_seed_alone(self):
        self.assertEqual(self.order(seed=1), self.order(seed=1))
        self.assertNotEqual(self.order(seed=1), self.order(seed=2))
        first = {tuple(each[2] for each in self.order(seed=1, rounds=20)[start:start + 4])
                 for start in range(0, 240, 4)}
        self.assertGreater(len(first), 10)


class Cells(unittest.TestCase):
    def test_bytes(self):
        self.assertEqual([parse_bytes(text) for text in ("1", "64K", "2M", "1G")],
                         [1, 65536, 2 << 20, 1 << 30])
        self.assertEqual([show_bytes(count) for count in (1000, 65536, 3 << 20)],
                         ["1000 B", "64 KiB", "3 MiB"])
        for text in ("", "0", "-1", "64k", "1.5M", "M"):
            with self.subTest(text), self.assertRaises(ValueError):
                parse_bytes(text)

    def test_as_many_bytes_each_and_each_slot_twice(self):
        self.assertEqual(cells_of([1 << 20, 64 << 20], [1, 16], 512 << 20),
                         [Cell(1 << 20, 1, 512), Cell(64 << 20, 1, 8), Cell(1 << 20, 16, 512),
                          Cell(64 << 20, 16, 32)])


class Options(unittest.TestCase):
    def test_options_are_looked_up_in_the_help(self):
        perf = WeftPerf.__new__(WeftPerf)
        perf.help = "  --memory LIST ...    host (the default), shared\n  --peer-memory LIST   node:N\n"
        self.assertTrue(perf.knows([]))
        self.assertTrue(perf.knows(["--memory", "shared"]))
        for unknown in (["--memory", "node:N"], ["--memory", "share"], ["--progress", "manual"],
                        ["--memory", "shared", "--engine-progress", "manual"],
                        ["--memory", "shared", "--one-buffer"], ["--one-buffer"]):
            self.assertFalse(perf.knows(unknown), unknown)
        self.assertFalse(perf.knows(["--gpu-path", "staged"]))
        perf.help += "  --gpu-path LIST   lent (one copies), or\n                    staged\n"
        self.assertTrue(perf.knows(["--gpu-path", "staged"]))
        self.assertFalse(perf.knows(["--memory", "staged"]))
        perf.help += "  --one-buffer    All operations\n"
        self.assertTrue(perf.knows(["--one-buffer"]))
        self.assertTrue(perf.knows(["--one-buffer", "--memory", "shared"]))
        self.assertFalse(perf.knows(["--one-buffer", "--memory", "share"]))

    def test_all_buffers_that_there_are_have_to_be_compared(self):
        cell = Cell(4096, 16, 16)
        perf = WeftPerf.__new__(WeftPerf)
        for options, buffers in (([], 16), (["--one-buffer"], 1)):
            peer = Weft(perf, "shm", "weft", options, [])
            for missing, wrong in ((0, 0), (1, 0), (0, 1)):
                perf.point = lambda *_, c=buffers * cell.size - missing, w=wrong: {
                    "bytes_checked": c, "bytes_wrong": w}
                if missing or wrong:
                    with self.assertRaisesRegex(Failed, "are wrong"):
                        peer.check(cell, PATIENCE)
                else:
                    peer.check(cell, PATIENCE)

    def test_who_needs_an_option_that_is_unknown_does_not_start(self):
        perf = WeftPerf.__new__(WeftPerf)
        perf.help = "  --memory LIST    host\n"
        with self.assertRaisesRegex(Failed, "does not know --memory shared"):
            Weft(perf, "shm", "weft-shared", ["--memory", "shared"], []).start(1)


class Patterns(unittest.TestCase):
    LENGTH = 4 << 20

    def setUp(self):
        self.memory = HostMemory(self.LENGTH)

    def bytes_at(self, offset, length):
        import ctypes
        return (ctypes.c_char * length).from_address(self.memory.address + offset)

    def test_what_was_filled_is_right(self):
        self.memory.fill(self.LENGTH, seed=5)
        self.assertIsNone(self.memory.first_wrong(self.LENGTH, seed=5))
        self.assertEqual(self.memory.first_wrong(self.LENGTH, seed=6), 0)

    def test_one_wrong_byte_is_found(self):
        self.memory.fill(self.LENGTH, seed=5)
        last = self.bytes_at(self.LENGTH - 1, 1)
        last[0] = bytes([last[0][0] ^ 1])
        self.assertEqual(self.memory.first_wrong(self.LENGTH, seed=5),
                         (self.LENGTH - 1) // TILE_BYTES * TILE_BYTES)

    def test_a_slot_in_anothers_place_is_found(self):
        self.memory.fill(self.LENGTH, seed=5)
        for slot in (4096, 65536, 1 << 20, 2 << 20):
            self.memory.fill(self.LENGTH, seed=5)
            self.bytes_at(slot, slot)[:] = self.bytes_at(0, slot)[:]
            self.assertIsNotNone(self.memory.first_wrong(self.LENGTH, seed=5), slot)


class Slots(Side):
    """Writes that end by themselves after some polls; notes how many are in flight."""

    def __init__(self, polls):
        super().__init__(4096)
        self.polls, self.waiting, self.begun, self.most = polls, {}, [], 0

    def prepare(self, size, window):
        self.shape = size, window

    def begin(self, slot):
        assert slot not in self.waiting, "a slot is begun again while it is in flight"
        self.waiting[slot] = self.polls
        self.begun.append(slot)
        self.most = max(self.most, len(self.waiting))

    def ended(self, slot):
        self.waiting[slot] -= 1
        if self.waiting[slot] > 0:
            return False
        del self.waiting[slot]
        return True


class Windows(unittest.TestCase):
    def test_the_window_is_kept_full_and_all_end(self):
        side = Slots(polls=3)
        self.assertGreater(side.write(size=8, window=4, count=22, limit=PATIENCE), 0)
        self.assertEqual((side.most, len(side.begun), side.waiting), (4, 4 + 22, {}))

    def test_latencies_are_of_one_at_a_time(self):
        side = Slots(polls=2)
        self.assertEqual(len(side.latencies(size=8, count=9, limit=PATIENCE)), 9)
        self.assertEqual(side.most, 1)

    def test_what_never_ends_is_given_up(self):
        with self.assertRaisesRegex(TimeoutError, "2 of 2 writes"):
            Slots(polls=10**9).write(size=8, window=2, count=4, limit=0.05)


class Children(unittest.TestCase):
    def test_a_failure_says_the_last_lines(self):
        with self.assertRaisesRegex(Failed, "sh ended with 3:\n    one\n    two"):
            output_of(["sh", "-c", "echo one; echo two >&2; exit 3"], PATIENCE)

    def test_a_limit_ends_all_that_was_started(self):
        begun = time.monotonic()
        with started(["sh", "-c", "sleep 300 & echo $!; wait"]) as child:
            grandchild = int(child.line(begun + PATIENCE))
            with self.assertRaisesRegex(Failed, "took too long"):
                child.output(time.monotonic() + 0.05)
        self.assertLess(time.monotonic() - begun, PATIENCE)
        while is_running(grandchild):  # Until the kernel has seen to it.
            self.assertLess(time.monotonic() - begun, PATIENCE)
            time.sleep(0.01)

    def test_a_frozen_side_ends_too(self):
        child = Child(["cat"])
        child.freeze()
        child.end()
        self.assertIsNotNone(child.process.returncode)

    def test_a_side_that_has_gone_is_a_failure(self):
        with started(["true"]) as child:
            child.process.wait(PATIENCE)
            with self.assertRaisesRegex(Failed, "has ended"):
                child.ask(PATIENCE, "introduce")

    def test_a_side_that_complains_is_a_failure(self):
        with started(["sh", "-c", "read line; echo '{\"error\": \"no\"}'"]) as child:
            with self.assertRaisesRegex(Failed, "says no"):
                child.ask(PATIENCE, "write", size=1)


def descendants_of(pid):
    """Those that are there at a look."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        children = children_of(pid)
        return children + [each for child in children for each in descendants_of(child)]
    return []


class Fake:
    """A peer that fails so often before it works."""

    software, checks, figures, cpu = "fake", "every byte", ALL, None

    def __init__(self, name, speed, failures=0, starts=True, failure=None):
        self.name, self.speed, self.failures, self.starts = name, speed, failures, starts
        self.failure = failure or Failed(f"{name} broke:\n    first\n    at last")
        self.running = 0

    def start(self, memory_bytes):
        self.memory_bytes = memory_bytes
        if not self.starts:
            raise Failed(f"there is no {self.name}; get it")
        self.running += 1

    def end(self):
        self.running = 0

    def version(self):
        return "1.0"

    def check(self, cell, limit):
        pass

    def measure(self, cell, limit):
        if self.failures:
            self.failures -= 1
            raise self.failure
        return Took(cell.bytes / self.speed / 1e9, self.cpu)

    def latency(self, cell, limit):
        return self.speed, 2 * self.speed


SETTINGS = types.SimpleNamespace(limit=1, rounds=4, seed=1, latency_size=4096, latency_count=10)


class Campaigns(unittest.TestCase):
    def run_with(self, *peers, until=float("inf")):
        results, told = Results(), []
        Campaign("tcp", list(peers), [Cell(65536, 1, 4), Cell(65536, 16, 32)], SETTINGS, results,
                 told.append, until).run()
        self.assertEqual([peer.running for peer in peers], [0] * len(peers))
        return results, "\n".join(told)

    def test_all_is_measured_and_compared(self):
        results, _ = self.run_with(Fake("weft", 6), Fake("ucx-put", 2), Fake("ucx-tag", 3))
        self.assertEqual(len(results.samples), 4 * 2 * 3)
        self.assertEqual(len(results.latencies), 4 * 3)
        self.assertEqual(len(results.checked), 2 * 3)
        found = ratios(results.samples)
        self.assertEqual({(r["peer"], r["way"], round(r["ratio"], 6)) for r in found},
                         {("ucx", "ucx-tag", 2.0)})
        text = markdown(results, facts(), found)
        self.assertIn("| 64 KiB | 6.00 (6.00-6.00) | 2.00 (2.00-2.00) | 3.00 (3.00-3.00) |", text)
        self.assertIn("| 64 KiB | 2.00 (2.00-2.00) tag |", text)
        self.assertIn("| weft | 6.00 (6.00-6.00) | 12.00 (12.00-12.00) |", text)

    def test_who_is_missing_is_told_and_left_out(self):
        results, told = self.run_with(Fake("weft", 6), Fake("nixl-ucx", 2, starts=False))
        self.assertEqual({each["peer"] for each in results.samples}, {"weft"})
        self.assertIn("without nixl-ucx: there is no nixl-ucx; get it", told)
        self.assertIn("without nixl-ucx: there is no nixl-ucx; get it",
                      markdown(results, facts(), ratios(results.samples)))

    def test_a_failure_costs_one_sample(self):
        results, told = self.run_with(Fake("weft", 6), Fake("mooncake", 2, failures=1))
        self.assertEqual(len(results.samples), 4 * 2 * 2 - 1)
        self.assertIn("mooncake has failed: mooncake broke:\n    first\n    at last", told)
        self.assertIn("failed: mooncake broke: at last",
                      markdown(results, facts(), ratios(results.samples)))

    def test_what_cant_be_read_is_a_failure_too(self):
        for failure in (KeyError("overall_bw"), IndexError("runs"), ZeroDivisionError("speed"),
                        json.JSONDecodeError("no value", "{", 1)):
            with self.subTest(failure):
                results, told = self.run_with(Fake("weft", 6),
                                              Fake("ucx-put", 2, failures=1, failure=failure))
                self.assertEqual(len(results.samples), 4 * 2 * 2 - 1)
                self.assertIn(f"ucx-put has failed: {type(failure).__name__}: {failure}", told)

    def test_memory_is_for_the_largest(self):
        for latency_size, memory in ((4096, 16 * 65536), (16 * 65536 + 1, 16 * 65536 + 1)):
            peer = Fake("weft", 6)
            settings = types.SimpleNamespace(**{**vars(SETTINGS), "latency_size": latency_size})
            Campaign("tcp", [peer], [Cell(65536, 1, 4), Cell(65536, 16, 32)], settings, Results(),
                     lambda _: None, float("inf")).run()
            self.assertEqual(peer.memory_bytes, memory)

    def test_who_fails_again_and_again_is_left_out(self):
        results, told = self.run_with(Fake("weft", 6), Fake("mooncake", 2, failures=100))
        self.assertEqual(len(results.failures), MOST_FAILURES)
        self.assertEqual({each["peer"] for each in results.latencies}, {"weft"})
        self.assertIn("mooncake is left out from here on", told)

    def test_each_is_measured_for_what_it_is_there_for(self):
        fast, slow = Fake("weft", 6), Fake("ucx-put", 2)
        fast.figures, slow.figures = BANDWIDTH, (LATENCY,)
        results, _ = self.run_with(fast, slow)
        self.assertEqual({each["peer"] for each in results.samples + results.checked}, {"weft"})
        self.assertEqual({each["peer"] for each in results.latencies}, {"ucx-put"})

    def test_who_is_there_for_some_windows_is_measured_and_shown_in_those(self):
        alone, together = Fake("weft-alone", 6), Fake("weft-together", 3)
        alone.figures, together.figures = (ALONE,), (TOGETHER, LATENCY)
        results, _ = self.run_with(Fake("ucx-put", 2), alone, together)
        for found in (results.samples, results.checked):
            self.assertEqual({(each["peer"], each["window"]) for each in found},
                             {("ucx-put", 1), ("ucx-put", 16), ("weft-alone", 1),
                              ("weft-together", 16)})
        self.assertEqual(len(results.samples), 4 * 4)
        self.assertEqual({each["peer"] for each in results.latencies},
                         {"ucx-put", "weft-together"})
        self.assertEqual({(each["weft"], each["window"]) for each in ratios(results.samples)},
                         {("weft-alone", 1), ("weft-together", 16)})
        text = markdown(results, facts(), ratios(results.samples))
        self.assertIn("| bytes | weft-alone | ucx-put |", text)
        self.assertIn("| bytes | weft-together | ucx-put |", text)
        self.assertEqual(script(results.samples, "out.svg").count('title "weft-'), 2)

    def test_cpu_is_shown_of_those_that_tell_it(self):
        weft, nixl = Fake("weft", 6), Fake("nixl-ucx", 2)
        weft.cpu, nixl.cpu = 0.25, 1.5
        results, _ = self.run_with(weft, nixl, Fake("ucx-put", 4))
        table = markdown(results, facts(), []).partition("1 in flight: CPU seconds")[2]
        self.assertEqual(table.splitlines()[2:5],
                         ["| bytes | weft | nixl-ucx |", "| --- | --- | --- |",
                          "| 64 KiB | 0.25 (0.25-0.25) | 1.50 (1.50-1.50) |"])

    def test_when_the_time_is_over_the_round_is_the_last(self):
        results, told = self.run_with(Fake("weft", 6), Fake("mooncake", 2), until=time.monotonic())
        self.assertEqual(len(results.samples), 2 * 2)
        self.assertIn("no time for more rounds", told)

    def test_picture_has_a_line_for_each_peer(self):
        results, _ = self.run_with(Fake("weft", 6), Fake("mooncake", 2))
        text = script(results.samples, "out.svg")
        self.assertEqual(text.count('title "weft"'), 2)
        self.assertEqual(text.count("65536 2.0000"), 2)
        self.assertIn('set title "tcp, 16 in flight"', text)


class Command(unittest.TestCase):
    SHORT = ["--venv", "/nowhere", "--sizes", "64K", "--windows", "1,4", "--rounds", "1",
             "--tcp-bytes", "1M", "--shm-bytes", "1M", "--latency-count", "20"]

    def run_it(self, *arguments):
        with tempfile.TemporaryDirectory() as nothing:  # So that there is no ucx_perftest.
            return subprocess.run([sys.executable, os.path.join(PEERS, "run"), *arguments],
                                  capture_output=True, text=True, timeout=4 * PATIENCE,
                                  env={**os.environ, "PATH": nothing})

    def test_without_peers_weft_and_the_ceilings_are_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results.json")
            done = self.run_it("--build", BUILD, "--json", path, *self.SHORT)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(path, encoding="utf-8") as file:
                results = json.load(file)
        self.assertEqual(results["failures"], [])
        self.assertLessEqual({"ucx-put", "ucx-tag", "nixl-ucx", "mooncake"},
                             {each["peer"] for each in results["skipped"]})
        self.assertRegex(done.stderr, "without ucx-put: there is no ucx_perftest; the package")
        self.assertRegex(done.stderr, "without mooncake: .*pip install mooncake-transfer-engine")
        for fabric, names in (("tcp", {"weft", "socket"}), ("shm", {"weft-own", "memcpy"})):
            here = [each for each in results["samples"] if each["fabric"] == fabric]
            self.assertLessEqual(names, {each["peer"] for each in here})
            for each in here:
                self.assertGreater(each["gigabytes_per_second"], 0)
        self.assertLessEqual({("tcp", "weft"), ("shm", "weft-own")},
                             {(each["fabric"], each["peer"]) for each in results["checked"]})
        for found in (results["samples"], results["checked"]):
            self.assertEqual({each["window"] for each in found
                              if each["peer"] == "weft-shared-one-buffer"}, {4})
        self.assertIn("### shm, 4 in flight: GB/s", done.stdout)

    def test_others_compute_beside_it(self):
        done = self.run_it("--build", BUILD, "--busy", "2", "--fabrics", "tcp", *self.SHORT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("; beside 2 processes that compute; ", done.stdout)

    def test_an_interrupted_run_tells_what_it_has_and_leaves_nothing(self):
        command = Program(sys.executable).started(
            os.path.join(PEERS, "run"), "--build", BUILD, "--fabrics", "shm", "--sizes", "64K",
            "--rounds", "1000", "--shm-bytes", "1M", "--busy", "1")
        with command as process:
            while "round 1 of 1000 done" not in (line := process.stderr.readline()):
                self.assertTrue(line, "it ended by itself")
            until = time.monotonic() + PATIENCE
            while len(begun := descendants_of(process.pid)) < 3:  # weft-perf, its target, one computes.
                self.assertLess(time.monotonic(), until)
            process.terminate()
            out, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 130)
        self.assertIn("### shm, 16 in flight: GB/s", out)
        until = time.monotonic() + PATIENCE
        while any(map(is_running, begun)):  # Until the kernel has seen to it.
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)

    def test_without_weft_it_fails_with_a_sentence(self):
        done = self.run_it("--build", "/nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "perf/peers/run: there is no /nowhere/perf/weft-perf")

    def test_outputs_are_tried_before_anything_is_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            for option, path in (("--json", "/nowhere/x.json"), ("--markdown", folder),
                                 ("--plot", "/nowhere/x.svg")):
                with self.subTest(option):
                    done = self.run_it("--build", BUILD, option, path, *self.SHORT)
                    self.assertEqual((done.returncode, done.stdout), (1, ""))
                    self.assertEqual(done.stderr, f"perf/peers/run: {path} can't be written\n")
            path = os.path.join(folder, "x.svg")
            done = self.run_it("--build", BUILD, "--plot", path, *self.SHORT)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr, "perf/peers/run: there is no gnuplot to draw with\n")
            self.assertEqual(os.listdir(folder), [])

    def test_bad_arguments_are_refused(self):
        for bad in (["--sizes", "64k"], ["--fabrics", "efa"], ["--rounds", "0"], ["--busy", "-1"]):
            with self.subTest(bad):
                self.assertEqual(self.run_it(*bad).returncode, 2)

    def test_names_that_mean_nothing_or_two_are_refused(self):
        for bad, why in ((["--without", "ucx"], "'ucx' is none of .*ucx-put"),
                         (["--also", "manual=--rails 1"], "there is a weft-manual already"),
                         (["--also", "a=--rails 1", "--also", "a=--rails 2"],
                          "there is a weft-a already")):
            with self.subTest(bad):
                done = self.run_it("--build", "/nowhere", *bad)
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, why)
        done = self.run_it("--build", "/nowhere", "--also", "a=--rails 1", "--without", "weft-a")
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    unittest.main()
