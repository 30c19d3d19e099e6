"""What the two sides of a driven peer have in common: their memory, and the commands they obey.

A side reads commands as lines of JSON and answers each with one. It ends with its input.
"""

import ctypes
import json
import mmap
import os
import random
import sys
import time

TILE_BYTES = 1_048_573  # A prime: bytes that land a power of two too far differ.


class Memory:
    """Private pages that are all there."""

    def __init__(self, length):
        self._pages = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self._pages.madvise(mmap.MADV_HUGEPAGE)  # Weft asks for them too.
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        self.fill(length, seed=0)

    def _tiles(self, length, seed):
        """Each byte depends on its position and on the seed."""
        tile = random.Random(seed).randbytes(TILE_BYTES)
        for start in range(0, length, TILE_BYTES):
            end = min(start + TILE_BYTES, length)
            yield start, end, tile[:end - start]

    def fill(self, length, seed):
        for start, end, tile in self._tiles(length, seed):
            self._pages[start:end] = tile

    def first_wrong(self, length, seed):
        """The offset of the first tile that differs from the pattern, or None."""
        return next((start for start, end, tile in self._tiles(length, seed)
                     if self._pages[start:end] != tile), None)


class Side:
    """A library under measurement adds introduce, meet, prepare, begin and ended.

    begin(slot) starts a write, ended(slot) tells without waiting whether it is done.
    """

    def __init__(self, length):
        self.memory = Memory(length)

    def write(self, size, window, count, limit):
        """Keeps the window full until count writes are done; the seconds that they took."""
        self.prepare(size, window)
        self._keep_in_flight(window, window, limit)
        return self._keep_in_flight(window, count, limit)

    def latencies(self, size, count, limit):
        """The seconds that each write took, one after the other."""
        self.prepare(size, 1)
        return [self._keep_in_flight(1, 1, limit) for _ in range(count)]

    def _keep_in_flight(self, window, count, limit):
        start = time.perf_counter()
        begun = min(window, count)
        busy = list(range(begun))
        for slot in busy:
            self.begin(slot)
        while busy:
            if time.perf_counter() - start > limit:
                raise TimeoutError(f"{len(busy)} of {count} writes have not ended in {limit} s")
            still = []
            for slot in busy:
                if not self.ended(slot):
                    still.append(slot)
                elif begun < count:
                    self.begin(slot)
                    begun += 1
                    still.append(slot)
            busy = still
        return time.perf_counter() - start

    def serve(self, answers):
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = {"answer": self._obey(**request)}
            except Exception as error:  # Whatever the library throws is told in a line.
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=answers, flush=True)

    def _obey(self, do, **arguments):
        commands = {"introduce": self.introduce, "meet": self.meet, "write": self.write,
                    "latencies": self.latencies, "fill": self.memory.fill,
                    "first_wrong": self.memory.first_wrong}
        return commands[do](**arguments)


def keep_answers_apart():
    """Standard output for answers alone: what libraries print there goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers
