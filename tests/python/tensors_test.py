"""Objects whose memory can go elsewhere, or whose bytes are not their values."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from support import Pair, pattern, released

import weft
from weft import weights

try:  # Here, for it can take as long as a test may.
    import torch
    import torch.multiprocessing
except ImportError:
    torch = None
needs_torch = pytest.mark.skipif(torch is None, reason="no torch")

SIZE = 100_000


def fill(engines: Pair, segment: weft.Segment, value: int) -> None:
    """A peer writes all of a segment of b's."""
    grant = segment.grant(weft.Rights.write)
    remote = engines.a.import_grant(grant.blob)
    with engines.a.add(numpy.full(segment.size, value, numpy.uint8)) as source:
        engines.a.write(source, remote, [(0, 0, segment.size)]).wait()
    grant.revoke()


def queue(tensor: Any) -> None:
    torch.multiprocessing.get_context("spawn").SimpleQueue().put(tensor)


def queue_by_name(tensor: Any) -> None:
    before = torch.multiprocessing.get_sharing_strategy()
    torch.multiprocessing.set_sharing_strategy("file_system")
    try:
        queue(tensor)
    finally:
        torch.multiprocessing.set_sharing_strategy(before)


def share_a_parameter(tensor: Any) -> None:
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(tensor, requires_grad=False)
    module.share_memory()


MOVES: dict[str, Callable[[Any], Any]] = {
    "share": lambda tensor: tensor.share_memory_(),
    "share a view": lambda tensor: tensor.view(10, -1)[3:].share_memory_(),
    "share a model": share_a_parameter,
    "queue": queue,
    "queue by name": queue_by_name,
    # Of a view: torch gives the tensor its new shape before it raises.
    "resize": lambda tensor: tensor[:].resize_(1 << 24),
    "free": lambda tensor: tensor.untyped_storage().resize_(0),
}


@needs_torch
@pytest.mark.parametrize("move", MOVES)
def test_a_tensor_stays_where_it_is(engines: Pair, move: str) -> None:
    tensor = torch.zeros(SIZE, dtype=torch.uint8)
    for given in (tensor, tensor.view(100, -1), tensor.numpy(), memoryview(tensor.numpy())):
        with engines.b.add(given) as segment:
            with pytest.raises((BufferError, RuntimeError)):
                MOVES[move](tensor)
            assert tensor.data_ptr() == segment.address
            fill(engines, segment, 9)
        assert (tensor == 9).all()
        tensor.zero_()
    if move in ("share", "queue"):
        MOVES[move](tensor)
        assert tensor.is_shared()


@needs_torch
def test_a_tensor_stays_for_all_of_its_segments(engines: Pair) -> None:
    tensor = torch.zeros(SIZE)
    first, second = engines.b.add(tensor[:10]), engines.b.add(tensor[10:])
    first.close()
    with pytest.raises(BufferError, match="close the segment first"):
        tensor.share_memory_()
    del first, second
    gc.collect()
    released(lambda: "resize_" not in tensor.untyped_storage().__dict__)
    assert tensor.share_memory_().is_shared()


@needs_torch
def test_a_tensor_that_is_shared_may_be_shared_again(engines: Pair) -> None:
    tensor = torch.zeros(SIZE, dtype=torch.uint8).share_memory_()
    with engines.b.add(tensor) as segment:
        queue(tensor)
        tensor.share_memory_()
        assert tensor.data_ptr() == segment.address
        fill(engines, segment, 7)
        assert (tensor == 7).all()


@needs_torch
def test_a_tensor_that_got_other_memory(engines: Pair) -> None:
    tensor = torch.zeros(SIZE, dtype=torch.uint8)
    there, remote = engines.granted(bytearray(SIZE), weft.Rights.write)
    with engines.a.add(tensor) as segment:
        prepared = engines.a.prepare(segment, remote, weft.Direction.write, [(0, 0, SIZE)])
        engines.a.submit(prepared).wait()
        grant = segment.grant(weft.Rights.read_write, ttl=60)
        before, tensor.data = tensor.data, torch.ones(SIZE, dtype=torch.uint8)
        for call in (
            lambda: segment.grant(weft.Rights.read),
            lambda: grant.blob,
            lambda: grant.renew(60),
            lambda: engines.a.publish("it", grant),
            lambda: engines.a.submit(prepared),
            lambda: engines.a.submit(prepared, [0]),
            lambda: engines.a.write(segment, remote, [(0, 0, 1)]),
            lambda: engines.a.read(segment, remote, [(0, 0, 1)]),
            lambda: engines.a.warm(segment, remote),
            lambda: engines.a.prepare(segment, remote, weft.Direction.write, [(0, 0, 1)]),
            lambda: segment.copy_from(segment, [(0, 0, 1)]),
        ):
            with pytest.raises(weft.InvalidArgument, match="Tensor: its memory is not where"):
                call()
        tensor.data = before
        engines.a.submit(prepared).wait()
    there.close()


