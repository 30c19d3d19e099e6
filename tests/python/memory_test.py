"""Memory: whose it is, how long it stays, who may write it."""

from __future__ import annotations

import array
import gc
import mmap
import sys
import tempfile
import weakref

import numpy
import pytest
from support import Pair, pattern, released

import weft


def move(engines: Pair, source: weft.Segment, size: int) -> bytes:
    """What arrives at b of all of a segment of a's."""
    target = bytearray(size)
    there, remote = engines.granted(target, weft.Rights.write)
    engines.a.write(source, remote, [(0, 0, size)]).wait()
    there.close()
    return bytes(target)


def test_objects_with_buffers(engines: Pair) -> None:
    size = 4096
    data = pattern(size, 1)
    objects = [
        bytearray(data),
        data.copy(),
        data.reshape(64, 64).copy(),
        numpy.asfortranarray(data.reshape(64, 64).T),
        memoryview(bytearray(data)),
        array.array("B", data.tobytes()),
        data.tobytes(),
    ]
    anonymous = mmap.mmap(-1, size)
    anonymous[:] = data.tobytes()
    objects.append(anonymous)
    for each in objects:
        with engines.a.add(each) as segment:
            assert segment.owner is each
            assert segment.size == len(segment) == size
            assert move(engines, segment, size) == data.tobytes(), type(each)
        assert segment.owner is None


def test_no_copy(engines: Pair) -> None:
    mine = numpy.zeros(10_000, numpy.float32)
    with engines.b.add(mine) as segment:
        assert segment.address == mine.ctypes.data
        source = pattern(mine.nbytes, 2)
        remote = engines.a.import_grant(segment.grant(weft.Rights.write).blob)
        with engines.a.add(source) as local:
            engines.a.write(local, remote, [(0, 0, mine.nbytes)]).wait()
        assert mine.view(numpy.uint8).tobytes() == source.tobytes()


