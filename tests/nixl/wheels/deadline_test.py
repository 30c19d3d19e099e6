"""A deadline for each transfer, with a peer that is silent and not yet taken for dead."""

from moves import INITIATOR, LIMIT, MIB, TARGET, done, fill
from parties import frozen

WHOLE = [0, 0, 64 * MIB]
SECONDS = 0.5
NOTE = [9, 90]


def test_a_deadline_is_kept(fresh, weft, providers, slack):
    """What failed does not read memory any more, and its notification does not come. Through shared
    memory all may be there, and only the peer's word for it missing: so it may come after all."""
    initiator, target = fresh([64 * MIB], parameters={"timeout_ms": "500", "death_after": "60s"})
    fill(initiator, target)
    handle = initiator.make(operation="WRITE", peer="target", mine=[WHOLE], theirs=[WHOLE],
                            with_note=NOTE)
    with frozen(target):
        initiator.post(handles=[handle])
        ended = initiator.wait(handles=[handle], limit=LIMIT)
        initiator.fill(seed=77)
    outcome = ended["outcomes"][0]
    came = target.quiet(during=0.5)
    if came and providers == "shm":
        assert came == [["initiator", *NOTE]]
        assert target.wrong(seed=TARGET, landed=[[WHOLE, WHOLE, INITIATOR]]) is None
    else:
        assert came == []
    assert target.neither(seeds=[TARGET, INITIATOR]) is None
    if outcome != "DONE" or providers != "shm":
        assert outcome == "nixlBackendError"
        assert SECONDS * 0.8 < ended["seconds"] < SECONDS + slack
    goes_on(initiator, target)


def goes_on(initiator, target):
    """What is left of the failed one may be in the way for a while. Of those that fail, no
    notification comes; of the one that does not, one."""
    piece = [0, 0, MIB]
    handle = initiator.make(operation="WRITE", peer="target", mine=[piece], theirs=[piece])
    initiator.fill(seed=INITIATOR)
    for number in range(100, 140):
        if initiator.move(handles=[handle], limit=LIMIT,
                          with_note=[number, 90])["outcomes"] == ["DONE"]:
            break
    assert target.collect(count=1, limit=LIMIT) == [["initiator", number, 90]]
    assert target.quiet(during=0.1) == []
