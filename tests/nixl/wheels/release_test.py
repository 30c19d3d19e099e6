"""What is let go while it is under way: from then on its memory stays as it is."""

import pytest

from moves import INITIATOR, LIMIT, MIB, TARGET, done, goes_on
from parties import frozen

LANDING, BALLAST = [0, 0, 64 * MIB], [1, 0, 32 * MIB]
LENGTHS = [64 * MIB, 32 * MIB]
AT_ONCE = 1  # Seconds in which a first release has to answer.
REFUSED = "nixlRepostActiveError"
BOTH = pytest.mark.parametrize("operation", ("READ", "WRITE"))
FAILURES = {"nixlRemoteDisconnectError", "nixlCancelledError", "nixlNotFoundError",
            "nixlBackendError"}


def read(initiator):
    return initiator.make(operation="READ", peer="target", mine=[LANDING], theirs=[LANDING])


def write_ballast(party, peer):
    return party.make(operation="WRITE", peer=peer, mine=[BALLAST], theirs=[BALLAST])


def test_released_under_way(three, weft, long):
    """nixl#2044: a READ of 64 MiB, among others. At least one has to be cut."""
    initiator, target, _ = three(LENGTHS)
    ballast = [write_ballast(initiator, "target") for _ in range(3)]
    cut = 0
    for _ in range(50 if long else 5):
        initiator.fill(seed=INITIATOR)
        handle = read(initiator)
        tries = initiator.release_and_keep(handle=handle, limit=LIMIT, post=[*ballast, handle])
        assert tries[0] < AT_ONCE
        cut += initiator.arrived(mine=LANDING, theirs=LANDING, seed=TARGET) < LANDING[2]
        done(initiator.wait(handles=ballast, limit=LIMIT))
        done(initiator.move(handles=ballast, limit=LIMIT))
        assert initiator.changed() is None
    assert cut, "each was done before it was released"


@pytest.mark.parametrize("thawed", ("before", "after"))
def test_released_while_the_target_is_frozen(three, weft, thawed):
    """Thawed before a release succeeds, or only then."""
    initiator, target, bystander = three(LENGTHS)
    handle = read(initiator)
    with frozen(target):
        initiator.post(handles=[handle])
        if thawed == "after":
            assert initiator.release_and_keep(handle=handle, limit=LIMIT)[0] < AT_ONCE
        else:
            first = initiator.release(handle=handle)
    if thawed == "before" and first == REFUSED:
        initiator.release_and_keep(handle=handle, limit=LIMIT)
    elif thawed == "before":
        assert first == "released"
        initiator.keep()
    goes_on(target, bystander, BALLAST)
    assert initiator.changed() is None


def test_deregistered_by_the_initiator_under_way(three, weft):
    initiator, target, bystander = three(LENGTHS)
    handle = read(initiator)
    initiator.post(handles=[handle])
    outcome = initiator.disown()
    initiator.keep()
    if outcome == "disowned":
        goes_on(target, bystander, BALLAST)
        assert initiator.changed() is None
    assert set(initiator.wait(handles=[handle], limit=LIMIT)["outcomes"]) <= FAILURES | {"DONE"}
    initiator.release_and_keep(handle=handle, limit=LIMIT)
    assert initiator.disown() == "disowned"


@BOTH
def test_deregistered_by_the_target_under_way(three, weft, operation):
    """What it holds from then on is its own business."""
    initiator, target, bystander = three(LENGTHS)
    handle = initiator.make(operation=operation, peer="target", mine=[LANDING], theirs=[LANDING])
    initiator.post(handles=[handle])
    assert target.disown() == "disowned"
    target.fill(seed=77)
    target.keep()
    outcome = initiator.wait(handles=[handle], limit=LIMIT)["outcomes"][0]
    assert outcome in FAILURES | {"DONE"}
    target.quiet(during=0.2)
    assert target.changed() is None
    if operation == "READ":
        came = [[LANDING, LANDING, TARGET]] if outcome == "DONE" else []
        assert initiator.neither(seeds=[INITIATOR, TARGET]) is None
        assert outcome != "DONE" or initiator.wrong(seed=INITIATOR, landed=came) is None


def test_the_peer_is_removed_under_way(three, weft):
    initiator, target, _ = three(LENGTHS)
    handle = read(initiator)
    initiator.post(handles=[handle])
    assert initiator.forget(peer="target") == "forgotten"
    assert initiator.state(handle=handle) in FAILURES | {"DONE"}
    initiator.release_and_keep(handle=handle, limit=LIMIT)
    initiator.meet(**target.introduction)
    done(initiator.move(handles=[write_ballast(initiator, "target")], limit=LIMIT))
    assert initiator.changed() is None
    assert target.wrong(seed=TARGET, landed=[[BALLAST, BALLAST, INITIATOR]]) is None


def test_the_agent_is_destroyed_under_way(three, weft, parties):
    initiator, target, bystander = three(LENGTHS)
    handles = [read(initiator), write_ballast(initiator, "target")]
    initiator.post(handles=handles)
    target.post(handles=[write_ballast(target, "initiator")])
    assert initiator.destroy() < LIMIT
    target.forget(peer="initiator")
    goes_on(target, bystander, BALLAST)
    assert initiator.changed() is None
    initiator.name = "successor"
    assert parties.reopen(initiator) == "open"
    initiator.own(LENGTHS)
    initiator.meet(**target.introduction)
    initiator.fill(seed=INITIATOR)
    done(initiator.move(handles=[write_ballast(initiator, "target")], limit=LIMIT))


def test_the_interpreter_ends_with_everything_open(three, weft, parties):
    initiator, target, _ = three(LENGTHS)
    handles = [read(initiator), write_ballast(initiator, "target")]
    initiator.notify(peer="target", notes=[[1, 5 * MIB]])
    its = [write_ballast(target, "initiator") for _ in range(4)]
    target.post(handles=its)
    initiator.post(handles=handles)
    parties.leave(initiator)
    outcomes = target.wait(handles=its, limit=LIMIT)["outcomes"]
    assert set(outcomes) <= FAILURES | {"DONE"}
    parties.leave(target)
