"""The order of measurements: all peers of a cell in turn, in another order each time."""

import random


def turns(cells, peers, rounds, seed):
    """(round, cell, peer) of all measurements. In each round each cell meets each peer once."""
    dice = random.Random(seed)
    for number in range(rounds):
        for cell in dice.sample(cells, len(cells)):
            for peer in dice.sample(peers, len(peers)):
                yield number, cell, peer