@needs_torch
def test_a_step_of_a_tensor_that_got_other_memory() -> None:
    source, sink = torch.zeros(64), torch.zeros(64)
    with (
        weft.Engine(providers=["tcp"], listen="127.0.0.1:0") as trainer,
        weft.Engine(providers=["tcp"], listen="127.0.0.1:0") as serving,
    ):
        holds, segments = weights.rank_of(trainer, {"w": source}, name="trainer")
        wants, places = weights.rank_of(serving, {"w": sink}, name="rank")
        with (
            weights.Publisher(trainer, holds, segments) as publisher,
            weights.Subscriber(serving, wants, [places], leader=trainer.address) as subscriber,
        ):
            source.fill_(1)
            publisher.publish(1, timeout=60)
            subscriber.wait(1, timeout=60)
            with pytest.raises(BufferError):
                source.share_memory_()
            subscriber.read().close()
            assert (sink == 1).all()
            source.data, sink.data = torch.zeros(64), torch.zeros(64)
            for call in (
                lambda: publisher.publish(2, timeout=60),
                lambda: publisher.publish_async(2, timeout=60),
                lambda: subscriber.read(),
                lambda: weights.Publisher(trainer, holds, segments),
            ):
                with pytest.raises(weft.InvalidArgument, match="w: its memory is not where it was"):
                    call()


@needs_torch
def test_what_the_bytes_of_a_tensor_are_not(engines: Pair) -> None:
    real, many = torch.ones(4), torch.ones(4, 4)
    for wrong, why in [
        (torch.ones(4, dtype=torch.complex64).conj(), "resolve_conj"),
        (torch.ones(4, dtype=torch.complex64).conj().imag, "resolve_neg"),
        (torch._neg_view(real), "resolve_neg"),
        (many.to_sparse(), "to_dense"),
        (torch.ones(4, device="meta"), "no memory"),
        (many[:, 1], "one after the other"),
        (torch.ones(0), "at least one byte"),
    ]:
        with pytest.raises(weft.InvalidArgument, match=why):
            engines.a.add(wrong)
        if "one after" not in why and wrong.dtype == torch.float32:
            with pytest.raises(weft.InvalidArgument, match="^w: "):
                weights.rank_of(engines.a, {"w": wrong}, name="rank")
    types = [torch.bfloat16, torch.bool, torch.complex64]
    types += [getattr(torch, each) for each in dir(torch) if each.startswith(("float8", "float4"))]
    for each in types:
        tensor = torch.zeros(64, dtype=torch.uint8).view(each)
        with engines.a.add(tensor) as segment:
            assert (segment.size, segment.address) == (64, tensor.data_ptr())
            assert segment.owner is tensor
    with engines.a.add(torch.nn.Parameter(real)) as segment:
        assert segment.address == real.data_ptr()
    with engines.a.add(many.T) as segment, engines.a.add(torch.ones(())) as number:
        assert (segment.size, number.size) == (64, 4)


@needs_torch
def test_memory_of_weft_seen_as_a_tensor(engines: Pair) -> None:
    segment = engines.b.add(weft.Memory.own(SIZE))
    tensor = torch.from_dlpack(segment)
    holds, segments = weights.rank_of(engines.b, {"w": tensor}, name="rank", segments=[segment])
    assert segments == [segment] and holds.shards[0].offset == 0
    fill(engines, segment, 4)
    assert (tensor == 4).all()
    tensor.share_memory_()  # Goes elsewhere; the segment's memory is still there.
    fill(engines, segment, 5)
    assert (numpy.asarray(segment) == 5).all() and (tensor == 4).all()
    with pytest.raises(weft.InvalidArgument, match="w: its memory is not where"):
        weights.Publisher(engines.b, holds, segments)
    segment.close()


def test_an_array_stays_where_it_is(engines: Pair) -> None:
    array = numpy.zeros(SIZE, numpy.uint8)
    for given in (array, array[100:], memoryview(array)):
        with engines.b.add(given) as segment:
            with pytest.raises(ValueError, match="resize"):
                array.resize(1 << 24, refcheck=False)
            fill(engines, segment, 5)
    assert (array == 5).all()
    array.resize(1 << 20, refcheck=False)


def test_an_object_that_moved(engines: Pair) -> None:
    array = (ctypes.c_uint8 * SIZE)()
    with engines.b.add(array) as segment:
        fill(engines, segment, 3)
        ctypes.resize(array, 1 << 24)
        with contextlib.suppress(weft.InvalidArgument):
            segment.grant(weft.Rights.write)
            # It may have grown in its place; ctypes does not tell.
            assert ctypes.addressof(array) == segment.address


