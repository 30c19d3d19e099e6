"""Bytes between two processes."""

import math
import random

import pytest

from moves import INITIATOR, LIMIT, MIB, TARGET, check, done, fill, like, scattered
from parties import introduce, together

BOTH = pytest.mark.parametrize("operation", ("READ", "WRITE"))


@BOTH
def test_pieces_of_all_sizes(two, operation):
    lengths = [1, 63, 4096, 65536 + 1, MIB - 1, 5 * MIB + 7]
    initiator, target = two([length + 9 for length in lengths])
    mine = [[region, 1, length] for region, length in enumerate(lengths)]
    theirs = [[region, 8, length] for region, length in enumerate(lengths)]
    for first, last in [(0, 6)] + [(each, each + 1) for each in range(6)]:
        fill(initiator, target)
        handle = initiator.make(operation=operation, peer="target", mine=mine[first:last],
                                theirs=theirs[first:last])
        done(initiator.move(handles=[handle], limit=LIMIT))
        check(operation, initiator, target, mine[first:last], theirs[first:last])


@BOTH
def test_a_handle_is_posted_again_and_again(two, operation, long):
    initiator, target = two([3000])
    piece = [0, 7, 2900]
    handle = initiator.make(operation=operation, peer="target", mine=[piece], theirs=[piece])
    reading = operation == "READ"
    source, sink = (target, initiator) if reading else (initiator, target)
    sink.fill(seed=0)
    for seed in range(1, 10001 if long else 1001):
        source.fill(seed=seed)
        done(initiator.move(handles=[handle], limit=LIMIT))
        wrong = sink.wrong(seed=0, landed=[[piece, piece, seed]])
        assert wrong is None, f"of post {seed}"


@BOTH
def test_prepared_lists_are_picked_from(two, operation):
    blocks, length = 512, 1000
    initiator, target = two([blocks * length])
    pieces = [[0, block * length, length] for block in range(blocks)]
    mine, theirs = initiator.prepare(owner=None, pieces=pieces), initiator.prepare(
        owner="target", pieces=pieces)
    draw = random.Random(operation)
    for count in (1, 100, blocks):
        my_picks, their_picks = (draw.sample(range(blocks), count) for _ in range(2))
        fill(initiator, target)
        handle = initiator.pick(operation=operation, mine=mine, my_indices=my_picks,
                                theirs=theirs, their_indices=their_picks)
        done(initiator.move(handles=[handle], limit=LIMIT))
        check(operation, initiator, target, [pieces[each] for each in my_picks],
              [pieces[each] for each in their_picks])


