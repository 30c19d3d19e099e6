"""What both sides of a transfer hold before it, and after."""

import random

from parties import together

INITIATOR, TARGET = 1, 2  # Seeds of what they hold before.
MIB = 1 << 20
LIMIT = 60  # Seconds for what should take none.
PROMPT = {"death_after": "2s"}  # Parameters of those who have to see that a peer died.


def fill(initiator, target):
    together(lambda: initiator.fill(seed=INITIATOR), lambda: target.fill(seed=TARGET))


def check(operation, initiator, target, mine, theirs):
    """Every byte of both sides, after the pieces of one were moved to those of the other."""
    if operation == "READ":
        landed = [[one, other, TARGET] for one, other in zip(mine, theirs)]
        landed_there = []
    else:
        landed = []
        landed_there = [[other, one, INITIATOR] for one, other in zip(mine, theirs)]
    assert initiator.wrong(seed=INITIATOR, landed=landed) is None
    assert target.wrong(seed=TARGET, landed=landed_there) is None


def done(moved):
    assert set(moved["outcomes"]) == {"DONE"}


def goes_on(party, bystander, piece):
    """It is awake, and what it moves comes to its end."""
    handle = party.make(operation="WRITE", peer="bystander", mine=[piece], theirs=[piece])
    done(party.move(handles=[handle], limit=LIMIT))
    bystander.quiet(during=0.2)


def scattered(count, slot, seed, length=None):
    """Pieces of one region, in no order; without a length, of up to a slot."""
    draw = random.Random(seed)
    slots = draw.sample(range(count), count)
    if length:
        return [[0, each * slot, length] for each in slots]
    return [[0, each * slot, draw.randint(1, slot - 1)] for each in slots]


def like(pieces, others):
    """The first, as long as the others."""
    return [[region, offset, length]
            for (region, offset, _), (_, _, length) in zip(pieces, others)]
