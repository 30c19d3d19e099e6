"""weft.testing, by what a program's own tests would do with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy
import pytest
from support import PROVIDERS, pattern

import weft
from weft.testing import Faults, Pair, pair

BYTES = 1 << 20


@dataclass
class Board:
    faults: Faults
    both: Pair
    source: weft.Segment
    remote: weft.Remote
    sink: Any

    def write(self, timeout: float = 30) -> weft.Transfer:
        return self.both.first.write(self.source, self.remote, [(0, 0, BYTES)], timeout=timeout)

    def expect_written(self) -> None:
        self.write().wait()
        assert numpy.array_equal(self.sink, pattern(BYTES, 7))


@pytest.fixture(params=PROVIDERS)
def board(request: pytest.FixtureRequest) -> Iterator[Board]:
    faults = Faults()
    with pair(faults, providers=[request.param]) as both:
        sink = numpy.zeros(BYTES, numpy.uint8)
        remote = both.first.import_grant(both.second.add(sink).grant(weft.Rights.write).blob)
        yield Board(faults, both, both.first.add(pattern(BYTES, 7)), remote, sink)


def test_what_is_dropped_times_out_and_the_next_goes_through(board: Board) -> None:
    board.faults.set(drop=1)
    with pytest.raises(weft.TimedOut):
        board.write(timeout=0.2).wait()
    assert board.faults.counts.dropped > 0
    board.faults.clear()
    board.expect_written()


def test_a_failure_has_its_cause(board: Board) -> None:
    board.faults.set(fail=1)
    with pytest.raises(weft.Error) as failed:
        board.write(timeout=5).wait()
    assert board.faults.counts.failed > 0 and failed.value.peer


def test_the_others_carry_what_a_killed_rail_would(board: Board) -> None:
    board.faults.kill(0)
    if len(board.both.first.info().rails) > 1:
        board.expect_written()
    board.faults.clear()
    board.expect_written()


def test_delays(board: Board) -> None:
    board.faults.set(delay=1, delay_by=0.02)
    board.expect_written()
    assert board.faults.counts.delayed > 0


def test_bad_shares_are_told(board: Board) -> None:
    with pytest.raises(weft.InvalidArgument, match="drop is a share"):
        board.faults.set(drop=2)
    board.expect_written()


def test_a_pair_needs_no_switch() -> None:
    with pair() as both:
        assert both.to_second.up and both.to_first.name == both.first.name
