"""New weights for running inference ranks: a step is in all of them, or in none.

A trainer's ranks are publishers, inference ranks are subscribers. All meet at the address of
publisher 0. Each says which slices of which tensors it has, and where:

    # A trainer's rank, of 4; all of them publish the same steps.
    holds, segments = weights.rank_of(
        engine, {"w": weights.Slice(mine, shape=(4096, 1024), begin=(1024, 0))}, name="trainer1"
    )
    with weights.Publisher(
        engine, holds, segments, rank=1, publishers=4, leader="10.0.0.1:7000"
    ) as publisher:
        publisher.publish(7, timeout=10)

    # An inference rank, with two sets of memory that are laid out alike.
    holds, one = weights.rank_of(engine, {"w": a}, name="decode0")
    _, other = weights.rank_of(engine, {"w": b}, name="decode0")
    with weights.Subscriber(
        engine, holds, [one, other], rank=0, leader="10.0.0.1:7000"
    ) as subscriber:
        subscriber.wait(7, timeout=60)
        with subscriber.read() as reading:          # nobody writes to that set meanwhile
            run([a, b][reading.set])

`await publisher.publish_async(7)` and `await subscriber.wait_async(7)` are for event loops.

plan() shows beforehand who would write what to whom. from_config() names the tensors of known
models. Shapes are in elements, offsets and strides in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ._errors import Error, InvalidArgument
from ._memory import is_array, is_tensor, why_not_plain
from ._weft import (
    Engine,
    FanOut,
    Load,
    ModelTensor,
    PairTotal,
    Parallelism,
    Party,
    Published,
    Publisher,
    Reading,
    Segment,
    Shard,
    Side,
    Standing,
    StepState,
    Subscriber,
    World,
    bytes_of,
    dtype_named,
    name_of,
)
from ._weft import WeightsDType as DType
from ._weft import WeightsModel as Model
from ._weft import WeightsPlan as Plan
from ._weft import WeightsRank as Rank
from ._weft import WeightsTransfer as Transfer
from ._weft import plan_weights as plan
from ._weft import weights_from_config as from_config

__all__ = [
    "DType", "FanOut", "Load", "Model", "ModelTensor", "PairTotal", "Parallelism", "Party", "Plan",
    "Published", "Publisher", "Rank", "Reading", "Shard", "Side", "Slice", "Standing", "StepState",
    "Subscriber", "Transfer", "World", "bytes_of", "dtype_named", "from_config", "name_of", "plan",
    "rank_of",
]  # fmt: skip


class Slice(NamedTuple):
    """A part of a tensor that is larger than the array which holds it."""

    array: Any
    """Of numpy or torch; its shape is that of the slice."""
    shape: Sequence[int]
    """Of the whole tensor, in elements."""
    begin: Sequence[int]
    """The first element of the slice, in each dimension."""


class _Memory(NamedTuple):
    """Where the elements of an array lie."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # In bytes.
    address: int
    owner: Any  # What Engine.add() takes: the whole memory that the array is a view of.
    begin: int  # Of the owner's memory.


def _of_tensor(tensor: Any) -> _Memory:
    import torch  # type: ignore[import-not-found]

    if why := why_not_plain(tensor):
        raise InvalidArgument(why)
    size = tensor.element_size()
    bare = tensor.detach()
    storage = torch.empty(0, dtype=torch.uint8, device=bare.device).set_(bare.untyped_storage())
    return _Memory(
        dtype=str(bare.dtype).removeprefix("torch."),
        shape=tuple(bare.shape),
        strides=tuple(stride * size for stride in bare.stride()),
        address=bare.data_ptr(),
        owner=storage,
        begin=storage.data_ptr(),
    )


def _of_array(array: Any) -> _Memory:
    if not array.dtype.isnative:
        raise InvalidArgument(
            "its bytes are not in this machine's order: pass "
            "array.astype(array.dtype.newbyteorder('='))"
        )
    whole = array
    while isinstance(whole.base, type(array)):
        whole = whole.base
    return _Memory(
        dtype=array.dtype.name,
        shape=tuple(array.shape),
        strides=tuple(array.strides),
        address=array.__array_interface__["data"][0],
        owner=whole,
        begin=whole.__array_interface__["data"][0],
    )


def _memory_of(array: Any) -> _Memory:
    if is_tensor(array):
        return _of_tensor(array)
    if is_array(array):
        return _of_array(array)
    raise InvalidArgument(f"{type(array).__name__} is no array of numpy or tensor of torch")


class _Segments:
    """Those that exist, and those that tensors need besides: one for each piece of memory."""

    def __init__(self, engine: Engine, segments: Iterable[Segment]) -> None:
        self.engine = engine
        self.all = list(segments)
        # Those of an array are found by its address: `Segment.address` is 0 in a GPU's memory.
        self.places = [(each.address, each.size) for each in self.all]

    def place(self, memory: _Memory, bytes: int) -> tuple[int, int]:
        """The number of the segment and the offset in it."""
        for number, (begin, size) in enumerate(self.places):
            if begin <= memory.address and memory.address + bytes <= begin + size:
                return number, memory.address - begin
        self.all.append(self.engine.add(memory.owner))
        self.places.append((memory.begin, self.all[-1].size))
        return len(self.all) - 1, memory.address - memory.begin


def _shard(name: str, held: Any, segments: _Segments) -> Shard:
    part = held if isinstance(held, Slice) else None
    array = part.array if part else held
    memory = _memory_of(array)
    if 0 in memory.shape:
        raise InvalidArgument("it has no elements")
    if any(stride < 0 for stride in memory.strides):
        raise InvalidArgument("it runs backwards in memory; copy it first")
    dtype = dtype_named(memory.dtype)
    dense = bytes_of(dtype)
    strides, last = memory.strides, dense
    for extent, stride in zip(reversed(memory.shape), reversed(strides), strict=True):
        if extent != 1 and stride != dense:
            break
        dense *= extent
    else:
        strides = ()
    for extent, stride in zip(memory.shape, memory.strides, strict=True):
        last += (extent - 1) * stride
    segment, offset = segments.place(memory, last)
    if is_tensor(array):  # An array's memory is its own for good.
        segments.all[segment]._watch(array, name)
    return Shard(
        name,
        tuple(part.shape) if part else memory.shape,
        dtype,
        begin=tuple(part.begin) if part else (0,) * len(memory.shape),
        extent=memory.shape,
        segment=segment,
        offset=offset,
        strides=strides,
    )


def rank_of(
    engine: Engine,
    tensors: Mapping[str, Any],
    *,
    name: str,
    host: str = "",
    nics: int = 1,
    gbps: float = 100.0,
    segments: Iterable[Segment] = (),
) -> tuple[Rank, list[Segment]]:
    """What a rank holds, and its memory, which is registered with the engine.

    tensors: by the names that both sides use: arrays of numpy (with ml_dtypes) or tensors of torch,
    each a whole tensor, or a Slice of one. They may be views with strides, and share memory: what
    they are views of becomes a segment once. segments: those that exist already and may hold some
    of them, such as weft.Memory.shared, the fastest between processes of one host. The result has
    them first.

    name, host, nics, gbps: see Rank.
    """
    place = _Segments(engine, segments)
    shards = []
    for each, held in tensors.items():
        try:
            shards.append(_shard(each, held, place))
        except Error as error:
            raise type(error)(
                f"{each}: {error.cause}", operation=error.operation, fabric_code=error.fabric_code
            ) from None
    return Rank(name, shards, host=host, nics=nics, gbps=gbps), place.all
