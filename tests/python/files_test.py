"""Files as memory: read and written by peers, and copied within one engine."""

from __future__ import annotations

import os
from pathlib import Path

import numpy
import pytest
from support import Pair, pattern

import weft

PAGE = 4096
SIZE = 3 * 1024 * 1024 + 5


def test_a_peer_reads_a_file(engines: Pair, tmp_path: Path) -> None:
    data = pattern(SIZE, 1)
    path = tmp_path / "pages"
    path.write_bytes(data.tobytes())
    with engines.b.add(weft.Memory.file(path, read_only=True)) as segment:
        assert segment.size == SIZE
        assert segment.place.kind in (weft.MemoryKind.file, weft.MemoryKind.buffered_file)
        assert segment.read_only and segment.address == 0
        remote = engines.a.import_grant(segment.grant(weft.Rights.read).blob)
        target = numpy.zeros(SIZE, numpy.uint8)
        with engines.a.add(target) as here:
            engines.a.read(here, remote, [(0, 0, SIZE)]).wait()
        assert (target == data).all()
        with pytest.raises(weft.PermissionDenied):
            segment.grant(weft.Rights.write)


def test_a_peer_writes_a_file(engines: Pair, tmp_path: Path) -> None:
    data = pattern(SIZE, 2)
    path = tmp_path / "pages"
    memory = weft.Memory.file(str(path), 0, SIZE, create=True, durable=True, reserve=True)
    with engines.b.add(memory) as segment:
        assert path.stat().st_blocks * 512 >= SIZE
        remote = engines.a.import_grant(segment.grant(weft.Rights.write).blob)
        with engines.a.add(data) as here:
            engines.a.write(here, remote, [(0, 0, SIZE)]).wait()
    assert path.read_bytes() == data.tobytes()


def test_copies_within_an_engine(engines: Pair, tmp_path: Path) -> None:
    data = pattern(SIZE, 3)
    path = tmp_path / "pages"
    with engines.a.add(weft.Memory.file(path, bytes=SIZE, create=True, direct=False)) as file:
        assert file.place.kind == weft.MemoryKind.buffered_file
        with engines.a.add(data) as source:
            file.copy_from(source, [(0, 0, SIZE)])
        assert path.read_bytes() == data.tobytes()
        with engines.a.add(weft.Memory.own(2 * PAGE)) as target:
            target.copy_from(file, numpy.array([[PAGE, 0, PAGE], [0, PAGE, PAGE]]), timeout=30)
            seen = numpy.asarray(target)
            assert (seen[PAGE:] == data[:PAGE]).all()
            assert (seen[:PAGE] == data[PAGE : 2 * PAGE]).all()
            with pytest.raises(weft.InvalidArgument, match="copied into, which has 8192"):
                target.copy_from(file, [(0, 0, 3 * PAGE)])
            with pytest.raises(weft.InvalidArgument, match="copied from, which has"):
                target.copy_from(file, [(0, SIZE, PAGE)])
            with pytest.raises(weft.InvalidArgument, match="triples"):
                target.copy_from(file, weft.Strided((0, 0, PAGE), 2, PAGE, PAGE))
        with pytest.raises(weft.Unsupported):
            file.copy_from(file, [(0, PAGE, PAGE)])


def test_a_descriptor(engines: Pair, tmp_path: Path) -> None:
    data = pattern(SIZE, 4)
    path = tmp_path / "pages"
    path.write_bytes(data.tobytes())
    fd = os.open(path, os.O_RDONLY)
    with engines.a.add(weft.Memory.file(fd, PAGE, PAGE)) as segment:
        os.close(fd)
        assert segment.read_only and segment.size == PAGE
        with engines.a.add(weft.Memory.own(PAGE)) as target:
            target.copy_from(segment, [(0, 0, PAGE)])
            assert (numpy.asarray(target) == data[PAGE : 2 * PAGE]).all()
            with pytest.raises(weft.PermissionDenied):
                segment.copy_from(target, [(0, 0, PAGE)])


def test_a_block_that_is_not_what_its_sum_says(engines: Pair, tmp_path: Path) -> None:
    path, sums = tmp_path / "pages", tmp_path / "sums"
    data, target = pattern(4 * PAGE, 4), numpy.zeros(4 * PAGE, numpy.uint8)
    memory = weft.Memory.file(
        path, bytes=4 * PAGE, create=True, direct=False, checked_block=PAGE, sums=sums
    )
    with engines.b.add(memory) as segment, engines.a.add(data) as source:
        remote = engines.a.import_grant(segment.grant(weft.Rights.read_write).blob)
        engines.a.write(source, remote, [(0, 0, 4 * PAGE)]).wait()
        with open(path, "r+b") as file:
            file.seek(2 * PAGE + 7)
            file.write(b"\x00" if data[2 * PAGE + 7] else b"\x01")
        with engines.a.add(target) as here:
            with pytest.raises(weft.Corrupt, match=f"{PAGE} bytes at {2 * PAGE}"):
                engines.a.read(here, remote, [(0, 0, 4 * PAGE)]).wait()
            engines.a.read(here, remote, [(0, 0, 2 * PAGE)]).wait()
            assert (target[: 2 * PAGE] == data[: 2 * PAGE]).all()
            with pytest.raises(weft.InvalidArgument, match="not aligned to the file's"):
                engines.a.read(here, remote, [(0, 0, PAGE - 1)])
    assert sums.stat().st_size > 0


def test_what_is_wrong_with_a_file(engines: Pair, tmp_path: Path) -> None:
    with pytest.raises(weft.NotFound, match="nothing"):
        engines.a.add(weft.Memory.file(tmp_path / "nothing"))
    path = tmp_path / "short"
    path.write_bytes(b"x" * PAGE)
    with pytest.raises(weft.InvalidArgument, match="leave"):
        engines.a.add(weft.Memory.file(path, 0, 2 * PAGE))
    with engines.a.add(weft.Memory.file(path)) as segment, engines.a.add(
        weft.Memory.own(PAGE)
    ) as target:
        with pytest.raises(BufferError, match="copy_from"):
            memoryview(segment)
        path.write_bytes(b"")
        with pytest.raises(weft.Unavailable, match="cut off"):
            target.copy_from(segment, [(0, 0, PAGE)])