class OnlyDlpack:
    """As torch's and cupy's: no buffer."""

    def __init__(self, array: numpy.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack(engines: Pair) -> None:
    data = pattern(3000, 3)
    kept = OnlyDlpack(data.reshape(30, 100).copy())
    with engines.a.add(kept) as segment:
        assert segment.address == kept.array.ctypes.data
        assert move(engines, segment, 3000) == data.tobytes()
    with pytest.raises(weft.InvalidArgument, match="one after the other"):
        engines.a.add(OnlyDlpack(data.reshape(30, 100)[:, ::2]))


def test_what_has_gaps_or_no_memory_is_refused(engines: Pair) -> None:
    matrix = numpy.zeros((10, 10))
    for wrong, why in [
        (matrix[:, 1], "one after the other"),
        (matrix[::2], "one after the other"),
        (memoryview(bytearray(10))[::2], "one after the other"),
        (object(), "neither by the buffer protocol nor by DLPack"),
        ("text", "neither by the buffer protocol nor by DLPack"),
        (b"", "at least one byte"),
    ]:
        with pytest.raises(weft.InvalidArgument, match=why):
            engines.a.add(wrong)


def test_read_only_memory_is_a_source(engines: Pair) -> None:
    data = pattern(5000, 4).tobytes()
    frozen = numpy.frombuffer(data, numpy.uint8)
    for source in (data, frozen, memoryview(data)):
        with engines.a.add(source) as segment:
            assert segment.read_only
            assert move(engines, segment, 5000) == data
            with pytest.raises(weft.PermissionDenied):
                segment.grant(weft.Rights.write)
    writable = bytearray(data)
    with engines.a.add(writable, read_only=True) as segment:
        assert segment.read_only
        with pytest.raises(PermissionError):
            segment.grant(weft.Rights.read_write)
    target = bytearray(data)
    there, remote = engines.granted(target, weft.Rights.read)
    with engines.a.add(data) as segment, pytest.raises(weft.PermissionDenied):
        engines.a.read(segment, remote, [(0, 0, 100)])
    there.close()


def test_a_buffer_stays_exported_until_close(engines: Pair) -> None:
    mine = bytearray(1000)
    segment = engines.a.add(mine)
    with pytest.raises(BufferError):
        mine.extend(b"more")
    prepared_for = engines.granted(bytearray(1000), weft.Rights.write)
    prepared = engines.a.prepare(segment, prepared_for[1], weft.Direction.write, [(0, 0, 10)])
    segment.close()
    mine.extend(b"more")
    with pytest.raises(weft.Error):
        engines.a.submit(prepared)
    segment.close()
    prepared_for[0].close()


def test_forgotten_memory_stays_for_its_grant(engines: Pair) -> None:
    mine = numpy.zeros(1 << 20, numpy.uint8)
    gone = weakref.ref(mine)
    segment = engines.b.add(mine)
    grant = segment.grant(weft.Rights.read_write)
    remote = engines.a.import_grant(grant.blob)
    del mine, segment
    gc.collect()
    assert gone() is not None
    source = pattern(1 << 20, 5)
    back = numpy.zeros(1 << 20, numpy.uint8)
    with engines.a.add(source) as here, engines.a.add(back) as there:
        engines.a.write(here, remote, [(0, 0, 1 << 20)]).wait()
        engines.a.read(there, remote, [(0, 0, 1 << 20)]).wait()
    assert back.tobytes() == source.tobytes()
    assert gone() is not None
    grant.revoke()
    del grant
    released(lambda: gone() is None)


def test_forgotten_memory_stays_for_its_transfer(engines: Pair) -> None:
    target = numpy.zeros(8 << 20, numpy.uint8)
    there, remote = engines.granted(target, weft.Rights.write)
    source = pattern(8 << 20, 6)
    expected = source.copy()
    gone = weakref.ref(source)
    transfer = engines.a.write(engines.a.add(source), remote, [(0, 0, 8 << 20)])
    del source
    gc.collect()
    transfer.wait()
    assert numpy.array_equal(target, expected)
    del transfer
    there.close()
    released(lambda: gone() is None)


def test_views_of_own_memory(engines: Pair) -> None:
    for memory in (weft.Memory.own(100_000), weft.Memory.shared(100_000)):
        segment = engines.b.add(memory)
        view = numpy.asarray(segment)
        assert view.dtype == numpy.uint8 and view.shape == (100_000,) and view.flags.writeable
        assert view.ctypes.data == segment.address
        assert numpy.from_dlpack(segment).ctypes.data == segment.address
        assert memoryview(segment).nbytes == 100_000
        data = pattern(100_000, 7)
        with engines.a.add(data) as local:
            remote = engines.a.import_grant(segment.grant(weft.Rights.write).blob)
            engines.a.write(local, remote, [(0, 0, 100_000)]).wait()
        segment.close()
        del segment
        gc.collect()
        assert numpy.array_equal(view, data), "a view keeps the memory mapped"


def test_mapped_files(engines: Pair) -> None:
    data = pattern(1 << 16, 8)
    with tempfile.NamedTemporaryFile() as file:
        file.write(data.tobytes())
        file.flush()
        with open(file.name, "rb") as readable:
            segment = engines.a.add(weft.Memory.map(readable.fileno(), 0, 1 << 16))
        assert segment.read_only
        assert numpy.array_equal(numpy.asarray(segment), data)
        assert not numpy.asarray(segment).flags.writeable
        assert move(engines, segment, 1 << 16) == data.tobytes()
        segment.close()


def test_memory_of_others_has_no_view(engines: Pair) -> None:
    with engines.a.add(bytearray(10)) as segment, pytest.raises(BufferError, match="owner"):
        memoryview(segment)


def test_grants(engines: Pair) -> None:
    mine = bytearray(10_000)
    with engines.b.add(mine) as segment:
        grant = segment.grant(weft.Rights.write, [(1000, 2000), (5000, 100)])
        remote = engines.a.import_grant(grant.blob)
        assert remote.ranges == [(1000, 2000), (5000, 100)]
        assert remote.segment_size == 10_000
        assert remote.rights == weft.Rights.write
        assert remote.peer == engines.b.name
        with engines.a.add(pattern(3000, 9)) as local:
            engines.a.write(local, remote, [(0, 1000, 2000), (2000, 5000, 100)]).wait()
            with pytest.raises(ValueError):
                engines.a.write(local, remote, [(0, 999, 10)])
            with pytest.raises(weft.PermissionDenied):
                engines.a.read(local, remote, [(0, 1000, 10)])
            grant.revoke()
            grant.revoke()
            with pytest.raises(weft.Stale) as stale:
                engines.a.write(local, remote, [(0, 1000, 10)]).wait()
            assert stale.value.peer == engines.b.name
            with pytest.raises(weft.Stale):
                engines.a.import_grant(grant.blob)
            with pytest.raises(weft.Stale):
                grant.renew(1)
        expected = bytes(1000) + pattern(3000, 9)[:2000].tobytes() + bytes(2000)
        assert bytes(mine) == expected + pattern(3000, 9)[2000:2100].tobytes() + bytes(4900)
        with pytest.raises(weft.InvalidArgument, match="no ranges"):
            segment.grant(weft.Rights.read, [])


def test_memory_of_a_closed_engine_is_free() -> None:
    mine = bytearray(1000)
    with weft.Engine(providers=["tcp"]) as engine:
        with engine.add(mine) as segment, segment.grant(weft.Rights.write):
            engine.close()
    mine.extend(b"more")


def test_calls_leave_no_objects_behind(engines: Pair) -> None:
    target, source = bytearray(8192), bytearray(8192)

    def work() -> None:
        with engines.b.add(target) as there, engines.a.add(source) as here:
            grant = there.grant(weft.Rights.read_write)
            remote = engines.a.import_grant(grant.blob)
            transfer = engines.a.write(here, remote, [(0, 4096, 4096)])
            transfer.wait()
            assert transfer.report().bytes_done == 4096
            whole = engines.a.prepare(here, remote, weft.Direction.read, [(0, 0, 8192)])
            engines.a.submit(whole).wait()
            with pytest.raises(weft.InvalidArgument):
                engines.a.write(here, remote, [(0, 8192, 1)])
            grant.revoke()
        assert engines.a.info().rails

    rounds = 100
    for _ in range(rounds):
        work()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(rounds):
        work()
    gc.collect()
    assert sys.getallocatedblocks() - before < rounds


def test_names(engines: Pair) -> None:
    with engines.b.add(weft.Memory.own(100)) as segment, segment.grant(weft.Rights.read) as grant:
        with pytest.raises(weft.TimedOut):
            engines.to_b.lookup("kv", timeout=0.2)
        engines.b.publish("kv", grant)
        assert engines.to_b.lookup("kv").segment_size == 100
