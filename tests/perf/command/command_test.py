"""The weft-perf command from outside: real processes, their output, exit codes and ends.

Usage: perf_command_test.py WEFT-PERF [--part N/OF] [unittest arguments]
"""

import contextlib
import fcntl
import itertools
import json
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from programs import PATIENCE, Program, children_of, is_running, part_of_tests  # noqa: E402

WEFT_PERF = sys.argv.pop(1)
load_tests = part_of_tests()
SHORT = ["--count", "20", "--repeats", "2", "--warm-up", "0"]
PROGRAM = Program(WEFT_PERF)
weft_perf, started = PROGRAM.run, PROGRAM.started


def target(*arguments):
    """A target that listens, and its address."""
    return PROGRAM.listening("--listen", "127.0.0.1:0", *arguments)


def baselines_of_two(*names):
    """These, and the plain loop where there is a core for each thread of two initiators."""
    return [*names, "raw"] if len(os.sched_getaffinity(0)) >= 4 else [*names]


def until(condition):
    """Waits for something that another process does, and nothing tells of."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.01)


def read_to_step(process, number):
    """Reads what a program says of its progress as far as that step of its sweep."""
    said = ""
    while f"] {number} of" not in said:
        letter = process.stderr.read(1)
        if not letter:
            raise EOFError(said)
        said += letter


def cpu_ticks(pid):
    """The time that a process has computed for."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def one_sentence(self, text):
        lines = [line for line in text.splitlines() if line]
        self.assertEqual(len(lines), 1, text)
        self.assertRegex(lines[0], r"^weft-perf: .")

    def address_beyond_loopback(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))
            except OSError:
                self.skipTest("this machine has no other address")
            return probe.getsockname()[0]

    def fails(self, result, code, pattern):
        self.assertEqual(result.returncode, code, result.stderr + result.stdout)
        self.one_sentence(result.stderr)
        self.assertRegex(result.stderr, pattern)

    def nothing_is_left(self, pids):
        until(lambda: not any(is_running(pid) for pid in pids))
        for pid in pids:
            left = [name for name in os.listdir("/dev/shm") if str(pid) in re.split(r"\W|_", name)]
            self.assertEqual(left, [])

    def succeeds(self, *arguments):
        result = weft_perf(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        return result


class Local(Case):
    def test_json_alone_on_standard_output(self):
        result = self.succeeds("--local", *SHORT, "--size", "1K,64K", "--providers", "tcp,shm",
                               "--operation", "write,read", "--verify", "--json", "-")
        report = json.loads(result.stdout)
        self.assertEqual(report["ended"], "complete")
        self.assertEqual(len(report["points"]), 8)
        self.assertEqual({point["provider"] for point in report["points"]}, {"net", "shm"} if any(
            point["provider"] == "net" for point in report["points"]) else {"tcp", "shm"})
        for point in report["points"]:
            self.assertEqual(point["bytes_wrong"], 0)
            self.assertGreater(point["bytes_checked"], 0)
            self.assertEqual([run["operations"] for run in point["runs"]], [20, 20])
            latency = point["latency_ns"]
            quantiles = [latency[name] for name in ("p50", "p90", "p99", "p99.9", "max")]
            self.assertEqual(quantiles, sorted(quantiles))
            self.assertEqual(sum(count for _, count in point["histogram_ns"]), 40)
        for machine in (report["machines"]["initiator"], *report["machines"]["targets"]):
            self.assertGreater(machine["cores"], 0)
        self.assertEqual(report["settings"]["repeats"], 2)

    def test_tables_fit(self):
        """What does not fit is named; --wide shows all of it."""
        arguments = ["--local", *SHORT, "--model", "gpt-oss-20b", "--tokens", "64", "--tp-size", "2",
                     "--priority", "bulk", "--memory", "shared", "--verify", "--baseline",
                     "contiguous,memcpy", "--time", "0.05"]
        for columns in ("80", "150"):
            result = weft_perf(*arguments, env={**os.environ, "COLUMNS": columns})
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertLessEqual(max(map(len, result.stdout.splitlines())), int(columns))
            self.assertIn("Not shown: ", result.stdout)
        result = self.succeeds(*arguments, "--wide")
        self.assertNotIn("Not shown: ", result.stdout)
        self.assertRegex(result.stdout, r"GB/s +Gb/s +op/s +p50 us +p90 .* rails")

    def test_table(self):
        result = self.succeeds("--local", *SHORT, "--size", "4K:16K", "--baseline",
                               "memcpy,memcpy:2,socket", "--time", "0.05")
        self.assertEqual(len(re.findall(r"^\w+ write ", result.stdout, re.M)), 3)
        self.assertRegex(result.stdout, r"to memcpy +to memcpy:2 +to socket")
        self.assertLessEqual(max(map(len, result.stdout.splitlines())), 100)

    def has_raw(self, *arguments):
        result = self.succeeds(*arguments, *SHORT, "--baseline", "raw", "--time", "0.05",
                               "--verify", "--json", "-")
        for point in json.loads(result.stdout)["points"]:
            raw = point["baselines"]["raw"]
            self.assertEqual(len(raw["gigabytes_per_second"]), 2)
            self.assertGreater(raw["ratio"]["middle"], 0)
            for share in ("p50", "p99"):
                self.assertEqual(len(raw["latency_ns"][share]), 2)
                self.assertGreater(min(raw["latency_ns"][share]), 0)
                self.assertGreater(raw[share + "_ratio"]["middle"], 0)
            for fast, slow in zip(raw["latency_ns"]["p50"], raw["latency_ns"]["p99"]):
                self.assertLessEqual(fast, slow)

    def test_raw_baseline(self):
        self.has_raw("--local", "--providers", "tcp,shm", "--size", "4099", "--operation",
                     "write,read,message")

    def test_a_file_beside_what_it_is_made_of(self):
        path = self.path("pages")
        baselines = ["disk", "wire", *(["fio"] if shutil.which("fio") else [])]
        result = self.succeeds("--local", "--providers", "shm", "--operation", "read", "--size",
                               "64K", "--memory", "host", "--peer-memory", f"file:{path},buffered",
                               "--verify", "--time", "0.2", "--repeats", "1", "--json", "-",
                               "--baseline", ",".join(baselines))
        point, = json.loads(result.stdout)["points"]
        self.assertEqual(set(point["baselines"]), set(baselines))
        self.assertGreater(os.path.getsize(path), 4 * 65536)

    def test_a_target_lends_the_files_that_it_names(self):
        path = self.path("pages")
        with target("--files", path) as (_, address):
            self.succeeds("--peer", address, "--operation", "read,write", "--memory", "host",
                          "--peer-memory", f"file:{path}", "--verify", *SHORT)
        with target() as (_, address):
            result = weft_perf("--peer", address, "--memory", "host", "--peer-memory",
                               f"file:{path}.other", *SHORT)
            self.fails(result, 1, "not lent")
            self.assertFalse(os.path.exists(path + ".other"))

    def test_raw_baseline_whose_target_dies(self):
        for provider in ("tcp", "shm"):
            with self.subTest(provider), target() as (process, address), \
                    started("--peer", address, "--providers", provider, "--baseline", "raw",
                            "--time", "50", "--json", self.path("dead")) as peer:
                for pid in (process.pid, peer.pid):
                    until(lambda pid=pid: children_of(pid))
                sides = [*children_of(process.pid), *children_of(peer.pid)]
                until(lambda pid=sides[1]: cpu_ticks(pid) > 20)
                process.kill()
                _, errors = peer.communicate(timeout=PATIENCE)
                self.assertEqual(peer.returncode, 1, errors)
                self.one_sentence(errors)
                self.nothing_is_left(sides)

    def test_manual_progress(self):
        result = self.succeeds("--local", *SHORT, "--providers", "tcp,shm", "--operation", "signal",
                               "--engine-progress", "manual,threads", "--verify", "--json", "-")
        points = json.loads(result.stdout)["points"]
        self.assertEqual([point["point"]["fabric"]["progress"] for point in points],
                         ["manual", "threads", "manual", "threads"])
        for point in points:
            self.assertEqual(point["bytes_wrong"], 0)
            self.assertGreater(point["bytes_checked"], 0)
        for wrong in (("--rate", "10"), ("--operation", "message")):
            self.fails(weft_perf("--local", "--engine-progress", "manual", *wrong), 2,
                       "manual progress")

    def test_priorities(self):
        result = self.succeeds("--local", *SHORT, "--providers", "shm", "--memory", "shared",
                               "--priority", "latency,normal,bulk", "--verify", "--json", "-")
        points = json.loads(result.stdout)["points"]
        names = ["latency", "normal", "bulk"]
        self.assertEqual([point["point"]["work"]["priority"] for point in points], names)
        self.assertEqual({point["bytes_wrong"] for point in points}, {0})

    def test_one_buffer(self):
        # One thread on each side: several that write the same bytes at once are a race to a
        # sanitizer.
        local = ["--local", *SHORT, "--rails", "1", "--verify"]
        arguments = [*local, "--providers", "tcp,shm", "--operation", "write,read,signal",
                     "--window", "16", "--json", "-"]
        checked = {}
        for options in ((), ("--one-buffer",)):
            points = json.loads(self.succeeds(*arguments, *options).stdout)["points"]
            for point in points:
                self.assertEqual(point["point"]["work"]["one_buffer"], bool(options))
                self.assertEqual(point["bytes_wrong"], 0)
                self.assertEqual([run["operations"] for run in point["runs"]], [20, 20])
            checked[options] = {point["bytes_checked"] for point in points}
        # Two sides' memory in two runs, with what nobody writes to around it.
        self.assertEqual(checked[("--one-buffer",)], {2 * 2 * (65536 + 4096)})
        self.assertEqual(checked[()], {16 * 2 * 2 * (65536 + 4096)})
        result = self.succeeds(*local, "--one-buffer", "--window", "8", "--time", "0.05",
                               "--baseline", ",".join(baselines_of_two("memcpy", "contiguous")),
                               "--initiators", "1,2", "--targets", "2")
        self.assertRegex(result.stdout, r"(?m)^\w+ write .* window 8, 2 peers rails 1, one buffer")

    def test_kv_cache_and_rate(self):
        result = self.succeeds("--local", *SHORT, "--model", "gpt-oss-20b", "--tokens", "64",
                               "--operation", "signal", "--verify", "--rate", "500", "--json", "-")
        point = json.loads(result.stdout)["points"][0]
        self.assertEqual(point["point"]["work"]["size"], 64 * 24 * 2 * 8 * 64 * 2)
        self.assertEqual(point["bytes_wrong"], 0)

    def test_caches_of_several_shapes(self):
        result = self.succeeds("--local", *SHORT, "--model", "gpt-oss-20b,Qwen3-8B", "--tokens",
                               "64", "--tp-size", "1,2", "--dtype", "fp8", "--block-tokens", "32",
                               "--window", "1", "--verify", "--json", "-")
        points = json.loads(result.stdout)["points"]
        shapes = [point["point"]["work"]["kv"] for point in points]
        self.assertEqual([(kv["model"], kv["dtype"], kv["block_tokens"], kv["tp"]) for kv in shapes],
                         list(itertools.product(("gpt-oss-20b", "Qwen3-8B"), ("fp8",), (32,), (1, 2))))
        self.assertEqual({point["bytes_wrong"] for point in points}, {0})
        self.assertEqual(points[0]["point"]["work"]["size"], 2 * points[1]["point"]["work"]["size"])
        self.fails(weft_perf("--local", "--tp-size", "2"), 2, "--model")
        result = self.succeeds("--local", *SHORT, "--model", "DeepSeek-V3.2", "--tokens", "64",
                               "--pp-size", "1,2", "--window", "1", "--verify", "--json", "-")
        points = json.loads(result.stdout)["points"]
        self.assertEqual({point["bytes_wrong"] for point in points}, {0})
        sizes = [point["point"]["work"]["size"] for point in points]
        self.assertEqual(sizes[0] * 31, sizes[1] * 61)
        self.fails(weft_perf("--local", "--model", ""), 2, "--model")

    def test_settings_are_with_the_results(self):
        result = weft_perf(
            "--local", *SHORT, "--timeout", "50", "--json", "-",
            env={**os.environ, "WEFT_RAILS": "1", "FI_TEST_SECRET": "told to nobody"})
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(document["settings"]["timeout_seconds"], 50)
        for machine in (document["machines"]["initiator"], *document["machines"]["targets"]):
            self.assertEqual(machine["environment"]["WEFT_RAILS"], "1")
        self.assertNotIn("told to nobody", result.stdout)

    def test_plan(self):
        self.succeeds("--local", *SHORT, "--size", "64K:1M:x4", "--json", self.path("fabric"))
        arguments = ["plan", "--model", "Llama-3.1-8B", "--tokens", "4K", "--prefill-seconds", "0.5",
                     "--fabric", self.path("fabric")]
        result = self.succeeds(*arguments)
        self.assertIn("512.00 MiB from rank 0", result.stdout)
        self.assertIn("beyond what was measured", result.stdout)
        plan = json.loads(self.succeeds(*arguments, "--json").stdout)
        self.assertGreater(plan["predictions"][0]["seconds"], 0)
        self.fails(weft_perf("plan", "--model", "Llama-3.1-8B"), 2, "--tokens|--fabric")
        without = self.succeeds(*arguments[:5], *arguments[7:])
        self.assertIn("With --prefill-seconds", without.stdout)
        self.assertNotIn("of TTFT", without.stdout)
        self.fails(weft_perf(*arguments, "--layer-groups", "33"), 1, "32 layers")
        arguments[2] = "nobody"
        self.fails(weft_perf(*arguments), 2, "no model 'nobody'")

    def test_weights(self):
        with open(self.path("config"), "w", encoding="ascii") as config:
            json.dump({"model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
                       "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
                       "vocab_size": 200, "torch_dtype": "bfloat16"}, config)
        self.succeeds("weights", "--config", self.path("config"), "--trainers", "fsdp=2",
                      "--ranks", "replicas=2", "--bytes", "1M", "--steps", "2", "--fan-out",
                      "chain", "--providers", "shm", "--json", self.path("steps"))
        with open(self.path("steps"), encoding="ascii") as steps:
            found = json.load(steps)
        self.assertEqual((found["fan_out"], found["wrong_bytes"]), ("chain", 0))
        self.assertEqual(found["checked_bytes"], 2 * found["model_bytes"])
        self.assertEqual(sum(found["sent_bytes"]), found["model_bytes"])
        self.assertEqual(len(found["seconds"]), 2)
        self.fails(weft_perf("weights", "--config", self.path("nothing")), 1, "can't be read")

    def test_progress_is_on_standard_error(self):
        result = self.succeeds("--local", *SHORT, "--progress", "always")
        self.assertRegex(result.stderr, r"\[\.{20}\] 1 of 2, repeat 1: write 64.00 KiB, window 4")
        self.assertRegex(result.stderr, r"\[#{10}\.{10}\] 2 of 2, .* left, repeat 2: "
                         r"write 64.00 KiB, window 4 \(before: [\d.]+ GB/s\)")
        self.assertNotIn("\r", result.stdout)

    def test_progress_keeps_to_a_terminals_line(self):
        terminal, end = pty.openpty()
        with open(terminal, "rb", buffering=0) as shown, open(end, "wb", buffering=0) as stderr:
            fcntl.ioctl(stderr, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
            subprocess.run([WEFT_PERF, "--local", *SHORT], stdout=subprocess.DEVNULL, stderr=stderr,
                           timeout=PATIENCE, check=True)
            lines = re.findall(rb"\r([^\x1b]*)\x1b\[K", shown.read(4096))
        self.assertIn(39, [len(line) for line in lines])
        self.assertLess(max(len(line) for line in lines), 40)

    def test_one_piece_has_no_pattern(self):
        arguments = ["--local", *SHORT, "--pattern", "contiguous,random", "--json", "-"]
        for pieces, patterns in (("1", ["contiguous"]),
                                 ("1,4", ["contiguous", "contiguous", "random"])):
            report = json.loads(self.succeeds(*arguments, "--pieces", pieces).stdout)
            self.assertEqual([point["point"]["work"]["pattern"] for point in report["points"]],
                             patterns)

    def test_signals_to_a_target_that_gets_none(self):
        self.succeeds("--local", "--operation", "signal", "--targets", "3", "--count", "1",
                      "--repeats", "1", "--warm-up", "0", "--timeout", "5")

    def test_compare(self):
        short = ["--local", "--count", "20", "--repeats", "6", "--warm-up", "0"]
        self.succeeds(*short, "--json", self.path("now"))
        with open(self.path("now"), encoding="utf-8") as file:
            old = json.load(file)
        # As if everything had been a million times faster: what a loaded machine does counts little.
        for run in old["points"][0]["runs"]:
            run["gigabytes_per_second"] *= 1e6
        with open(self.path("old"), "w", encoding="utf-8") as file:
            json.dump(old, file)
        result = weft_perf(*short, "--compare", self.path("old"))
        self.assertEqual(result.returncode, 3, result.stderr + result.stdout)
        self.assertRegex(result.stdout, r"GB/s +0\.00\d .* WORSE")
        self.assertEqual(result.stderr, "")
        result = weft_perf(*short, "--size", "1K", "--compare", self.path("old"))
        self.fails(result, 1, "old has none of these points")
        self.assertIn("1 point was not measured before", " ".join(result.stdout.split()))
        result = weft_perf("--local", *SHORT, "--compare", self.path("old"))
        self.assertEqual(result.returncode, 1, result.stderr)
        few, nothing = result.stderr.splitlines()
        self.assertRegex(few, "2 repeats can't tell .* 6 are needed")
        self.assertRegex(nothing, "the comparison with .*old tells nothing")
        self.assertIn("can't tell of 3: 2 repeats", result.stdout)


class SeveralInitiators(Case):
    def measured(self, initiators, *arguments):
        """The points of a sweep, which hold together."""
        result = self.succeeds("--local", "--initiators", initiators, "--count", "60", "--repeats",
                               "2", "--warm-up", "0", "--verify", "--json", "-", *arguments)
        report = json.loads(result.stdout)
        self.assertEqual(report["ended"], "complete")
        for point in report["points"]:
            self.assertEqual(point["bytes_wrong"], 0)
            self.assertEqual(sum(count for _, count in point["histogram_ns"]), 120)
            number = point["point"]["initiators"]
            work = point["point"]["work"]
            memory = number * point["point"]["peers"] * work["window"] * work["size"]
            self.assertGreaterEqual(point["bytes_checked"], 2 * memory)
            for run in point["runs"]:
                self.assertEqual(run["operations"], 60)
                self.hold_together(run, run.get("initiators", [run | {"begun_seconds": 0}]), number)
            if number > 1:
                self.assertGreater(point["shares"]["least"], 0)
                self.assertLessEqual(point["shares"]["least"], 1 / number)
                self.assertGreaterEqual(point["shares"]["greatest"], 1 / number)
        return report["points"]

    def hold_together(self, run, shares, number):
        """A run is what its initiators did, over the interval that they did it in."""
        self.assertEqual(len(shares), number)
        for name in ("operations", "bytes"):
            self.assertEqual(sum(share[name] for share in shares), run[name])
        self.assertEqual(min(share["begun_seconds"] for share in shares), 0)
        self.assertAlmostEqual(max(share["begun_seconds"] + share["seconds"] for share in shares),
                               run["seconds"])
        self.assertAlmostEqual(run["bytes"] / run["seconds"] / 1e9, run["gigabytes_per_second"])

    def test_many_to_one(self):
        points = self.measured("1:3:+1", "--providers", "tcp,shm", "--operation", "write,signal")
        self.assertEqual([point["point"]["initiators"] for point in points],
                         2 * [1, 1, 2, 2, 3, 3])
        self.assertEqual({point["point"]["peers"] for point in points}, {1})

    def test_manual_progress(self):
        self.measured("2", "--engine-progress", "manual", "--operation", "write,signal")

    def test_rate_is_that_of_all(self):
        """600 operations a second, of which 300 take half a second on average, whoever begins."""
        result = self.succeeds("--local", "--initiators", "1,3", "--rate", "600", "--count", "300",
                               "--time", "50", "--repeats", "1", "--warm-up", "0", "--size", "1K",
                               "--json", "-")
        for point in json.loads(result.stdout)["points"]:
            # Of 100 and of 300 intervals at least: six standard deviations or more.
            self.assertGreater(point["runs"][0]["seconds"], 0.2)
            self.assertLess(point["runs"][0]["operations_per_second"], 1500)

    def test_table_and_compare(self):
        arguments = ["--local", "--count", "20", "--repeats", "6", "--warm-up", "0"]
        result = self.succeeds(*arguments, "--initiators", "1,2", "--json", self.path("old"),
                               "--baseline", "contiguous")
        self.assertRegex(result.stdout, r"(?s)window 4, 2 initiators\s.* each [\d.]+-[\d.]+ %")
        result = weft_perf(*arguments, "--initiators", "3", "--compare", self.path("old"))
        self.fails(result, 1, "old has none of these points")
        self.assertIn("1 point was not measured before", " ".join(result.stdout.split()))

    def test_baselines_are_of_as_many(self):
        names = baselines_of_two("contiguous", "memcpy", "memcpy:2")
        result = self.succeeds("--local", "--initiators", "1,2", *SHORT, "--baseline",
                               ",".join(names), "--time", "0.05", "--providers", "tcp,shm",
                               "--json", "-")
        for point in json.loads(result.stdout)["points"]:
            self.assertEqual(sorted(point["baselines"]), sorted(names))
            for baseline in point["baselines"].values():
                self.assertGreater(min(baseline["gigabytes_per_second"]), 0)
                self.assertGreater(baseline["ratio"]["middle"], 0)

    def test_against_targets_that_listen(self):
        secret = self.path("secret")
        with open(os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write("0123456789abcdef\n")
        with target("--secret-file", secret) as (_, first), \
                target("--secret-file", secret) as (_, second):
            for peers in (first, f"{first},{second}"):
                self.succeeds("--peer", peers, "--initiators", "2", *SHORT, "--verify",
                              "--secret-file", secret)

    @contextlib.contextmanager
    def measuring(self, *arguments):
        """Three initiators that measure for an hour, and their processes after the target's."""
        with started("--local", "--initiators", "3", "--time", "3600", "--warm-up", "0",
                     "--progress", "always", "--json", self.path("part"), *arguments) as process:
            read_to_step(process, 1)
            children = children_of(process.pid)
            self.assertEqual(len(children), 4)
            begun = [cpu_ticks(child) for child in children[1:]]
            until(lambda: all(cpu_ticks(child) > ticks + 3
                              for child, ticks in zip(children[1:], begun)))
            yield process, children

    def has_failed(self, process, children, pattern):
        _, errors = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1, errors)
        self.assertRegex(errors, pattern)
        with open(self.path("part"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["ended"], "failed")
        self.nothing_is_left(children)

    def test_killed_initiator(self):
        for provider in ("tcp", "shm"):
            with self.measuring("--providers", provider) as (process, children):
                os.kill(children[2], signal.SIGKILL)
                self.has_failed(process, children, r"initiator 1: .*peer_down\)")

    def test_frozen_initiator(self):
        with unittest.mock.patch.dict(os.environ, {"WEFT_DEATH_AFTER": "5s"}):
            with self.measuring("--timeout", "7") as (process, children):
                os.kill(children[3], signal.SIGSTOP)
                self.has_failed(process, children, "initiator 2: ")

    def test_killed_target(self):
        with self.measuring("--timeout", "10") as (process, children):
            os.kill(children[0], signal.SIGKILL)
            self.has_failed(process, children, "peer_down|initiator")

    def test_interrupt(self):
        for provider in ("tcp", "shm"):
            with self.measuring("--providers", provider) as (process, children):
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=PATIENCE)
                self.assertEqual(process.returncode, 130, errors)
                self.nothing_is_left([process.pid, *children])

    def test_killed_measurer_leaves_nobody(self):
        with self.measuring() as (process, children):
            process.kill()
            process.wait(PATIENCE)
            until(lambda: not any(is_running(child) for child in children))

    def test_none_that_can_start(self):
        result = weft_perf("--local", "--initiators", "2", "--nics", "no-such-nic", *SHORT)
        self.fails(result, 1, "no-such-nic")


class InitiatorsElsewhere(Case):
    """As far as one machine can show: processes that were started before, by others."""

    def setUp(self):
        super().setUp()
        self.sides = contextlib.ExitStack()
        self.addCleanup(self.sides.close)

    def listening(self, count, *arguments):
        """Processes, and their addresses."""
        return zip(*(self.sides.enter_context(target(*arguments)) for _ in range(count)))

    def measured(self, *arguments):
        result = self.succeeds(*SHORT, "--verify", "--json", "-", *arguments)
        report = json.loads(result.stdout)
        for point in report["points"]:
            self.assertEqual(point["bytes_wrong"], 0)
            work, number = point["point"]["work"], point["point"]["initiators"]
            memory = number * point["point"]["peers"] * work["window"] * work["size"]
            self.assertGreaterEqual(point["bytes_checked"], 2 * memory)
        return report

    def test_many_to_many(self):
        _, addresses = self.listening(5)
        first, second, *targets = addresses
        report = self.measured("--peer", ",".join(targets), "--from", f"{first},here,{second}",
                               "--initiators", "1,3", "--providers", "tcp,shm", "--operation",
                               "write,message", "--baseline", "contiguous")
        places = [first, "here", second]
        self.assertEqual([machine["at"] for machine in report["machines"]["initiators"]],
                         [first, second])
        self.assertEqual(report["settings"]["from"], places)
        self.assertEqual(len(report["points"]), 2 * 2 * 2)
        for point in report["points"]:
            number = point["point"]["initiators"]
            self.assertEqual(point["point"]["peers"], 3)
            for run in point["runs"]:
                self.assertEqual(run["operations"], 20)
                shares = run["initiators"]
                self.assertEqual([share["at"] for share in shares], places[:number])
                self.assertEqual(sum(share["bytes"] for share in shares), run["bytes"])
                for share in shares:
                    self.assertEqual(share["clock_error_seconds"] > 0, share["at"] != "here")
            if number > 1:
                self.assertEqual([each["at"] for each in point["shares"]["each"]], places[:number])

    def test_local_target_with_credentials(self):
        secret = self.path("secret")
        with open(os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write("0123456789abcdef\n")
        _, (first, second) = self.listening(2, "--secret-file", secret)
        arguments = ["--local", "--from", f"{first},{second}", *SHORT, "--verify"]
        result = self.succeeds(*arguments, "--secret-file", secret)
        self.assertRegex(result.stdout, rf"(?s)2 initiators\s.*from {first} [\d.]+ %, {second} [\d.]+ %")
        self.assertRegex(result.stdout, r"[\d.]+ ms off at most")
        self.fails(weft_perf(*arguments), 1, f"initiator 0 at {first}: ")

    def test_local_target_where_the_others_reach_it(self):
        address = self.address_beyond_loopback()
        openly = "--allow-unauthenticated-network"
        with PROGRAM.listening("--listen", f"{address}:0", openly) as (_, other):
            self.succeeds("--local", "--from", other, *SHORT, "--verify", openly)
            refused = weft_perf("--local", "--from", other, *SHORT)
            self.assertEqual(refused.returncode, 1, refused.stdout)
            self.assertRegex(refused.stderr, "without authentication(?s:.*)target: it ended before")

    def test_each_is_a_process_of_its_own(self):
        _, (first, second) = self.listening(2)
        again = first.replace("127.0.0.1", "localhost")
        for sides, pattern in (
                (["--peer", second, "--from", f"{first},{second}"], "1 at .* is a target already"),
                (["--local", "--from", f"{first},{first}"], f"1 at {first} is {first} already"),
                (["--peer", first, "--from", again], f"0 at {again} is a target already"),
                (["--local", "--from", f"{first},127.0.0.1:1"], "initiator 1 at 127.0.0.1:1: ")):
            with self.subTest(sides):
                self.fails(weft_perf(*sides, *SHORT, "--timeout", "20"), 1, pattern)
        # And they still serve.
        self.measured("--peer", second, "--from", first)

    @contextlib.contextmanager
    def measuring(self, *arguments):
        """Two initiators elsewhere that are at it for an hour, and who measures."""
        processes, addresses = self.listening(2)
        with started("--local", "--from", ",".join(addresses), "--time", "3600", "--warm-up", "0",
                     "--progress", "always", "--json", self.path("part"), *arguments) as process:
            begun = [cpu_ticks(each.pid) for each in processes]
            until(lambda: all(cpu_ticks(each.pid) > ticks + 20
                              for each, ticks in zip(processes, begun)))
            yield process, processes, addresses

    def still_serves(self, address):
        self.measured("--local", "--from", address)

    def test_killed_initiator(self):
        with self.measuring() as (process, others, addresses):
            others[1].kill()
            _, errors = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 1, errors)
            self.assertRegex(errors, rf"initiator 1 at {addresses[1]}: .*peer_down\)")
            with open(self.path("part"), encoding="utf-8") as file:
                self.assertEqual(json.load(file)["ended"], "failed")
            self.still_serves(addresses[0])

    def test_interrupted_initiator(self):
        with self.measuring() as (process, others, addresses):
            others[0].send_signal(signal.SIGINT)
            self.assertEqual(others[0].wait(PATIENCE), 130)
            _, errors = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 1, errors)
            self.assertIn(f"initiator 0 at {addresses[0]}: ", errors)
            self.still_serves(addresses[1])

    def test_interrupt(self):
        with self.measuring() as (process, _, addresses):
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 130, errors)
            self.still_serves(addresses[0])

    def test_killed_measurer(self):
        with self.measuring() as (process, _, addresses):
            process.kill()
            process.wait(PATIENCE)
            self.still_serves(addresses[0])


