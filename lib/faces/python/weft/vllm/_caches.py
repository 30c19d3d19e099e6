"""Where the blocks of a worker's KV cache lie, and what a peer is told of it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import weft

from ._reference import Refused

__all__ = ["Caches", "Copy", "Layout", "Region", "copies_between", "regions_of"]

LAYOUT = "weft.vllm/layout"
FORMAT = 1


def segment_name(index: int) -> str:
    return f"weft.vllm/cache/{index}"


@dataclass(frozen=True)
class Region:
    """The blocks of one layer, or of a part of it. Block b begins at base + b * stride."""

    layer: str
    part: int
    dtype: str
    shape: tuple[int, ...]
    """Of one block."""
    bytes: int
    """Of one block."""
    group: int
    """Whose block table counts."""
    segment: int
    base: int
    stride: int


@dataclass(frozen=True)
class Layout:
    block_tokens: tuple[int, ...]
    """For each group of layers."""
    regions: list[Region]

    def encoded(self) -> bytes:
        return json.dumps({"format": FORMAT, **asdict(self)}).encode()

    @staticmethod
    def decoded(text: bytes) -> Layout:
        told = json.loads(text)
        if told.pop("format", None) != FORMAT:
            raise Refused("prefill describes its cache in another format: another version of Weft")
        regions = [Region(**{**each, "shape": tuple(each["shape"])}) for each in told["regions"]]
        return Layout(tuple(told["block_tokens"]), regions)


def regions_of(
    layer: str, tensor: Any, *, group: int, blocks: int, segment: int, base: int
) -> list[Region]:
    """Of a layer's tensor, whose first or second dimension counts blocks. Refuses one whose blocks
    do not lie in one piece each. `base`: where the tensor begins in its segment."""
    size, dtype = tensor.element_size(), str(tensor.dtype)
    strides = [each * size for each in tensor.stride()]
    for axis in (0, 1):
        if tensor.dim() <= axis or tensor.shape[axis] % blocks != 0:
            continue
        # A block of vLLM's may be several of the kernel's.
        kernel_blocks = tensor.shape[axis] // blocks
        shape = (kernel_blocks, *tensor.shape[axis + 1 :])
        if not _dense(shape, strides[axis:], size):
            continue
        parts = tensor.shape[0] if axis == 1 else 1
        length = math.prod(shape) * size
        return [
            Region(layer, part, dtype, shape, length, group, segment,
                   base + part * strides[0] * axis, strides[axis] * kernel_blocks)
            for part in range(parts)
        ]
    raise Refused(
        f"layer {layer}: the blocks of a tensor of shape {tuple(tensor.shape)} and strides "
        f"{tuple(tensor.stride())} do not lie in one piece each"
    )


def _dense(shape: Sequence[int], strides: Sequence[int], size: int) -> bool:
    """Whether such elements fill one piece of memory, in any order of the dimensions."""
    span = size + sum((count - 1) * stride for count, stride in zip(shape, strides, strict=True))
    return span == math.prod(shape) * size


@dataclass(frozen=True)
class Copy:
    """One region's part of every load."""

    local: Region
    remote: Region


def copies_between(local: Layout, remote: Layout) -> list[Copy]:
    """Refuses, by name, what is not alike on both sides."""
    if local.block_tokens != remote.block_tokens:
        raise Refused(f"blocks have {list(remote.block_tokens)} tokens at prefill and "
                      f"{list(local.block_tokens)} here (block_size)")
    theirs = {(each.layer, each.part): each for each in remote.regions}
    ours = {(each.layer, each.part) for each in local.regions}
    if missing := sorted(ours ^ set(theirs)):
        where = "here" if missing[0] in ours else "at prefill"
        raise Refused(f"layer {missing[0][0]} is only {where}")
    copies = []
    for each in local.regions:
        other = theirs[each.layer, each.part]
        for what in ("dtype", "shape", "group"):
            if getattr(each, what) != getattr(other, what):
                raise Refused(f"layer {each.layer}: {what} is {getattr(other, what)} at prefill "
                              f"and {getattr(each, what)} here")
        copies.append(Copy(each, other))
    return copies


class Caches:
    """A worker's KV cache, registered. Peers may read it."""

    def __init__(self, engine: weft.Engine, tensors: Mapping[str, Any], *, blocks: int,
                 groups: Mapping[str, int], block_tokens: Sequence[int]) -> None:
        self.segments: list[weft.Segment] = []
        numbers: dict[int, int] = {}  # of segments, by the address of their storage
        regions: list[Region] = []
        for layer, tensor in tensors.items():
            if layer not in groups:
                continue  # It shares another layer's cache.
            for part in tensor if isinstance(tensor, (list, tuple)) else (tensor,):
                storage = part.untyped_storage()
                number = numbers.setdefault(storage.data_ptr(), len(self.segments))
                if number == len(self.segments):
                    self.segments.append(self._add(engine, storage, part.device))
                base = part.data_ptr() - storage.data_ptr()
                found = regions_of(layer, part, group=groups[layer], blocks=blocks,
                                   segment=number, base=base)
                begun = sum(each.layer == layer for each in regions)
                regions += [replace(each, part=begun + each.part) for each in found]
        self.layout = Layout(tuple(block_tokens), regions)
        for index, segment in enumerate(self.segments):
            engine.publish(segment_name(index), segment.grant(weft.Rights.read))
        self._told = engine.share(bytearray(self.layout.encoded()), LAYOUT, weft.Rights.read)

    @staticmethod
    def _add(engine: weft.Engine, storage: Any, device: Any) -> weft.Segment:
        import torch  # type: ignore[import-not-found]

        whole = torch.empty(0, dtype=torch.uint8, device=device).set_(storage)
        return engine.add(whole)
