"""Memory of a party: regions with guards around them, every byte known by its position."""

import collections
import mmap

import numpy

from pattern import pattern

GUARD_BYTES = 4096 + 64  # So that regions are no neighbours, and begin at no page.
GUARD = 0xA5
MOST_SHOWN = 3


class Memory:
    """Regions in one mapping: of its own, or of a file that others map too.

    Pieces are [region, offset, length]. Parties with equal lengths have equal positions.
    """

    def __init__(self, lengths, path=None):
        self.starts, self.lengths, end = [], lengths, GUARD_BYTES
        for length in lengths:
            self.starts.append(end)
            end += length + GUARD_BYTES
        self.bytes = numpy.frombuffer(self._mapping(end, path), numpy.uint8)
        self.base = self.bytes.ctypes.data
        for guard in self._guards():
            self.bytes[guard] = GUARD

    @staticmethod
    def _mapping(length, path):
        if path is None:
            mapping = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            mapping.madvise(mmap.MADV_HUGEPAGE)
            return mapping
        with open(path, "r+b") as file:
            file.truncate(length)
            return mmap.mmap(file.fileno(), length)

    def _guards(self):
        """One in front of each region, and one behind the last."""
        ends = [0, *(start + length for start, length in zip(self.starts, self.lengths))]
        return [slice(end, end + GUARD_BYTES) for end in ends]

    def _regions(self):
        return [slice(start, start + length) for start, length in zip(self.starts, self.lengths)]

    def registered(self):
        """Where each region begins, and its length."""
        return [(self.base + start, length) for start, length in zip(self.starts, self.lengths)]

    def at(self, piece):
        region, offset, length = piece
        start = self.starts[region] + offset
        return slice(start, start + length)

    def descriptors(self, base, pieces):
        """Of pieces in a memory like this that begins at an address."""
        table = numpy.array(pieces, numpy.uint64).reshape(-1, 3)
        starts = numpy.array(self.starts, numpy.uint64)
        addresses = numpy.uint64(base) + starts[table[:, 0].astype(numpy.intp)] + table[:, 1]
        device = numpy.zeros(len(table), numpy.uint64)
        return numpy.ascontiguousarray(numpy.column_stack((addresses, table[:, 2], device)))

    def pattern(self, seed):
        return pattern(seed, len(self.bytes))

    def fill(self, seed):
        for region in self._regions():
            self.bytes[region] = self.pattern(seed)[region]

    def wrong(self, seed, landed=()):
        """What differs, in words, from a fill by which others' bytes came over: [mine, theirs,
        their seed]. None if all is right."""
        came = collections.defaultdict(list)
        for piece in landed:
            came[piece[0][0]].append(piece)
        wrong = (self._difference(region, self._after(seed, number, came[number]))
                 for number, region in enumerate(self._regions()))
        return next(filter(None, wrong), None) or self._wrong_guard()

    def _after(self, seed, number, landed):
        """What a region has to hold."""
        region, expected = self._regions()[number], self.pattern(seed)
        if landed:
            expected = expected.copy()
        for mine, theirs, their_seed in landed:
            expected[self.at(mine)] = self.pattern(their_seed)[self.at(theirs)]
        return expected[region]

    def neither(self, seeds):
        """What is of none of these fills, in words, or None."""
        for region in self._regions():
            expected = self.pattern(seeds[0])[region].copy()
            for seed in seeds[1:]:
                its = self.pattern(seed)[region]
                numpy.copyto(expected, its, where=self.bytes[region] == its)
            wrong = self._difference(region, expected)
            if wrong:
                return wrong
        return self._wrong_guard()

    def _wrong_guard(self):
        wrong = (self._difference(guard, numpy.uint8(GUARD)) for guard in self._guards())
        return next(filter(None, wrong), None)

    def difference(self, expected):
        """From a copy of all of it."""
        return self._difference(slice(0, len(self.bytes)), expected)

    def _difference(self, part, expected):
        """In words, or None."""
        wrong = numpy.flatnonzero(self.bytes[part] != expected)
        if not len(wrong):
            return None
        shown = ", ".join(self._place(part.start + at) for at in wrong[:MOST_SHOWN])
        return f"{len(wrong)} bytes are wrong ({shown})"

    def _place(self, position):
        region = int(numpy.searchsorted(self.starts, position, side="right")) - 1
        offset = position - (self.starts[region] if region >= 0 else 0)
        if region < 0 or offset >= self.lengths[region]:
            return f"guard behind region {region}: {self.bytes[position]}"
        return f"region {region}, byte {offset}: {self.bytes[position]}"

    def arrived(self, mine, theirs, their_seed):
        """How many bytes of a piece are those of the other side."""
        return int(numpy.count_nonzero(
            self.bytes[self.at(mine)] == self.pattern(their_seed)[self.at(theirs)]))


class Kept:
    """A copy of memory; first of every so manyeth byte, which takes no time in which more lands."""

    STEP = 509

    def __init__(self, memory):
        self._memory = memory
        self._sample = memory.bytes[::self.STEP].copy()
        self._whole = memory.bytes.copy()

    def difference(self):
        """What has changed since, in words, or None."""
        self._whole[::self.STEP] = self._sample
        return self._memory.difference(self._whole)
