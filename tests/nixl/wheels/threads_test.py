"""Threads of one process that post and look at transfers of their own, of one agent."""

import pytest

from moves import LIMIT, TARGET, fill

THREADS, LENGTH = 4, 40_000


@pytest.mark.parametrize("sync", (None, "STRICT", "RW"))
def test_each_its_own(fresh, weft, long, sync):
    """Without a mode NIXL itself locks nothing, which is enough for handles of one's own."""
    rounds = 5000 if long else 250
    initiator, target = fresh([THREADS * LENGTH, 2 * THREADS * LENGTH], sync=sync)
    fill(initiator, target)
    lanes = [list(lane_of(initiator, thread)) for thread in range(THREADS)]
    assert initiator.drive(lanes=lanes, rounds=rounds, seed=TARGET, limit=LIMIT) == []
    came = target.collect(count=THREADS * rounds, limit=LIMIT)
    assert sorted(came) == [["initiator", number, 100] for number in range(THREADS * rounds)]
    assert target.quiet(during=0.1) == []


def lane_of(initiator, thread):
    """Two reads from different places into the same one, in turns."""
    mine = [0, thread * LENGTH, LENGTH]
    for which in range(2):
        theirs = [1, (2 * thread + which) * LENGTH, LENGTH]
        handle = initiator.make(operation="READ", peer="target", mine=[mine], theirs=[theirs])
        yield [handle, mine, theirs]