@BOTH
def test_one_request_has_blocks_of_many_registrations(two, operation):
    """As of 24 layers: one notification, when all of it is there."""
    layers, blocks, length = 24, 16, 4096
    initiator, target = two([blocks * length] * layers)
    draw = random.Random(operation)
    mine, theirs = ([[layer, block * length, length] for layer in range(layers)
                     for block in draw.sample(range(blocks), blocks // 2)] for _ in range(2))
    fill(initiator, target)
    handle = initiator.make(operation=operation, peer="target", mine=mine, theirs=theirs,
                            with_note=[24, 100])
    done(initiator.move(handles=[handle], limit=LIMIT))
    assert target.collect(count=1, limit=LIMIT) == [["initiator", 24, 100]]
    check(operation, initiator, target, mine, theirs)
    assert target.quiet(during=0.1) == []


@BOTH
def test_within_one_agent(two, operation):
    initiator, _ = two([MIB, MIB])
    initiator.fill(seed=INITIATOR)
    mine, other = [[0, 5, 300_000], [0, 400_000, 9]], [[1, 0, 300_000], [1, 500_001, 9]]
    handle = initiator.make(operation=operation, peer="initiator", mine=mine, theirs=other,
                            with_note=[7, 9000])
    done(initiator.move(handles=[handle], limit=LIMIT))
    assert initiator.collect(count=1, limit=LIMIT) == [["initiator", 7, 9000]]
    pairs = zip(mine, other) if operation == "READ" else zip(other, mine)
    landed = [[to, source, INITIATOR] for to, source in pairs]
    assert initiator.wrong(seed=INITIATOR, landed=landed) is None


def test_both_directions_at_once(two, long):
    """Both read and write, in regions of which each is for one of these."""
    length, pieces = 2 * MIB, 16
    here, there = two([length] * 5)
    fill(here, there)
    for party, peer in ((here, there), (there, here)):
        mine, theirs = ([[region, piece * length // pieces, length // pieces]
                         for piece in range(pieces)] for region in (0, 1))
        party.handles = [
            party.make(operation="READ", peer=peer.name, mine=theirs, theirs=mine),
            *(party.make(operation="WRITE", peer=peer.name, mine=[piece], theirs=[[2, *piece[1:]]])
              for piece in mine)]
    for _ in range(100 if long else 5):
        for moved in together(*(lambda party=party: party.move(handles=party.handles, limit=LIMIT)
                                for party in (here, there))):
            done(moved)
    whole = [[region, 0, length] for region in range(3)]
    for party, seed, peers_seed in ((here, INITIATOR, TARGET), (there, TARGET, INITIATOR)):
        landed = [[whole[1], whole[0], peers_seed], [whole[2], whole[0], peers_seed]]
        assert party.wrong(seed=seed, landed=landed) is None


@BOTH
def test_ten_thousand_descriptors(two, operation):
    count, slot = 10_000, 700
    initiator, target = two([count * slot])
    mine = scattered(count, slot, seed=1)
    theirs = like(scattered(count, slot, seed=2), mine)
    fill(initiator, target)
    handle = initiator.make(operation=operation, peer="target", mine=mine, theirs=theirs,
                            with_note=[1, 20])
    done(initiator.move(handles=[handle], limit=LIMIT))
    assert target.collect(count=1, limit=LIMIT) == [["initiator", 1, 20]]
    check(operation, initiator, target, mine, theirs)


def seconds_of(initiator, lists, count):
    """Of what is done for each request: it is made, and carried."""
    picks = list(range(count))
    handle, picked = initiator.timed_pick(operation="READ", mine=lists[0], my_indices=picks,
                                          theirs=lists[1], their_indices=picks)
    moved = initiator.move(handles=[handle], limit=LIMIT)
    done(moved)
    initiator.release(handle=handle)
    return picked + moved["seconds"]


def test_time_grows_no_faster_than_descriptors(two):
    count, slot, length, generous, tries = 100_000, 512, 256, 3, 12
    initiator, target = two([count * slot])
    fill(initiator, target)
    mine, theirs = (scattered(count, slot, seed, length) for seed in (1, 2))
    lists = initiator.prepare(owner=None, pieces=mine), initiator.prepare(
        owner="target", pieces=theirs)
    few = many = math.inf
    for _ in range(tries):  # Beside other work the least of a few is still no measure.
        few = min(few, seconds_of(initiator, lists, count // 10))
        many = min(many, seconds_of(initiator, lists, count))
        if many < generous * 10 * few:
            break
    check("READ", initiator, target, mine, theirs)
    print(f"10,000 descriptors: {few * 1e3:.1f} ms; 100,000: {many * 1e3:.1f} ms")
    assert many < generous * 10 * few


def test_what_is_registered_later_is_met_by_metadata_loaded_again(two):
    initiator, target = two([5000])
    for length in (7000, 9000):
        for party in (initiator, target):
            party.own([length])
        introduce(initiator, target)
        fill(initiator, target)
        piece = [0, 1, length - 2]
        handle = initiator.make(operation="READ", peer="target", mine=[piece], theirs=[piece])
        done(initiator.move(handles=[handle], limit=LIMIT))
        check("READ", initiator, target, [piece], [piece])