class Help(Case):
    def test_command(self):
        for arguments in ([], ["plan"], ["weights"]):
            shown = weft_perf("help", *arguments)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            self.assertEqual(shown.stdout, weft_perf(*arguments, "--help").stdout)
            self.assertLessEqual(max(map(len, shown.stdout.splitlines())), 100)
            self.assertIn(".SH OPTIONS", weft_perf("help", "--man", *arguments).stdout)

    def test_completions(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("providers", weft_perf("completion", shell).stdout)

    def test_misspelt(self):
        self.fails(weft_perf("--local", "--provder", "tcp"), 2, "did you mean '--providers'")
        self.fails(weft_perf("plan", "--modl", "x"), 2, "'--modl'; did you mean '--model'")
        self.fails(weft_perf("plna"), 2, "did you mean 'plan'")


class Wrong(Case):
    def test_command_lines(self):
        for arguments, pattern in (
                ([], "one of --local, --listen and --peer"),
                (["--local", "--peer", "x:1"], "excludes"),
                (["--local", "--size", "4X"], "no number"),
                (["--local", "--size", "8K:4K"], "backwards"),
                (["--local", "--operation", "wrote"], "none that is known"),
                (["--local", "--window", "0"], "window"),
                (["--local", "--window", "4294967297"], "too large"),
                (["--local", "--pieces", "7"], "can't be cut"),
                (["--local", "--operation", "mixed", "--window", "3"], "even"),
                (["--local", "--operation", "mixed", "--one-buffer"], "all write, or all read"),
                (["--local", "--operation", "message", "--one-buffer"], "all write, or all read"),
                (["--local", "--operation", "message", "--priority", "bulk"], "no priority"),
                (["--local", "--priority", "urgent"], "none that is known"),
                (["--local", "--rate", "-5"], "no number"),
                (["--local", "--rate", "1000000000"], "rate"),
                (["--local", "--rate", "10", "--batch", "2"], "one by one"),
                (["--local", "--batch", "9"], "batch"),
                (["--local", "--model", "no-such-model"], "no-such-model"),
                (["--local", "--tokens", "5"], "--model"),
                (["--local", "--repeats", "0"], "--repeats"),
                (["--local", "--time", "0"], "--time"),
                (["--local", "--time", "nan"], "--time"),
                (["--local", "--warm-up", "nan"], "--warm-up"),
                (["--local", "--threshold", "nan"], "--threshold"),
                (["plan", "--prefill-seconds", "nan"], "--prefill-seconds"),
                (["--local", "--baseline", "fast"], "no baseline"),
                (["--local", "--memory", "moon"], "'moon' is no memory"),
                (["--local", "--peer-memory", "gpu:x"], "'gpu:x' is no memory"),
                (["--local", "--memory", "file:"], "'file:' is no memory"),
                (["--local", "--memory", "file:x,cached"], "'cached' is no memory"),
                (["--local", "--memory", "file:x,buffered"], "both sides would overwrite"),
                (["--local", "--memory", "host", "--peer-memory", "file:x", "--initiators", "2"],
                 "one initiator and one target"),
                (["--local", "--files", "x"], "--listen"),
                (["--local", "--model", "Llama-3.1-8B", "--block-bytes", "1K"], "no room"),
                (["--local", "--model", "Llama-3.1-8B", "--layer-groups", "33"],
                 "32 layers go in 1 to 32 layer groups"),
                (["--local", "--rails", "1:4096:+1", "--max-nics", "1:4096:+1"],
                 "more than 100000 points"),
                (["--listen", "0.0.0.0:7000"], "--advertise"),
                (["--listen", "[::]:7000"], "--advertise"),
                (["--local", "--advertise", "127.0.0.1"], "--listen"),
                (["--local", "--targets", "0"], "1 to 64 targets"),
                (["--local", "--targets", "1,65"], "1 to 64 targets"),
                (["--local", "--targets", "4294967297"], "--targets: 4294967297 is too large"),
                (["--local", "--targets", "1,2", "--baseline", "socket"], "one stream"),
                (["--local", "--initiators", "0"], "1 to 64 initiators"),
                (["--local", "--initiators", "65"], "1 to 64 initiators"),
                (["--local", "--initiators", "many"], "no number"),
                (["--local", "--initiators", "4", "--count", "3"], "each initiator"),
                (["--peer", "127.0.0.1:1", "--targets", "1,2"], "--peer has 1"),
                (["--local", "--from", "a:1,b:1", "--initiators", "2,3"], "--from has 2"),
                (["--local", "--from", ",".join(65 * ["here"])], "64 initiators at most"),
                (["--listen", "127.0.0.1:0", "--from", "here"], "excludes"),
                (["--from", "here"], "one of --local, --listen and --peer"),
                (["--local", "--from", "a:1", "--baseline", "memcpy"], "on this machine"),
                (["--local", "--from", "a:1", "--baseline", "contiguous,raw"], "on this machine"),
                (["--local", "--initiators", "1,2", "--baseline", "socket"], "one stream"),
                (["--local", "--initiators", "64", "--baseline", "raw"], "16 at most"),
                (["--local", "--count", "-1"], "--count: '-1' is no number"),
                (["--local", "--threshold", "5"], "--compare"),
                (["--local", "--model", "Llama-3.1-8B", "--size", "4K"], "excludes"),
                (["--local", "--model", "Llama-3.1-8B", "--block-bytes", "0"], "no room"),
                (["--listen", "127.0.0.1:0", "--json", "x"], "--json: is for the side that measures"),
                (["--listen", "127.0.0.1:0", "--window", "4"], "--window: is for the side"),
                (["--local", "plan", "--model", "qwen3-8b", "--tokens", "1K", "--fabric", "x"],
                 "--local: plan takes options of its own"),
                (["--bogus"], "bogus")):
            with self.subTest(arguments):
                self.fails(weft_perf(*arguments), 2, pattern)

    def test_files(self):
        with open(self.path("none"), "w", encoding="ascii") as file:
            file.write("{}")
        self.fails(weft_perf("--local", "--compare", self.path("none")), 1, "holds no results")
        self.fails(weft_perf("--local", "--compare", self.path("nowhere")), 1, "can't be read")
        os.mkdir(self.path("folder"))
        for path in (self.path("no/folder"), self.path("folder")):
            result = weft_perf("--local", "--time", "3000", "--json", path)
            self.fails(result, 1, f"could not write '{path}'")
            self.assertEqual(result.stdout, "")
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["folder", "none"])

    def test_results_of_a_sweep_that_failed(self):
        self.succeeds("--local", *SHORT, "--size", "64K:1M:x4", "--json", self.path("bad"))
        with open(self.path("bad"), encoding="utf-8") as file:
            document = json.load(file)
        document.update(ended="failed", error="the target went away")
        with open(self.path("bad"), "w", encoding="utf-8") as file:
            json.dump(document, file)
        for arguments in (["--local", "--time", "3000", "--compare", self.path("bad")],
                          ["plan", "--model", "Llama-3.1-8B", "--tokens", "4K", "--fabric",
                           self.path("bad")]):
            result = weft_perf(*arguments)
            self.fails(result, 1, "the sweep in .*bad failed: the target went away")
            self.assertEqual(result.stdout, "")

    def test_damaged_results_to_compare_with(self):
        self.succeeds("--local", *SHORT, "--json", self.path("good"))
        with open(self.path("good"), encoding="utf-8") as file:
            good = json.load(file)
        for damage, pattern in ((lambda of: of.pop("machines"), "machines"),
                                (lambda of: of.update(points=5), "damaged"),
                                (lambda of: of["points"][0].pop("runs"), "runs"),
                                (lambda of: of["points"][0]["runs"][0].update(
                                    gigabytes_per_second="fast"), "number"),
                                (lambda of: of["points"][0]["point"]["work"].update(
                                    operation="teleport"), "'teleport', which is not known")):
            bad = json.loads(json.dumps(good))
            damage(bad)
            with open(self.path("bad"), "w", encoding="utf-8") as file:
                json.dump(bad, file)
            result = weft_perf("--local", "--time", "3000", "--compare", self.path("bad"))
            self.fails(result, 1, pattern)
            self.assertIn(self.path("bad"), result.stderr)
            self.assertEqual(result.stdout, "")

    @unittest.skipUnless(os.path.exists("/dev/full"), "nothing that is always full")
    def test_standard_output_that_is_full(self):
        self.succeeds("--local", *SHORT, "--json", self.path("good"))
        for arguments in (["--local", *SHORT, "--json", "-"], ["--local", *SHORT],
                          ["plan", "--model", "Llama-3.1-8B", "--tokens", "4K", "--fabric",
                           self.path("good")]):
            with open("/dev/full", "w", encoding="ascii") as full:
                result = subprocess.run([WEFT_PERF, *arguments], stdout=full,
                                        stderr=subprocess.PIPE, text=True, timeout=PATIENCE,
                                        check=False)
            self.assertEqual(result.returncode, 1, arguments)
            self.one_sentence(result.stderr)
            self.assertIn("No space left", result.stderr)

    @unittest.skipUnless(os.path.exists("/dev/full"), "nothing that is always full")
    def test_an_output_that_is_full_is_found_out_before_the_measurement(self):
        for name in ("-", "/dev/stdout"):
            with open("/dev/full", "w", encoding="ascii") as full:
                result = subprocess.run([WEFT_PERF, "--local", "--time", "3000", "--json", name],
                                        stdout=full, stderr=subprocess.PIPE, text=True,
                                        timeout=PATIENCE, check=False)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.one_sentence(result.stderr)
            self.assertRegex(result.stderr, "could not write .*No space left")

    def test_standard_error_that_is_closed(self):
        for command, code in (["--bogus"], 2), (["plan"], 2), (["--local", "--compare", "none"], 1):
            result = subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", WEFT_PERF, *command],
                                    capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual(result.returncode, code, command)

    def test_one_target_twice(self):
        with target() as (_, address):
            result = weft_perf("--peer", f"{address},{address}", *SHORT)
            self.fails(result, 1, "two of --peer are the same process")

    def test_a_target_that_is_busy(self):
        with target() as (_, address):
            with started("--peer", address, "--time", "3600", "--progress", "always") as first:
                read_to_step(first, 1)
                result = weft_perf("--peer", address, *SHORT, "--timeout", "0.5")
                self.fails(result, 1, r"the target: .*\(--timeout\); it may be measuring for somebody else \(timed_out\)")

    def test_nobody_listens(self):
        self.fails(weft_perf("--peer", "127.0.0.1:1"), 1, "unavailable")

    def test_another_program_listens(self):
        with subprocess.Popen([sys.executable, "-c", "import socket, time\n"
                               "s = socket.create_server(('127.0.0.1', 0))\n"
                               "print(s.getsockname()[1], flush=True)\n"
                               "s.accept()[0].sendall(b'HTTP/1.1 400 Bad Request\\r\\n' * 9)\n"],
                              stdout=subprocess.PIPE, text=True) as other:
            port = other.stdout.readline().strip()
            result = weft_perf("--peer", f"127.0.0.1:{port}", "--timeout", "20")
            other.kill()
        self.fails(result, 1, "protocol_mismatch|peer_down|unavailable")

    def test_beyond_loopback_needs_credentials(self):
        address = self.address_beyond_loopback()
        self.fails(weft_perf("--listen", f"{address}:0"), 1, "secret|credential|authenti")