def test_elements_that_are_pointers(engines: Pair) -> None:
    class Pointers(ctypes.Structure):
        _fields_ = [("a", ctypes.c_int), ("next", ctypes.c_void_p)]

    for wrong in (
        numpy.array([1, "x"], object),
        numpy.zeros(4, [("O", "i4"), ("x", object)]),
        (ctypes.py_object * 3)(),
        (Pointers * 2)(),
    ):
        with pytest.raises(weft.InvalidArgument, match="pointers"):
            engines.a.add(wrong)
        with pytest.raises(weft.InvalidArgument, match="pointers"):
            engines.to_b.send(1, wrong)
        with pytest.raises(weft.InvalidArgument, match="pointers"):
            engines.a.import_grant(wrong)
    engines.a.add(numpy.zeros(4, [("O", "i4"), ("P", "f8")])).close()
    for wrong in ("text", 10**15, [1, 2]):
        with pytest.raises(TypeError, match="bytes-like"):
            engines.a.import_grant(wrong)
        with pytest.raises(TypeError, match="bytes-like"):
            engines.to_b.send(1, wrong)


def test_arrays_that_are_no_weights(engines: Pair) -> None:
    for wrong, why in [
        (numpy.array([1, 2], ">f4"), "order"),
        (numpy.float32(1), "no array"),
        (numpy.zeros(0, numpy.float32), "no elements"),
        (numpy.zeros((4, 0), numpy.float32), "no elements"),
        (numpy.zeros(4, numpy.float32)[::-1], "backwards"),
        (numpy.zeros(4, object), "no type"),
    ]:
        with pytest.raises(weft.Error, match=f"^w: .*{why}"):
            weights.rank_of(engines.a, {"w": wrong}, name="rank")
    weights.rank_of(engines.a, {"w": numpy.array([1, 2], "=f4")}, name="rank")


def test_segments_that_can_not_be_seen(engines: Pair, tmp_path: Any) -> None:
    file = engines.a.add(weft.Memory.file(tmp_path / "f", bytes=4096, create=True, direct=False))
    closed = engines.a.add(weft.Memory.own(4096))
    closed.close()
    others = engines.a.add(bytearray(10))
    for segment, why in ((file, "file"), (closed, "closed"), (others, "owner")):
        for see in (memoryview, numpy.asarray, numpy.array, numpy.from_dlpack, bytes):
            with pytest.raises(BufferError, match=why):
                see(segment)
        with pytest.raises(weft.InvalidArgument):
            engines.a.add(segment)
    file.close()
    others.close()


def padded(kind: type) -> Any:
    return numpy.array([3, 0, -1, -1], kind)


@pytest.mark.parametrize("kind", [numpy.int8, numpy.int32, numpy.int64])
def test_lists_that_are_padded(engines: Pair, kind: type) -> None:
    there, remote = engines.granted(bytearray(4096), weft.Rights.write)
    with engines.a.add(bytearray(4096)) as here:
        prepared = engines.a.prepare(here, remote, weft.Direction.write, [(0, 0, 1)] * 1)
        for call in (
            lambda: weft.Paged(16, padded(kind), [0, 1, 2, 3]),
            lambda: weft.Paged(16, [0, 1, 2, 3], padded(kind)),
            lambda: weft.Pieces(padded(kind), 0, 1),
            lambda: weft.kv.Blocks(padded(kind)),
            lambda: engines.a.submit(prepared, padded(kind)),
            lambda: engines.a.write(here, remote, numpy.array([[0, 0, 1], [0, -1, 1]], kind)),
        ):
            with pytest.raises(weft.InvalidArgument, match="holds -1, and no number may be negat"):
                call()
    there.close()


def test_lists_of_pages_are_copied(engines: Pair) -> None:
    numbers = numpy.array([1, 0], numpy.uint32)
    pages = weft.Paged(16, numbers, numbers)
    numbers[:] = 1 << 20
    target = bytearray(32)
    there, remote = engines.granted(target, weft.Rights.write)
    source = pattern(32, 1)
    with engines.a.add(source) as here:
        engines.a.write(here, remote, pages).wait()
        engines.a.write(here, remote, ((at, at, 8) for at in (0, 8, 16, 24))).wait()
        with pytest.raises(weft.InvalidArgument, match="triples"):
            engines.a.write(here, remote, 7)
        with pytest.raises(ZeroDivisionError):
            engines.a.write(here, remote, (1 // 0 for _ in range(2)))
    there.close()
    assert bytes(target) == source.tobytes()
