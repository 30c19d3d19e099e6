"""Memory beside the model, from which or into which a step goes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch  # type: ignore[import-not-found]

import weft

# Of each tensor, in bytes: a cache line. No element is larger.
_ALIGNMENT = 64


class Room(NamedTuple):
    """What a tensor takes."""

    name: str
    dtype: Any
    shape: tuple[int, ...]


class Staging:
    """A segment with room for tensors, and the tensors in it."""

    def __init__(self, engine: weft.Engine, rooms: Iterable[Room]) -> None:
        offsets, end = {}, 0
        for room in rooms:
            offsets[room] = end
            size = math.prod(room.shape) * room.dtype.itemsize
            end += -(-size // _ALIGNMENT) * _ALIGNMENT
        self.segment = engine.add(weft.Memory.shared(max(end, 1)))
        bare = torch.frombuffer(memoryview(self.segment), dtype=torch.uint8)
        self.tensors: dict[str, Any] = {}
        for room, offset in offsets.items():
            size = math.prod(room.shape) * room.dtype.itemsize
            place = bare[offset : offset + size]
            self.tensors[room.name] = place.view(room.dtype).view(room.shape)
