"""Notifications: of any length, after all bytes, none lost, none twice, each with its sender."""

import random

import pytest

from moves import INITIATOR, LIMIT, MIB, TARGET, done, fill
from parties import together

LENGTHS = (1, 100, 8191, 8192, 8193, 65536, MIB, 5 * MIB)
AFTERWARDS = 0.1  # Seconds in which what comes twice would come.


def test_of_any_length_alone(two):
    _, target = pair = two([10])
    notes = [[0, 0]] + [[number, length] for number, length in enumerate(LENGTHS, 1)]
    for sender, receiver in (pair, reversed(pair)):
        sender.notify(peer=receiver.name, notes=notes)
        came = receiver.collect(count=len(notes), limit=LIMIT)
        assert sorted(came) == [[sender.name, *each] for each in notes]
        assert receiver.quiet(during=AFTERWARDS) == []


def test_to_oneself(two):
    initiator, _ = two([10])
    notes = [[number, length] for number, length in enumerate(LENGTHS)]
    initiator.notify(peer="initiator", notes=notes)
    came = initiator.collect(count=len(notes), limit=LIMIT)
    assert sorted(came) == [["initiator", *each] for each in notes]
    assert initiator.quiet(during=AFTERWARDS) == []


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("operation", ("READ", "WRITE"))
def test_after_all_bytes(two, shared_files, operation, length):
    """The target looks at the memory into which the bytes go as soon as it has the notification."""
    regions, pieces, share = [2 * MIB, 300_001], 64, 32 * 1024
    path = shared_files()
    initiator, target = two(regions, (path, None))
    target.look_at(lengths=regions, path=path)
    mine = [[0, each * share, share - 3] for each in range(pieces)] + [[1, 0, 300_001]]
    theirs = [*reversed(mine[:-1]), mine[-1]]
    handle = initiator.make(operation=operation, peer="target", mine=mine, theirs=theirs)
    reading = operation == "READ"
    pairs, seed, others_seed = ((zip(mine, theirs), INITIATOR, TARGET) if reading else
                                (zip(theirs, mine), TARGET, INITIATOR))
    landed = [[to, source, others_seed] for to, source in pairs]
    check = {"of_other": reading, "seed": seed, "landed": landed}
    for number in range(1, 4):
        fill(initiator, target)
        came, moved = together(
            lambda: target.collect(count=1, limit=LIMIT, checks={number: check}),
            lambda: initiator.move(handles=[handle], limit=LIMIT, with_note=[number, length]))
        done(moved)
        assert came == [["initiator", number, length]]
    assert target.quiet(during=AFTERWARDS) == []


def test_a_handle_keeps_its_notification_until_it_is_given_another(two):
    initiator, target = two([100])
    handle = initiator.make(operation="WRITE", peer="target", mine=[[0, 0, 9]],
                            theirs=[[0, 9, 9]], with_note=[1, 20])
    for with_note, expected in ((None, [1, 20]), (None, [1, 20]), ([2, 9000], [2, 9000]),
                                (None, [2, 9000])):
        done(initiator.move(handles=[handle], limit=LIMIT, with_note=with_note))
        assert target.collect(count=1, limit=LIMIT) == [["initiator", *expected]]
    assert target.quiet(during=AFTERWARDS) == []


def test_none_without_one(two):
    initiator, target = two([100])
    handle = initiator.make(operation="WRITE", peer="target", mine=[[0, 0, 9]],
                            theirs=[[0, 9, 9]])
    done(initiator.move(handles=[handle], limit=LIMIT))
    initiator.notify(peer="target", notes=[[5, 50]])
    assert target.collect(count=1, limit=LIMIT) == [["initiator", 5, 50]]
    assert target.quiet(during=AFTERWARDS) == []


def test_thousands_in_both_directions(two, long):
    """Alone and with transfers, in any order."""
    pair, count, moves = two([4096]), 20_000 if long else 2000, 200
    draw = random.Random(count)
    notes = [[number, draw.randrange(8, 3000)] for number in range(count)]
    expected = sorted([*notes, *([count + each, 100] for each in range(moves))])
    for party, peer in (pair, reversed(pair)):
        party.handle = party.make(operation="WRITE", peer=peer.name, mine=[[0, 0, 1000]],
                                  theirs=[[0, 2000, 1000]])

    def send(party, peer):
        share = count // moves
        for each in range(moves):
            party.notify(peer=peer.name, notes=notes[each * share:(each + 1) * share])
            done(party.move(handles=[party.handle], limit=LIMIT, with_note=[count + each, 100]))

    together(lambda: send(*pair), lambda: send(*reversed(pair)))
    for party, peer in (pair, reversed(pair)):
        came = party.collect(count=len(expected), limit=LIMIT)
        assert sorted(came) == [[peer.name, *each] for each in expected]
        assert party.quiet(during=AFTERWARDS) == []


def test_many_long_ones_wait_for_a_receiver_that_looks_late(two):
    initiator, target = two([10])
    notes = [[number, MIB] for number in range(1, 49)]
    initiator.notify(peer="target", notes=notes)
    came = target.collect(count=len(notes), limit=LIMIT)
    assert sorted(came) == [["initiator", *each] for each in notes]
    assert target.quiet(during=AFTERWARDS) == []
