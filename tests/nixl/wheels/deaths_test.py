"""Peers that are killed, frozen and restarted."""

import contextlib
import os
import socket
import time

import pytest

from moves import INITIATOR, LIMIT, MIB, PROMPT, TARGET, check, done, fill, goes_on
from parties import frozen, introduce, together

DEATH = 2  # Seconds of silence that mean death to those that are PROMPT.
REMEMBERED = 20  # The dead that may have files open for a while; more are more than that.
WHOLE = [0, 0, 64 * MIB]
LENGTHS = [64 * MIB, MIB]
DISCONNECT, GONE = "nixlRemoteDisconnectError", "nixlNotFoundError"
BOTH = pytest.mark.parametrize("operation", ("READ", "WRITE"))


def many_under_way(initiator, operation):
    """Handles of transfers that take longer than it does to kill."""
    handles = [initiator.make(operation=operation, peer="target", mine=[WHOLE], theirs=[WHOLE])
               for _ in range(8)]
    initiator.post(handles=handles)
    return handles


def restarted(parties, initiator, target, **more):
    """The same agent in a new process; the old one has been killed."""
    renewed = parties.start("target", **more)
    renewed.own(target.lengths)
    assert initiator.forget(peer="target") in ("forgotten", GONE)
    introduce(initiator, renewed)
    return renewed


@BOTH
def test_killed_under_way(prompt, parties, weft, slack, operation):
    """The first that finds out says so, and NIXL forgets that peer."""
    initiator, target = prompt(LENGTHS)
    handles = many_under_way(initiator, operation)
    parties.kill(target)
    ended = initiator.wait(handles=handles, limit=LIMIT)
    assert ended["seconds"] < DEATH + slack
    failed = [outcome for outcome in ended["outcomes"] if outcome != "DONE"]
    assert failed, "all were done before it was killed"
    assert DISCONNECT in failed and set(failed) <= {DISCONNECT, GONE}
    initiator.tidy(limit=LIMIT)
    assert moves_well(initiator, restarted(parties, initiator, target))


def moves_well(initiator, target):
    fill(initiator, target)
    piece = [1, 0, MIB]
    handle = initiator.make(operation="READ", peer="target", mine=[piece], theirs=[piece],
                            with_note=[3, 300])
    done(initiator.move(handles=[handle], limit=LIMIT))
    check("READ", initiator, target, [piece], [piece])
    initiator.tidy()
    return target.collect(count=1, limit=LIMIT) == [["initiator", 3, 300]]


def test_frozen_while_it_is_read(three, weft, slack):
    """What was told to have failed does not change memory any more, whenever the peer wakes up."""
    initiator, target, bystander = three(LENGTHS)
    handle = initiator.make(operation="READ", peer="target", mine=[WHOLE], theirs=[WHOLE])
    with frozen(target) as since:
        outcome = initiator.until_failure(handle=handle, limit=LIMIT,
                                          landed=[WHOLE, WHOLE, TARGET])
        took = time.monotonic() - since
    goes_on(target, bystander, [1, 0, MIB])
    assert initiator.changed() is None
    assert target.wrong(seed=TARGET) is None
    assert outcome == DISCONNECT
    assert took < DEATH + slack
    initiator.tidy(limit=LIMIT)
    assert initiator.forget(peer="target") in ("forgotten", GONE)
    introduce(initiator, target)
    assert moves_well(initiator, target), "it is met again once it goes on"


def test_frozen_while_it_is_written(three, weft, slack):
    """What was told to have failed does not read memory any more."""
    initiator, target, bystander = three(LENGTHS)
    handle = initiator.make(operation="WRITE", peer="target", mine=[WHOLE], theirs=[WHOLE])
    with frozen(target) as since:
        outcome = initiator.until_failure(handle=handle, limit=LIMIT)
        took = time.monotonic() - since
        initiator.fill(seed=77)
    goes_on(target, bystander, [1, 0, MIB])
    assert target.neither(seeds=[TARGET, INITIATOR]) is None
    assert outcome == DISCONNECT
    assert took < DEATH + slack


def free_port():
    with contextlib.closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def descriptors(party):
    return len(os.listdir(f"/proc/{party.child.process.pid}/fd"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("port", ("any", "one"))
def test_restarted(parties, weft, long, port):
    """Killed in turns while it is idle and while it is read; the initiator stays."""
    more = {"environment": {"WEFT_LISTEN": f"127.0.0.1:{free_port()}"}} if port == "one" else {}
    initiator = parties.start("initiator", parameters=PROMPT)
    target = parties.start("target", **more)
    together(lambda: initiator.own(LENGTHS), lambda: target.own(LENGTHS))
    introduce(initiator, target)
    open_files = []
    for turn in range(50 if long else 2):
        assert moves_well(initiator, target)
        handles = many_under_way(initiator, "READ") if turn % 2 else []
        parties.kill(target)
        outcomes = initiator.wait(handles=handles, limit=LIMIT)["outcomes"]
        assert set(outcomes) <= {"DONE", DISCONNECT, GONE}
        initiator.tidy(limit=LIMIT)
        target = restarted(parties, initiator, target, **more)
        open_files.append(descriptors(initiator))
    assert moves_well(initiator, target)
    assert open_files[-1] <= max(open_files[:REMEMBERED]), f"open files: {open_files}"