class Ends(Case):
    def test_target_serves_one_after_the_other(self):
        with target() as (process, address):
            for _ in range(2):
                self.succeeds("--peer", address, *SHORT, "--verify")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(PATIENCE), 143)

    def test_several_targets(self):
        with target() as (_, first), target() as (_, second):
            result = self.succeeds("--peer", f"{first},{second}", *SHORT, "--verify", "--json", "-")
            report = json.loads(result.stdout)
            self.assertEqual(report["points"][0]["point"]["peers"], 2)
            self.assertEqual(len(report["machines"]["targets"]), 2)
        result = self.succeeds("--local", "--targets", "3", *SHORT, "--operation", "read")
        self.assertIn("window 4, 3 peers", result.stdout)

    def test_numbers_of_targets(self):
        arguments = [*SHORT, "--verify", "--json", "-"]
        result = self.succeeds("--local", "--targets", "1:3:+2", "--initiators", "1,2",
                               "--providers", "tcp", "--baseline", "contiguous", "--time", "0.05",
                               *arguments)
        points = [each["point"] for each in json.loads(result.stdout)["points"]]
        self.assertEqual([(each["initiators"], each["peers"]) for each in points],
                         [(1, 1), (1, 3), (2, 1), (2, 3)])
        with target() as (_, first), target() as (_, second):
            result = self.succeeds("--peer", f"{first},{second}", "--targets", "2,1", *arguments)
        points = json.loads(result.stdout)["points"]
        self.assertEqual([each["point"]["peers"] for each in points], [2, 1])
        for each in points:
            self.assertEqual(each["bytes_wrong"], 0)

    def test_time_may_end_a_count(self):
        arguments = ["--local", "--rate", "100", "--repeats", "1", "--warm-up", "0", "--json", "-"]
        for count, ended in (("3", False), ("1000000", True)):
            result = self.succeeds(*arguments, "--count", count, "--time", "0.1" if ended else "5")
            self.assertEqual(json.loads(result.stdout)["points"][0]["ended_by_time"], ended)

    def test_target_at_every_interface(self):
        listening = ["--listen", "0.0.0.0:0", "--allow-unauthenticated-network"]
        for advertised in ("127.0.0.1", "127.0.0.1:0"):
            with PROGRAM.listening(*listening, "--advertise", advertised) as (_, address):
                self.assertRegex(address, r"^127\.0\.0\.1:[1-9]")
                self.succeeds("--peer", address, *SHORT, "--verify", "--baseline", "socket",
                              "--time", "0.05", "--providers", "tcp")

    def test_secret(self):
        secret = self.path("secret")
        with open(os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write("0123456789abcdef\n")
        with target("--secret-file", secret) as (_, address):
            self.succeeds("--peer", address, *SHORT, "--secret-file", secret)
            self.assertEqual(weft_perf("--peer", address, *SHORT).returncode, 1)

    def test_dead_target(self):
        for provider in ("tcp", "shm"):
            with target() as (process, address):
                with started("--peer", address, "--providers", provider, "--time", "50",
                             "--json", self.path("dead")) as peer:
                    # Both have two engines once they are at it.
                    until(lambda pid=peer.pid: len(os.listdir(f"/proc/{pid}/task")) > 6)
                    process.kill()
                    _, errors = peer.communicate(timeout=PATIENCE)
                self.assertEqual(peer.returncode, 1, errors)
                self.one_sentence(errors)
                with open(self.path("dead"), encoding="utf-8") as file:
                    self.assertEqual(json.load(file)["ended"], "failed")

    def test_dead_local_target(self):
        with started("--local", "--time", "50") as process:
            until(lambda: children_of(process.pid))
            child = children_of(process.pid)[0]
            until(lambda: len(os.listdir(f"/proc/{process.pid}/task")) > 6)
            os.kill(child, signal.SIGKILL)
            _, errors = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 1, errors)
            self.one_sentence(errors)

    def test_interrupt_keeps_what_was_measured(self):
        with started("--local", "--size", "1K,2K", "--time", "0.1", "--repeats", "1000",
                     "--progress", "always", "--json", self.path("part")) as process:
            read_to_step(process, 4)
            child = children_of(process.pid)[0]
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 130)
        self.assertEqual(len(re.findall(r"^\w+ write ", output, re.M)), 2)
        with open(self.path("part"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(report["ended"], "interrupted")
        self.assertGreaterEqual(len(report["points"][0]["runs"]), 2)
        until(lambda: not is_running(child))

    def hung_up(self, disposition):
        """Its terminal goes in the middle of a sweep; returns what it wrote."""
        with started("--local", "--time", "0.2", "--repeats", "4", "--progress", "always", "--json",
                     self.path("kept"), start_new_session=True,
                     preexec_fn=lambda: signal.signal(signal.SIGHUP, disposition)) as process:
            read_to_step(process, 2)
            os.killpg(process.pid, signal.SIGHUP)
            _, errors = process.communicate(timeout=PATIENCE)
        with open(self.path("kept"), encoding="utf-8") as file:
            return process.returncode, errors, json.load(file)

    def test_terminal_that_goes(self):
        code, errors, report = self.hung_up(signal.SIG_DFL)
        self.assertEqual(code, 129, errors)
        self.assertEqual(report["ended"], "interrupted")
        self.assertGreaterEqual(len(report["points"][0]["runs"]), 1)

    def test_nohup(self):
        code, errors, report = self.hung_up(signal.SIG_IGN)
        self.assertEqual(code, 0, errors)
        self.assertEqual(report["ended"], "complete")

    def is_interrupted(self, process):
        """Ctrl-C ends it, though it would go on for an hour, with all that it has started."""
        started_by_it = children_of(process.pid)
        started_by_it += [each for child in started_by_it for each in children_of(child)]
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("interrupted by Ctrl-C", errors)
        self.nothing_is_left([process.pid, *started_by_it])
        return output

    def test_interrupt_while_it_measures_something_else(self):
        for arguments, children in ((["--baseline", "memcpy:2"], 1),
                                    (["--baseline", "raw", "--providers", "shm"], 2),
                                    (["--baseline", "raw", "--providers", "tcp"], 2),
                                    (["--baseline", "socket"], 1),
                                    (["--warm-up", "3600", "--operation", "message"], 1),
                                    (["--warm-up", "3600", "--rate", "10", "--targets", "2"], 2)):
            with self.subTest(arguments), started(
                    "--local", "--time", "3600", "--timeout", "3600", "--progress", "always",
                    "--json", self.path("part"), *arguments) as process:
                read_to_step(process, 1)
                until(lambda: len(children_of(process.pid)) == children)
                begun = cpu_ticks(process.pid)
                if "raw" not in arguments:
                    until(lambda: cpu_ticks(process.pid) > begun + 3)
                self.is_interrupted(process)
                with open(self.path("part"), encoding="utf-8") as file:
                    self.assertEqual(json.load(file)["ended"], "interrupted")

    def test_interrupt_while_it_connects(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            with started("--peer", f"127.0.0.1:{silent.getsockname()[1]}", "--timeout", "3600",
                         "--json", self.path("kept")) as process:
                connection, _ = silent.accept()
                with connection:
                    self.assertEqual(self.is_interrupted(process), "")
        self.assertFalse(os.path.exists(self.path("kept")))

    def test_interrupt_of_a_frozen_target(self):
        with started("--local", "--time", "3600", "--timeout", "3600", "--progress",
                     "always") as process:
            read_to_step(process, 1)
            os.kill(children_of(process.pid)[0], signal.SIGSTOP)
            self.is_interrupted(process)

    def test_killed_initiator_leaves_no_target(self):
        with started("--local", "--time", "50") as process:
            until(lambda: children_of(process.pid))
            child = children_of(process.pid)[0]
            process.kill()
            process.wait(PATIENCE)
        until(lambda: not is_running(child))


if __name__ == "__main__":
    unittest.main()
