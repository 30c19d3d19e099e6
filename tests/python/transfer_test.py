"""Transfers: lists of pieces in every form, options, ends."""

from __future__ import annotations

import numpy
import pytest
from support import Pair, pattern

import weft

SIZE = 1 << 16


@pytest.mark.parametrize("form", ["int64", "uint64", "int32", "strided", "columns", "list", "pieces"])
def test_forms_of_pieces(engines: Pair, form: str) -> None:
    rng = numpy.random.default_rng(1)
    count, length = 100, 128
    local = rng.permutation(SIZE // length)[:count].astype(numpy.int64) * length
    remote = rng.permutation(SIZE // length)[:count].astype(numpy.int64) * length
    rows = numpy.stack([local, remote, numpy.full(count, length)], axis=1)
    wide = numpy.zeros((count, 6), numpy.int64)
    wide[:, ::2] = rows
    pieces = {
        "int64": rows,
        "uint64": rows.astype(numpy.uint64),
        "int32": rows.astype(numpy.int32),
        "strided": wide[:, ::2],
        "columns": numpy.asfortranarray(rows),
        "list": [tuple(map(int, row)) for row in rows],
        "pieces": weft.Pieces(local.astype(numpy.uint32), list(map(int, remote)), length),
    }[form]
    source, target = pattern(SIZE, 1), numpy.zeros(SIZE, numpy.uint8)
    expected = numpy.zeros(SIZE, numpy.uint8)
    for here, there in zip(local, remote):
        expected[there : there + length] = source[here : here + length]
    with engines.a.add(source) as mine:
        yours, granted = engines.granted(target, weft.Rights.write)
        transfer = engines.a.write(mine, granted, pieces)
        transfer.wait()
        assert transfer.state == weft.State.done
        assert numpy.array_equal(target, expected)
        yours.close()


def test_first_contact_can_be_made_before(engines: Pair) -> None:
    with engines.a.add(bytearray(100)) as mine:
        yours, granted = engines.granted(bytearray(100), weft.Rights.read)
        transfer = engines.a.warm(mine, granted, cookie=7)
        transfer.wait()
        assert transfer.state == weft.State.done
        assert transfer.report().bytes == 0
        yours.close()


def test_pieces_are_an_array() -> None:
    pieces = weft.Pieces(range(0, 30, 10), numpy.arange(3), 7)
    assert len(pieces) == 3
    rows = numpy.asarray(pieces)
    assert rows.dtype == numpy.uint64
    assert rows.tolist() == [[0, 0, 7], [10, 1, 7], [20, 2, 7]]
    with pytest.raises(weft.InvalidArgument, match="lists of 2 and 3"):
        weft.Pieces([1, 2], [1, 2, 3], 4)
    with pytest.raises(weft.InvalidArgument, match="negative"):
        weft.Pieces([-1], [1], 4)


def test_wrong_pieces(engines: Pair) -> None:
    with engines.a.add(bytearray(100)) as mine:
        yours, remote = engines.granted(bytearray(100), weft.Rights.write)
        for wrong in (
            numpy.zeros((3, 2), numpy.int64),
            numpy.zeros(3, numpy.int64),
            numpy.zeros((1, 3)),
            [(1, 2)],
            [(0, 0, -1)],
            [(0, 50, 51)],
            numpy.array([[-1, 0, 10]]),
            weft.Paged(10, [0, 1], [0]),
            weft.Paged(10, [0], [10]),
            weft.Strided((0, 0, 10), 11, 10, 10),
        ):
            with pytest.raises(ValueError):
                engines.a.write(mine, remote, wrong)
        with pytest.raises(ValueError):
            weft.Paged(10, [2**32], [0])
        yours.close()


def test_paged_and_strided(engines: Pair) -> None:
    page, count = 512, SIZE // 512
    rng = numpy.random.default_rng(2)
    source, target = pattern(SIZE, 2), numpy.zeros(SIZE, numpy.uint8)
    with engines.a.add(source) as mine:
        yours, remote = engines.granted(target, weft.Rights.write)
        for kind in (numpy.uint32, numpy.int64):
            target[:] = 0
            here = rng.permutation(count)[:50].astype(kind)
            there = rng.permutation(count)[:50].astype(kind)
            pages = weft.Paged(page, here, there)
            assert len(pages) == 50
            engines.a.write(mine, remote, pages).wait()
            expected = numpy.zeros((count, page), numpy.uint8)
            expected[there] = source.reshape(count, page)[here]
            assert numpy.array_equal(target, expected.ravel())
        target[:] = 0
        engines.a.write(mine, remote, weft.Strided((10, 3, 7), 100, 64, 256)).wait()
        expected = numpy.zeros(SIZE, numpy.uint8)
        for i in range(100):
            expected[3 + 256 * i : 10 + 256 * i] = source[10 + 64 * i : 17 + 64 * i]
        assert numpy.array_equal(target, expected)
        yours.close()


def test_prepared_lists(engines: Pair) -> None:
    source, target = pattern(SIZE, 3), numpy.zeros(SIZE, numpy.uint8)
    with engines.a.add(source) as mine:
        yours, remote = engines.granted(target, weft.Rights.write)
        rows = numpy.array([[i * 64, i * 64, 64] for i in range(SIZE // 64)])
        prepared = engines.a.prepare(mine, remote, weft.Direction.write, rows)
        rows[:] = 0
        assert len(prepared) == SIZE // 64
        assert prepared.bytes == SIZE
        for picks in (numpy.arange(0, 1024, 2, numpy.uint32), range(1, 1024, 4), [3]):
            target[:] = 0
            engines.a.submit(prepared, picks).wait()
            expected = numpy.zeros((1024, 64), numpy.uint8)
            expected[list(picks)] = source.reshape(1024, 64)[list(picks)]
            assert numpy.array_equal(target, expected.ravel())
        engines.a.submit(prepared).wait()
        assert numpy.array_equal(target, source)
        with pytest.raises(ValueError):
            engines.a.submit(prepared, [1024])
        yours.close()


def test_reads(engines: Pair) -> None:
    theirs, mine = pattern(8 << 20, 4), numpy.zeros(8 << 20, numpy.uint8)
    yours, remote = engines.granted(theirs, weft.Rights.read)
    with engines.a.add(mine) as local:
        transfer = engines.a.read(local, remote, [(0, 1 << 20, 7 << 20), (7 << 20, 0, 1 << 20)])
        transfer.wait()
        assert numpy.array_equal(mine, numpy.roll(theirs, -(1 << 20)))
        report = transfer.report()
        assert report.bytes == report.bytes_done == 8 << 20
        assert report.ranges == 2
        assert report.error is None
        assert report.elapsed > 0
        assert sum(share.bytes for share in report.rails) == 8 << 20
        assert transfer.placed() == bytes([int(weft.Placed.all)] * 2)
    yours.close()


def test_signals_and_options(engines: Pair) -> None:
    source, target = pattern(SIZE, 5), numpy.zeros(SIZE, numpy.uint8)
    with engines.a.add(source) as mine:
        yours, remote = engines.granted(target, weft.Rights.write)
        expected = engines.to_a.expect(7, 2)
        assert not expected.ready
        with pytest.raises(weft.TimedOut):
            expected.wait(timeout=0.1)
        engines.a.write(mine, remote, [(0, 0, SIZE)], signal=7, verify=True).wait()
        engines.a.write(
            mine,
            remote,
            [(0, 0, 10)],
            signal=weft.Signal(7, b"all of it"),
            priority=weft.Priority.latency,
            policy="max_copies=9",
            wait_for_room=1,
            timeout=20,
        ).wait(20)
        signals = expected.wait()
        assert expected.ready
        assert signals.count == 2
        assert signals.payloads == [b"all of it"]
        assert expected.wait(0).payloads == [b"all of it"], "it may be asked again"
        assert numpy.array_equal(target, source)
        with pytest.raises(weft.PolicyRefused):
            engines.a.write(mine, remote, [(0, 0, 10)], policy=weft.Policy(min_gbps=1e9))
        yours.close()


def test_explain(engines: Pair) -> None:
    with engines.a.add(weft.Memory.shared(SIZE)) as mine:
        yours, remote = engines.granted(weft.Memory.shared(SIZE), weft.Rights.write)
        path = engines.a.explain(mine, remote, weft.Direction.write)
        assert path.provider in ("tcp", "shm")
        assert path.same_host
        assert path.hops and path.hops[0].from_.kind == weft.Stop.Kind.host
        assert not path.refused
        refused = engines.a.explain(mine, remote, weft.Direction.write, policy="min_gbps=1000000")
        assert "1000000 Gb/s" in refused.refused
        yours.close()


def test_the_end_of_a_transfer_that_times_out(engines: Pair) -> None:
    source = pattern(SIZE, 6)
    with engines.a.add(source) as mine:
        yours, remote = engines.granted(bytearray(SIZE), weft.Rights.write)
        transfer = engines.a.write(mine, remote, [(0, 0, SIZE)], timeout=0)
        with pytest.raises(TimeoutError) as error:
            transfer.wait()
        assert isinstance(error.value, weft.TimedOut)
        assert error.value.code == "timed_out"
        assert error.value.peer == engines.b.name
        assert "deadline" in error.value.cause
        assert transfer.state == weft.State.timed_out
        transfer_error = transfer.report().error
        assert isinstance(transfer_error, weft.TimedOut)
        with pytest.raises(weft.TimedOut):
            transfer.wait_quiescent()
        assert transfer.quiescent
        yours.close()


def test_a_peer_that_goes(engines: Pair) -> None:
    source = pattern(SIZE, 7)
    with engines.a.add(source) as mine:
        _, remote = engines.granted(bytearray(SIZE), weft.Rights.write)
        waits = engines.to_b.expect(1)
        engines.b.close()
        with pytest.raises(weft.Disconnected) as gone:
            waits.wait()
        assert isinstance(gone.value, ConnectionError)
        with pytest.raises((weft.Disconnected, weft.Stale)):
            engines.a.write(mine, remote, [(0, 0, SIZE)]).wait()
        assert not engines.to_b.up
        assert isinstance(engines.to_b.why_down, weft.Disconnected)
        with pytest.raises(weft.Closed):
            engines.b.add(bytearray(10))


def test_messages(engines: Pair) -> None:
    receive = engines.to_a.receive(5)
    engines.to_b.send(6, b"six")
    engines.to_b.send(5, bytearray(b"five"))
    engines.to_b.send(0x106, memoryview(b"masked"))
    message = receive.wait()
    assert (message.peer, message.tag, message.bytes) == (engines.a.name, 5, b"five")
    assert engines.to_a.recv(6, timeout=10).bytes == b"six"
    assert engines.to_a.recv(6, mask=0xFF).tag == 0x106
    with pytest.raises(weft.TimedOut, match="the tag 6"):
        engines.to_a.recv(6, timeout=0.1)
    expected = engines.to_a.expect(9)
    with pytest.raises(weft.TimedOut, match="signal 9") as error:
        expected.wait(timeout=0)
    assert error.value.peer == engines.a.name
    engines.to_b.signal(9)
    assert expected.wait().count == 1
    engines.to_a.forget(0, 100)


def test_manual_progress() -> None:
    from support import pair

    with pair("tcp", progress="manual", metrics=False) as engines:
        assert engines.a.progress() >= 0
        with pytest.raises(weft.Unavailable):
            engines.a.metrics_text()


def test_events(engines: Pair) -> None:
    import select

    assert engines.a.poll() == []
    assert engines.a.poll(timeout=0.05) == []
    with engines.a.add(pattern(SIZE, 8)) as mine:
        yours, remote = engines.granted(bytearray(SIZE), weft.Rights.write)
        for cookie in range(3):
            engines.a.write(mine, remote, [(0, 0, SIZE)], cookie=cookie)
        seen = []
        while len(seen) < 3:
            assert select.select([engines.a.fileno()], [], [], 20)[0]
            seen += engines.a.poll(2)
        assert sorted(event.cookie for event in seen) == [0, 1, 2]
        for event in seen:
            assert event.kind == weft.Event.Kind.transfer_ended
            assert event.state == weft.State.done
            assert event.peer == engines.b.name
            assert event.error is None and event.who is None
        yours.close()
