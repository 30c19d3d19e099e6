"""The parts of perf/peers/nixl_requests that need no NIXL, and the command where there is none.

Usage: nixl_requests_test.py PERF-PEERS-FOLDER BUILD-FOLDER [unittest arguments]
"""

import contextlib
import ctypes
import os
import subprocess
import sys
import tempfile
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from programs import PATIENCE  # noqa: E402

PEERS, BUILD = sys.argv.pop(1), sys.argv.pop(1)
sys.path.insert(0, PEERS)
from children import Failed, answers, started  # noqa: E402
from engines import NixlLibfabric, NixlUcx, NixlWeft, nixls  # noqa: E402
from command import facts  # noqa: E402
from nixl_campaign import (Check, Found, LEAST_CHECKS, List, Notification, Poll, RequestsPair,  # noqa: E402
                           Turns, markdown, ratios)
from stand_ins import CALLS, DRIVER, NO_DEVICE, compile_driver  # noqa: E402


NOTHING = open(os.devnull, "rb")  # Can always be read.


class FakeSide:
    """Answers each command with what it was given for it; notes what it was asked."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    def ask(self, seconds, do, **arguments):
        del seconds
        self.asked.append((do, arguments))
        return self.answers[do]

    def tell(self, do, **arguments):
        self.asked.append((do, arguments))
        self.told = do

    def answer(self, seconds):
        del seconds
        return self.answers[self.told]

    def fileno(self):
        return NOTHING.fileno()


class FakePair(RequestsPair):
    def __init__(self, name="nixl-ucx", target=None, initiator=None, starts=True):
        super().__init__(name, "", NixlUcx("tcp"))
        self.target, self.initiator, self.starts = target, initiator, starts
        self.ended = 0

    def start(self, memory_bytes):
        self.memory_bytes = memory_bytes
        self.told_version = "1.0"
        if not self.starts:
            raise Failed(f"there is no {self.name}; get it")

    def end(self):
        self.ended += 1


class Figures(unittest.TestCase):
    def test_a_list_is_the_median_of_its_posts(self):
        side = FakeSide(post_list={"made": 5, "posted": [3, 1, 9], "done": [30, 10, 90]})
        found = List(16384, 100, posts=3).measure(FakePair(initiator=side), 1, number=4)
        self.assertEqual(found, {"list of 100 blocks of 16 KiB: made": 5,
                                 "list of 100 blocks of 16 KiB: posted": 3,
                                 "list of 100 blocks of 16 KiB: posted and done": 30})
        self.assertEqual(side.asked[0][1], {"size": 16384, "count": 100, "posts": 3, "seed": 4,
                                            "limit": 1})

    def test_notifications_are_those_of_the_same_write_but_the_first(self):
        """The first tenth is slower than any other."""
        posted = [1000 * number for number in range(100)]
        seen = [each + (900 if number < 10 else number) for number, each in enumerate(posted)]
        pair = FakePair(target=FakeSide(receive=seen), initiator=FakeSide(send=posted))
        found = Notification(4096, 100).measure(pair, 1, number=0)
        self.assertEqual([round(each * 1e9) for each in found.values()], [54, 99])

    def test_a_notification_that_is_missing_is_an_error(self):
        pair = FakePair(target=FakeSide(receive=[5]), initiator=FakeSide(send=[1, 2]))
        with self.assertRaises(ValueError):
            pair.notify(4096, 2, 1)

    def test_bytes_that_came_wrong_are_a_failure(self):
        for wrong in (None, 0):
            target = FakeSide(fill=None, first_wrong=wrong)
            target.failed = Failed
            pair = FakePair(target=target, initiator=FakeSide(fill=None, post_list={}))
            with self.subTest(wrong):
                if wrong is None:
                    List(4096, 4, 1).check(pair, 1)
                else:
                    with self.assertRaisesRegex(Failed, "other bytes"):
                        List(4096, 4, 1).check(pair, 1)
                self.assertEqual([each[1]["seed"] for each in target.asked], [0, 1])

    def test_polls_are_of_both_sides(self):
        pair = FakePair(target=FakeSide(poll=2e-6), initiator=FakeSide(poll=1e-6))
        self.assertEqual(list(Poll(10).measure(pair, 1, 0).values()), [2e-6, 1e-6])

    def test_too_few_checks_are_no_figure(self):
        for calls in (LEAST_CHECKS - 1, LEAST_CHECKS):
            pair = FakePair(initiator=FakeSide(check_list=[1e-6] * calls))
            self.assertEqual(bool(Check(4096, 4).measure(pair, 1, 0)), calls >= LEAST_CHECKS)


class Steady:
    """A figure that takes the given seconds, by peer."""

    bytes, check = 4096, None

    def __init__(self, fail=(), **seconds):
        self.seconds, self.fail = seconds, fail

    def measure(self, pair, limit, number):
        if (pair.name, number) in self.fail:
            raise Failed(f"{pair.name} broke")
        return {"it": self.seconds[pair.name.replace("-", "_")]}


class Rounds(unittest.TestCase):
    SETTINGS = types.SimpleNamespace(rounds=4, seed=1, limit=1)

    def run_with(self, figure, *pairs):
        found, told = Found(), []
        Turns("tcp", list(pairs), [figure], self.SETTINGS, found, told.append).run()
        self.assertTrue(all(pair.ended for pair in pairs))
        return found, "\n".join(told), markdown(found, facts(), ratios(found.samples))

    def test_all_are_measured_and_compared(self):
        found, _, text = self.run_with(Steady(nixl_ucx=3e-6, nixl_weft=1.5e-6),
                                       FakePair("nixl-ucx"), FakePair("nixl-weft"))
        self.assertEqual(len(found.samples), 8)
        self.assertIn("|  | nixl-weft | nixl-ucx | nixl-weft to nixl-ucx |", text)
        self.assertIn("| it | 1.50 (1.50-1.50) | 3.00 (3.00-3.00) | 0.5 (0.5-0.5) |", text)

    def test_who_is_missing_is_told_and_left_out(self):
        found, told, text = self.run_with(Steady(nixl_ucx=3e-6, nixl_weft=1.5e-6),
                                          FakePair("nixl-ucx"), FakePair("nixl-weft", starts=False))
        self.assertEqual({each["peer"] for each in found.samples}, {"nixl-ucx"})
        for where in (told, text):
            self.assertIn("without nixl-weft: there is no nixl-weft; get it", where)

    def test_who_fails_is_left_out_from_there_on(self):
        figure = Steady(nixl_ucx=3e-6, nixl_weft=1.5e-6, fail=[("nixl-ucx", 2)])
        found, _, text = self.run_with(figure, FakePair("nixl-ucx"), FakePair("nixl-weft"))
        self.assertEqual([each["round"] for each in found.samples if each["peer"] == "nixl-ucx"],
                         [0, 1])
        self.assertIn("tcp, without nixl-ucx: nixl-ucx broke", text)
        self.assertIn("0.5 (0.5-0.5)", text)


class Engines(unittest.TestCase):
    SETTINGS = types.SimpleNamespace(build=BUILD, venv="/nowhere", libfabric="/opt/newer")

    def test_only_tcp_has_libfabric(self):
        self.assertEqual(list(nixls("tcp", self.SETTINGS)),
                         ["nixl-ucx", "nixl-weft", "nixl-libfabric"])
        self.assertEqual(list(nixls("shm", self.SETTINGS)), ["nixl-ucx", "nixl-weft"])

    def test_weft_alone_sees_its_plug_in(self):
        with tempfile.TemporaryDirectory() as build, tempfile.TemporaryDirectory() as scratch:
            engine = NixlWeft("shm", build)
            with self.assertRaisesRegex(Failed, "there is no .*libplugin_WEFT.so: ninja -C"):
                engine.environment(scratch)
            os.makedirs(os.path.join(build, "lib", "faces", "nixl"))
            with open(os.path.join(build, "lib", "faces", "nixl", "libplugin_WEFT.so"), "wb"):
                pass
            self.assertEqual(engine.environment(scratch), {"NIXL_PLUGIN_DIR": scratch})
            self.assertEqual(os.listdir(scratch), ["libplugin_WEFT.so"])
            self.assertTrue(os.path.samefile(os.path.join(scratch, "libplugin_WEFT.so"),
                                             os.path.join(build, "lib/faces/nixl/libplugin_WEFT.so")))
        self.assertEqual(engine.words, ["WEFT", "providers=shm"])
        self.assertNotIn("NIXL_PLUGIN_DIR", NixlUcx("shm").environment(""))

    def test_the_libfabric_that_was_named_comes_first(self):
        with tempfile.TemporaryDirectory() as scratch:
            found = NixlLibfabric("/nowhere", "/opt/newer").environment(scratch)
        self.assertEqual(found["LD_LIBRARY_PATH"].split(":")[0], "/opt/newer/lib")

    def test_the_driver_that_is_made_has_no_device(self):
        with tempfile.TemporaryDirectory() as scratch:
            compile_driver(scratch)
            driver = ctypes.CDLL(os.path.join(scratch, DRIVER))
        self.assertEqual([driver[call]() for call in CALLS], [NO_DEVICE] * len(CALLS))


class Children(unittest.TestCase):
    def test_an_answer_is_taken_later(self):
        with started(["sh", "-c", "read line; echo '{\"answer\": 7}'; read line"]) as child:
            child.tell("receive", count=1)
            self.assertEqual(child.answer(PATIENCE), 7)

    def saying(self, *texts):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        return [stack.enter_context(started(["sh", "-c", f"{text}; read line"])) for text in texts]

    def test_answers_of_several_come_in_their_order(self):
        sides = self.saying("read line; echo '{\"answer\": 1}'", "echo '{\"answer\": 2}'")
        sides[0].tell("receive")
        self.assertEqual(answers(sides, PATIENCE), [1, 2])

    def test_the_first_that_fails_is_told(self):
        sides = self.saying("read line", "echo '{\"error\": \"it is down\"}'")
        with self.assertRaisesRegex(Failed, "says it is down"):
            answers(sides, PATIENCE)

    def test_who_never_answers_is_given_up(self):
        with self.assertRaisesRegex(Failed, "took too long"):
            answers(self.saying("read line", "echo '{\"answer\": 2}'"), 0.5)


class Command(unittest.TestCase):
    def run_it(self, *arguments):
        return subprocess.run([sys.executable, os.path.join(PEERS, "nixl_requests"), *arguments],
                              capture_output=True, text=True, timeout=PATIENCE)

    def test_without_nixl_it_fails_with_a_sentence(self):
        done = self.run_it("--venv", "/nowhere", "--build", BUILD)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        for name in ("nixl-ucx", "nixl-weft"):
            self.assertIn(f"shm: without {name}: --venv names no virtual environment; it needs: ",
                          done.stderr)

    def test_outputs_are_tried_before_anything_is_measured(self):
        for option in ("--json", "--markdown"):
            done = self.run_it("--venv", "/nowhere", option, "/nowhere/x")
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr,
                             "perf/peers/nixl_requests: /nowhere/x can't be written\n")

    def test_bad_arguments_are_refused(self):
        for bad in ([], ["--venv", "x", "--fabrics", "gpu"], ["--venv", "x", "--rounds", "0"],
                    ["--venv", "x", "--without", "ucx"]):
            with self.subTest(bad):
                self.assertEqual(self.run_it(*bad).returncode, 2)


if __name__ == "__main__":
    unittest.main()
