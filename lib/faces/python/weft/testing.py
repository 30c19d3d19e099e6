"""For the tests of programs that use Weft: engines whose rails go wrong when they are told to.

    faults = weft.testing.Faults()
    with weft.testing.pair(faults, providers=["tcp"]) as both:
        segment = both.second.add(sink)
        remote = both.first.import_grant(segment.grant(weft.Rights.write).blob)
        source = both.first.add(data)
        faults.kill(0)                       # rail 0 refuses all: the others carry on
        both.first.write(source, remote, pieces).wait()
        faults.set(drop=1)                   # nothing arrives, and nothing ends
        lost = both.first.write(source, remote, pieces, timeout=0.5)
        ...                                  # the program must live with weft.TimedOut
        faults.clear()

All of it is in one process, and needs no fabric. To end a peer, close its engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._weft import Engine, FaultCounts, Faults, Peer, _open_with_faults

if TYPE_CHECKING:
    from typing import Unpack

    from ._options import Options

__all__ = ["FaultCounts", "Faults", "Pair", "open", "pair"]


@dataclass(frozen=True)
class Pair:
    """Two engines that have met."""

    first: Engine
    second: Engine
    to_second: Peer
    """The second engine, as the first one sees it."""
    to_first: Peer


def open(faults: Faults, **options: Unpack[Options]) -> Engine:
    """An Engine with that switch. None of its transfers is copied by the thread that submits it."""
    return _open_with_faults(faults, **options)


@contextmanager
def pair(faults: Faults | None = None, **options: Unpack[Options]) -> Iterator[Pair]:
    """Two engines with these options and one switch, which have met; closed at the end."""
    faults = faults or Faults()
    with open(faults, **options) as first, open(faults, **options) as second:
        to_second = first.connect(second.address, timeout=10)
        yield Pair(first, second, to_second, second.accept(timeout=10))
