"""How what callgrind has counted is read, and shared out among the stages of an operation.

Usage: callgrind_test.py FOLDER-OF-THE-SCRIPTS [unittest arguments]
"""

import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import callgrind  # noqa: E402
import instructions  # noqa: E402

# main() calls submit() and look(), both call allocate(), which calls itself and is in a library.
COSTS = """\
version: 1
events: Ir
ob=(1) program
fl=(1) ???
fn=(1) main
0 5
cfn=(2) submit()
calls=10 0
0 130
cfn=(3) look()
calls=10 0
+3 70
fn=(2)
0 100
cob=(2) /usr/lib/library.so
cfn=(4) allocate()
calls=10 0
0 30
fn=(3)
0 60
cfi=(2) other.cpp
cob=(2)
cfn=(4)
calls=5 0
0 10
ob=(2)
fn=(4)
0 40
cfn=(4)
calls=3 0
0 12
totals: 205
""".splitlines()


def stage_of(function):
    return {"submit()": "submit", "look()": "look"}.get(function)


class Callgrind(unittest.TestCase):
    def setUp(self):
        self.costs = callgrind.read(COSTS)

    def test_reads_own_costs_and_calls(self):
        self.assertEqual(self.costs.own,
                         {"main": 5, "submit()": 100, "look()": 60, "allocate()": 40})
        self.assertEqual(self.costs.calls["main", "submit()"], 130)
        self.assertEqual(self.costs.calls["look()", "allocate()"], 10)
        self.assertEqual(self.costs.total(), 205)
        self.assertEqual(self.costs.within("submit()"), 130)
        self.assertEqual(self.costs.within("nobody()"), 0)

    def test_knows_how_often_each_was_called_and_where_it_is(self):
        self.assertEqual(self.costs.times, {"submit()": 10, "look()": 10, "allocate()": 18})
        self.assertEqual(self.costs.places, {"main": "program", "submit()": "program",
                                             "look()": "program", "allocate()": "library.so"})

    def test_shares_what_several_call_by_what_their_calls_came_to(self):
        stages = callgrind.by_stage(self.costs, stage_of)
        self.assertEqual(stages, {"submit": 130, "look": 70, None: 5})

    def test_loses_nothing(self):
        stages = callgrind.by_stage(self.costs, lambda function: None)
        self.assertEqual(stages, {None: 205})


class Budget(unittest.TestCase):
    def test_names_what_takes_more_than_its_slack(self):
        budget = {"slack": 0.1, "builds": {"gcc-O1": {"1": 100, "16": 50}}}
        within = {1: {"submit": 60, "look": 50}, 16: {"submit": 20}}
        beyond = {1: {"submit": 61, "look": 50}, 16: {"submit": 56}}
        self.assertEqual(instructions.compare(within, budget, "gcc-O1"), 0)
        self.assertEqual(instructions.compare(beyond, budget, "gcc-O1"), 2)

    def test_knows_functions_by_where_they_begin(self):
        for function, stage in {
                "weft::Engine::submit(weft::Prepared const&, weft::TransferOptions)": "submit",
                "non-virtual thunk to weft::core::Rma::completed(weft::providers::Posted&)":
                    "complete",
                "weft::core::TransferState::take(std::span<weft::core::Chunk, 8ul>)": "cut",
                "malloc": None,
                "std::vector<weft::Engine::submit>::begin()": None}.items():
            self.assertEqual(instructions.stage_of(function), stage, function)


if __name__ == "__main__":
    unittest.main()
