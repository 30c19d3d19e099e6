"""Medians, and how sure a ratio is."""

import random
import statistics

RESAMPLES = 2000
CONFIDENCE = 0.95


def spread(values):
    """Median, least, greatest."""
    return statistics.median(values), min(values), max(values)


def quantile(values, part):
    """The least value that so large a part of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(part * 1000) * len(ordered) // 1000) - 1)]


def ratio(ours, theirs, seed=1):
    """Of values by round: the median of the rounds' ratios, and its bootstrap interval.

    Rounds that either lacks do not count. None where none is left.
    """
    pairs = [ours[each] / theirs[each] for each in sorted(ours.keys() & theirs.keys())]
    if not pairs:
        return None
    dice = random.Random(seed)
    medians = [statistics.median(dice.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES)]
    tail = (1 - CONFIDENCE) / 2
    return statistics.median(pairs), quantile(medians, tail), quantile(medians, 1 - tail)
