"""Which requests' KV caches prefill keeps for decode. The tables lie in the memory of prefill's
scheduler; decode's workers read and write them without it.

A lease is a number in a slot. Decode reads the blocks first, and the slot afterwards: if the
lease's number still stands there, no block was used again before it was read. So a lease ends by
one store into prefill's own memory. Nobody is asked, and a decode that is frozen, cut off or gone
holds nothing up.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

import weft

from ._reference import Refused

__all__ = ["LEASES", "NUMBER", "REPLIES", "Lease", "Leases", "reply_offset"]

# Names of what is published.
LEASES = "weft.vllm/leases"
REPLIES = "weft.vllm/replies"
NUMBER = 8  # bytes
LOOK_SECONDS = 0.01  # between looks at what decode has said
DONE, WANTED = 0, 1  # what a worker of decode says of a lease: numbers of its reply


def reply_offset(slot: int, rank: int, ranks: int, which: int) -> int:
    return ((slot * ranks + rank) * 2 + which) * NUMBER


@dataclass
class Lease:
    """What prefill still has to keep."""

    request: str
    slot: int
    generation: int
    ends: float
    """By time.monotonic()."""
    wanted: tuple[int, ...]
    """What decode's workers had last said."""


class Leases:
    """`ranks`: workers of decode, each of which has to have what it needs."""

    def __init__(self, engine: weft.Engine, *, slots: int, ranks: int, seconds: float) -> None:
        self.ranks, self.seconds = ranks, seconds
        self._held: dict[str, Lease] = {}
        self._looked = 0.0
        self._free = list(range(slots))
        self._leases = engine.share(weft.Memory.own(slots * NUMBER), LEASES, weft.Rights.read)
        self._replies = engine.share(
            weft.Memory.own(slots * ranks * 2 * NUMBER), REPLIES, weft.Rights.write
        )
        self._numbers = memoryview(self._leases).cast("Q")
        self._said = memoryview(self._replies).cast("Q")

    def __len__(self) -> int:
        return len(self._held)

    def lend(self, request: str) -> Lease:
        """Refuses if there is no slot left."""
        if not self._free:
            raise Refused(f"{len(self._held)} requests wait for decode already (slots)")
        slot = self._free.pop()
        generation = secrets.randbits(63) + 1  # never 0
        self._numbers[slot] = generation
        lease = Lease(
            request, slot, generation, time.monotonic() + self.seconds, self._wanted(slot)
        )
        self._held[request] = lease
        return lease

    def end(self, request: str) -> None:
        """From now on nobody takes its blocks for good, whoever reads them."""
        lease = self._held.pop(request)
        self._numbers[lease.slot] = 0
        self._free.append(lease.slot)

    def end_all(self) -> list[str]:
        requests = list(self._held)
        for request in requests:
            self.end(request)
        return requests

    def ended(self) -> list[tuple[str, bool]]:
        """Ends those that decode is done with (True), or has not wanted for long (False)."""
        now = time.monotonic()
        ended: list[tuple[str, bool]] = []
        if now - self._looked < LOOK_SECONDS:
            return ended
        self._looked = now
        for lease in list(self._held.values()):
            done = all(self._reply(lease.slot, rank, DONE) == lease.generation
                       for rank in range(self.ranks))
            wanted = self._wanted(lease.slot)
            if wanted != lease.wanted:
                lease.wanted, lease.ends = wanted, now + self.seconds
            if done or now >= lease.ends:
                self.end(lease.request)
                ended.append((lease.request, done))
        return ended

    def close(self) -> None:
        self.end_all()
        self._numbers.release()
        self._said.release()

    def _reply(self, slot: int, rank: int, which: int) -> int:
        return self._said[reply_offset(slot, rank, self.ranks, which) // NUMBER]

    def _wanted(self, slot: int) -> tuple[int, ...]:
        return tuple(self._reply(slot, rank, WANTED) for rank in range(self.ranks))
