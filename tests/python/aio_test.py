"""asyncio: awaited transfers, cancellation, events."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import threading
from collections.abc import AsyncIterator

import numpy
import pytest
from support import Pair, finish, line_of, pattern, start

import weft
from weft import _aio

SIZE = 4 << 20


def test_awaited_transfers(engines: Pair) -> None:
    source, target = pattern(SIZE, 1), numpy.zeros(SIZE, numpy.uint8)

    async def work() -> None:
        with engines.a.add(source) as mine:
            yours, remote = engines.granted(target, weft.Rights.write)
            part = SIZE // 64
            expected = engines.b.expect(engines.to_a, 3, 64)
            message = engines.b.receive(engines.to_a, 4)
            transfers = [
                engines.a.write(mine, remote, [(i * part, i * part, part)], signal=3)
                for i in range(64)
            ]
            signals = await expected
            assert signals.count == 64
            assert numpy.array_equal(target, source)
            await asyncio.gather(*(each for each in transfers))
            assert all(each.state == weft.State.done for each in transfers)
            await transfers[0]
            engines.a.send(engines.to_b, 4, b"end")
            assert (await message).bytes == b"end"
            yours.close()

    asyncio.run(work())
    asyncio.run(work())


def test_an_awaited_transfer_has_ended(engines: Pair) -> None:
    """Also if the thread that told so has not come further yet."""

    async def work() -> None:
        with engines.a.add(pattern(4096, 6)) as mine:
            yours, remote = engines.granted(bytearray(4096), weft.Rights.write)
            prepared = engines.a.prepare(mine, remote, weft.Direction.write, [(0, 0, 4096)])
            for _ in range(3000):
                await engines.a.submit(prepared, priority=weft.Priority.bulk)
            yours.close()

    asyncio.run(work())


def test_what_is_awaited_has_arrived(engines: Pair) -> None:
    """Likewise."""

    async def work() -> None:
        for number in range(3000):
            message = engines.b.receive(engines.to_a, number)
            signal = engines.b.expect(engines.to_a, number)
            engines.a.send(engines.to_b, number, b"x")
            engines.a.signal(engines.to_b, number)
            assert (await message).bytes == b"x"
            assert (await signal).count == 1

    asyncio.run(work())


def test_what_fails_raises_where_it_is_awaited(engines: Pair) -> None:
    async def work() -> None:
        with engines.a.add(pattern(SIZE, 2)) as mine:
            yours, remote = engines.granted(bytearray(SIZE), weft.Rights.write)
            with pytest.raises(weft.TimedOut):
                await engines.a.write(mine, remote, [(0, 0, SIZE)], timeout=0)
            with pytest.raises(weft.TimedOut):
                await engines.b.expect(engines.to_a, 3, timeout=0.2)
            yours.close()

    asyncio.run(work())


def test_a_cancelled_wait_leaves_its_expectation(engines: Pair) -> None:
    async def work() -> None:
        expected = engines.b.expect(engines.to_a, 3)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(expected, 0.05)
        engines.a.signal(engines.to_b, 3)
        assert (await expected).count == 1

    asyncio.run(work())


def test_events(engines: Pair) -> None:
    async def work() -> None:
        seen = asyncio.Queue[weft.Event]()

        async def listen() -> None:
            async for event in engines.a.events():
                seen.put_nowait(event)

        listeners = [asyncio.create_task(listen()) for _ in range(2)]
        with engines.a.add(pattern(SIZE, 3)) as mine:
            yours, remote = engines.granted(bytearray(SIZE), weft.Rights.write)
            for cookie in range(20):
                engines.a.write(mine, remote, [(0, 0, 4096)], cookie=cookie)
            cookies = [(await seen.get()).cookie for _ in range(20)]
            assert sorted(cookies) == list(range(20))
            yours.close()
        engines.a.close()
        await asyncio.gather(*listeners)

    asyncio.run(work())


def test_cancellation() -> None:
    """The peer is stopped, with operations under way."""
    provider = "tcp"
    other = start("serve.py", provider, str(16 << 20))
    source = pattern(16 << 20, 4)

    async def work(engine: weft.Engine) -> None:
        peer = engine.connect(line_of(other).split()[0])
        remote = engine.lookup(peer, "memory")
        mine = engine.add(source)
        other.send_signal(signal.SIGSTOP)
        transfer = engine.write(mine, remote, [(0, 0, 16 << 20)])

        async def wait() -> None:
            await transfer

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert transfer.quiescent
        # What had been posted comes back when the peer is found dead.
        assert transfer.state in (weft.State.cancelled, weft.State.failed)

    try:
        with weft.Engine(
            providers=[provider], listen="", suspect_after=1, death_after=2
        ) as engine:
            asyncio.run(work(engine))
    finally:
        other.send_signal(signal.SIGCONT)
    finish(other)


@contextlib.asynccontextmanager
async def callers(engine: weft.Engine, count: int) -> AsyncIterator[list[weft.Engine]]:
    """Engines that connect to it."""
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(weft.Engine(listen="")) for _ in range(count)]
        for each in others:
            await asyncio.to_thread(each.connect, engine.address)
        yield others


def test_accept_can_be_awaited() -> None:
    async def work() -> None:
        with weft.Engine() as engine:
            waits = [asyncio.create_task(engine.accept_async(timeout=60)) for _ in range(3)]
            async with callers(engine, 4) as others:
                peers = [*await asyncio.gather(*waits), await engine.accept_async()]
                assert {each.name for each in peers} == {each.name for each in others}

    asyncio.run(work())


def test_an_accept_that_is_cancelled_takes_no_peer() -> None:
    async def work() -> None:
        with weft.Engine() as engine:
            early, late = (asyncio.create_task(engine.accept_async()) for _ in range(2))
            await asyncio.sleep(0)
            early.cancel()
            async with callers(engine, 1) as (other,):
                late.cancel()
                ended = await asyncio.gather(early, late, return_exceptions=True)
                assert isinstance(ended[0], asyncio.CancelledError)
                peer = ended[1]  # Perhaps it was faster than the cancel.
                if not isinstance(peer, weft.Peer):
                    peer = await engine.accept_async()
                assert peer.name == other.name

    asyncio.run(work())


def test_an_accept_that_nobody_comes_for() -> None:
    async def work() -> None:
        with weft.Engine() as engine:
            descriptors = len(os.listdir("/proc/self/fd"))
            for timeout in (0, 0.05, 0):
                with pytest.raises(weft.TimedOut, match="nobody connected"):
                    await engine.accept_async(timeout=timeout)
            assert len(os.listdir("/proc/self/fd")) == descriptors
            with pytest.raises(weft.InvalidArgument):
                await engine.accept_async(timeout=math.nan)
            wait = asyncio.create_task(engine.accept_async(timeout=math.inf))
            await asyncio.sleep(0)
            engine.close()
            with pytest.raises(weft.Closed):
                await wait

    asyncio.run(work())


class Stuck:
    """A transfer whose memory a NIC still touches after its end."""

    def __init__(self) -> None:
        self.cancelled = False
        self.drained = threading.Event()

    def _watch(self, waker: object, number: int) -> bool:
        return True

    def cancel(self) -> None:
        self.cancelled = True

    @property
    def quiescent(self) -> bool:
        return self.drained.is_set()

    def wait_quiescent(self, timeout: float) -> None:
        self.drained.wait()
        raise weft.Cancelled("as its end was")


def test_cancellation_waits_until_nothing_touches_the_memory() -> None:
    async def work() -> None:
        stuck = Stuck()
        task = asyncio.create_task(_aio.transfer(stuck))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        for _ in range(3):
            task.cancel()
            assert (await asyncio.wait({task}, timeout=0.05))[1] == {task}
        assert stuck.cancelled
        stuck.drained.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())


def test_a_transfer_that_ended_before_the_cancel(engines: Pair) -> None:
    async def work() -> None:
        with engines.a.add(pattern(SIZE, 5)) as mine:
            yours, remote = engines.granted(bytearray(SIZE), weft.Rights.write)
            for _ in range(50):
                transfer = engines.a.write(mine, remote, [(0, 0, SIZE // 8)])
                task = asyncio.create_task(wait(transfer))
                await asyncio.sleep(0)
                task.cancel()
                try:
                    await task
                except asyncio.CancelledError:
                    assert transfer.quiescent
                assert transfer.state in (weft.State.done, weft.State.cancelled)
            yours.close()

    async def wait(transfer: weft.Transfer) -> None:
        await transfer

    asyncio.run(work())
