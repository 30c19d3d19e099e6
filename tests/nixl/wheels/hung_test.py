"""A peer that is stopped: NIXL's calls do not wait for it, and others go on."""

import pytest

from moves import LIMIT, MIB, TARGET, done
from parties import frozen, introduce

AT_ONCE = 1.5  # Seconds: less than a call that waits would take, on a busy machine.
PIECE = [0, 0, MIB]
HASTY = {"timeout_ms": "2000"}


@pytest.mark.parametrize("known", (False, True), ids=("new", "known"))
def test_loaded_while_it_is_stopped(parties, weft, slack, known):
    initiator, target, healthy = parties.start_each(
        {"initiator": HASTY, "target": None, "healthy": None})
    for party in (initiator, target, healthy):
        party.own([MIB])
    if known:
        initiator.meet(**target.introduction)
        target.own([MIB])  # So that there is something new to load.
    healthy.fill(seed=TARGET)
    with frozen(target):
        for _ in range(2):
            assert initiator.timed_meet(**target.introduction) < AT_ONCE
        hung = initiator.make(operation="READ", peer="target", mine=[PIECE], theirs=[PIECE])
        assert initiator.post(handles=[hung]) == ["PROC"]
        introduce(initiator, healthy)
        well = initiator.make(operation="READ", peer="healthy", mine=[PIECE], theirs=[PIECE])
        moved = initiator.move(handles=[well], limit=LIMIT)
        done(moved)
        assert moved["seconds"] < AT_ONCE
        ended = initiator.wait(handles=[hung], limit=LIMIT)
        assert ended["outcomes"] == ["nixlBackendError"]
        assert ended["seconds"] < 2 + slack
    initiator.tidy(limit=LIMIT)
