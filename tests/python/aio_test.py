"""asyncio: awaited transfers, cancellation, events."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy
import pytest
from support import PROVIDERS, Pair, finish, line_of, pattern, start

import weft

SIZE = 4 << 20
Made = TypeVar("Made")


def test_awaited_transfers(engines: Pair) -> None:
    source, target = pattern(SIZE, 1), numpy.zeros(SIZE, numpy.uint8)

    async def work() -> None:
        with engines.a.add(source) as mine:
            yours, remote = engines.granted(target, weft.Rights.write)
            part = SIZE // 64
            expected = engines.to_a.expect(3, 64)
            message = engines.to_a.receive(4)
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
            engines.to_b.send(4, b"end")
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
            message = engines.to_a.receive(number)
            signal = engines.to_a.expect(number)
            engines.to_b.send(number, b"x")
            engines.to_b.signal(number)
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
                await engines.to_a.expect(3, timeout=0.2)
            yours.close()

    asyncio.run(work())


def test_a_cancelled_wait_leaves_what_it_waited_for(engines: Pair) -> None:
    async def work() -> None:
        expected = engines.to_a.expect(3)
        asked = engines.to_a.receive(4)
        for each in (expected, asked):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(each, 0.05)
        engines.to_b.signal(3)
        engines.to_b.send(4, b"late")
        assert (await expected).count == 1
        assert (await asked).bytes == b"late"

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


def test_a_frozen_peer_holds_no_task() -> None:
    """The peer is stopped, with operations under way, and goes on later."""
    other = start("serve.py", "tcp", str(SIZE))
    source = pattern(SIZE, 4)

    async def work(engine: weft.Engine) -> None:
        peer = engine.connect(line_of(other).split()[0])
        remote = peer.lookup("memory")
        mine = engine.add(source)
        await engine.warm(mine, remote)
        other.send_signal(signal.SIGSTOP)
        transfers = [engine.write(mine, remote, [(0, 0, SIZE)]) for _ in range(16)]
        try:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.gather(*map(waited, transfers)), 0.3)
            assert peer.up and not all(each.quiescent for each in transfers)
        finally:
            other.send_signal(signal.SIGCONT)
        for each in transfers:
            await each.quiescent_async(30)
        mine.close()

    with weft.Engine(providers=["tcp"], listen="", suspect_after=40, death_after=80) as engine:
        asyncio.run(work(engine))
    finish(other)


async def waited(thing: Awaitable[Made]) -> Made:
    return await thing


@dataclass
class Stuck:
    """Transfers of which nothing arrives, and that nothing ends before their timeout."""

    faults: weft.testing.Faults
    both: weft.testing.Pair
    source: weft.Segment
    remote: weft.Remote

    def write(self, timeout: float = 80) -> weft.Transfer:
        """It is under way: what is not posted yet ends with a cancel."""
        before = self.faults.counts.dropped
        transfer = self.both.first.write(self.source, self.remote, [(0, 0, 4096)], timeout=timeout)
        while self.faults.counts.dropped == before and transfer.state is weft.State.active:
            time.sleep(0.001)
        return transfer


@pytest.fixture(params=PROVIDERS)
def stuck(request: pytest.FixtureRequest) -> Iterator[Stuck]:
    faults = weft.testing.Faults()
    with weft.testing.pair(faults, providers=[request.param]) as both:
        sink = both.second.add(bytearray(4096))
        remote = both.first.import_grant(sink.grant(weft.Rights.write).blob)
        faults.set(drop=1)
        yield Stuck(faults, both, both.first.add(pattern(4096, 7)), remote)
        faults.clear()


async def by_wait_for(transfer: weft.Transfer) -> None:
    await asyncio.wait_for(transfer, 0.1)


async def by_timeout(transfer: weft.Transfer) -> None:
    async with asyncio.timeout(0.1):
        await transfer


async def by_cancel(transfer: weft.Transfer) -> None:
    task = asyncio.create_task(waited(transfer))
    await asyncio.sleep(0)
    task.cancel()
    await task


async def by_gather(transfer: weft.Transfer) -> None:
    async with asyncio.timeout(0.1):
        await asyncio.gather(transfer, asyncio.sleep(0))


async def by_a_group(transfer: weft.Transfer) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(waited(transfer))
        await asyncio.sleep(0)
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("way", "raised"),
    [
        (by_wait_for, TimeoutError),
        (by_timeout, TimeoutError),
        (by_cancel, asyncio.CancelledError),
        (by_gather, TimeoutError),
        (by_a_group, ExceptionGroup),
    ],
)
def test_a_task_goes_on_before_its_transfer_ends(
    stuck: Stuck, way: Callable[[weft.Transfer], Awaitable[None]], raised: type[BaseException]
) -> None:
    async def work() -> None:
        transfer = stuck.write()
        with pytest.raises(raised):
            await way(transfer)
        assert transfer.state is weft.State.active and not transfer.quiescent
        with pytest.raises(weft.TimedOut, match="in flight"):
            await transfer.quiescent_async(0.05)
        with pytest.raises(weft.Quarantined):
            stuck.source.close(0.05)
        stuck.faults.clear()
        await transfer.quiescent_async(60)
        assert transfer.quiescent and transfer.state is not weft.State.active
        stuck.source.close()

    asyncio.run(work())


def test_an_error_says_that_the_memory_is_held(stuck: Stuck) -> None:
    async def work() -> None:
        with pytest.raises(weft.TimedOut) as overdue:
            await stuck.write(timeout=1)
        with pytest.raises(TimeoutError) as given_up:
            await asyncio.wait_for(stuck.write(), 0.1)
        for error in (overdue.value, given_up.value.__cause__):
            assert error is not None and "still in use" in "".join(error.__notes__)

    asyncio.run(work())


def test_a_cancelled_transfer_keeps_its_own_timeout(stuck: Stuck) -> None:
    async def work() -> None:
        transfer = stuck.write(timeout=2)
        with pytest.raises(asyncio.CancelledError):
            await by_cancel(transfer)
        with pytest.raises(weft.TimedOut, match="deadline"):
            await transfer

    asyncio.run(work())


def test_the_wait_until_quiescent_can_be_given_up(stuck: Stuck) -> None:
    async def work() -> None:
        transfer = stuck.write()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(transfer.quiescent_async(80), 0.1)
        assert transfer.state is weft.State.active  # It cancels nothing.
        stuck.faults.clear()
        await transfer.quiescent_async(60)

    asyncio.run(work())


@pytest.mark.parametrize("way", ["expect", "receive", "accept", "events", "publish", "wait"])
def test_other_awaits_end_with_their_task(way: str) -> None:
    async def one_of(both: weft.testing.Pair) -> object:
        if way == "expect":
            return await both.to_second.expect(1)
        if way == "receive":
            return await both.to_second.receive(1)
        if way == "accept":
            return await both.first.accept_async(80)
        if way == "events":
            return await anext(aiter(both.first.events()))
        holds, segments = weft.weights.rank_of(both.first, {"w": numpy.zeros(8)}, name="r")
        if way == "publish":
            publisher = weft.weights.Publisher(both.first, holds, segments)
            return await publisher.publish_async(1, timeout=10)
        subscriber = weft.weights.Subscriber(
            both.first, holds, [segments], leader=both.second.address
        )
        await subscriber.wait_async(1, timeout=80)
        return None

    async def work(both: weft.testing.Pair) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(one_of(both), 0.1)

    with weft.testing.pair(providers=["shm"]) as both:
        asyncio.run(work(both))


def test_calls_in_threads_end_with_their_task(engines: Pair) -> None:
    """The thread goes on until the call's own timeout."""
    ended = threading.Event()

    def look_up() -> None:
        with contextlib.suppress(weft.TimedOut):
            engines.to_b.lookup("nothing", 3)
        ended.set()

    async def work() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(look_up), 0.05)
        assert not ended.is_set()

    asyncio.run(work())  # Waits for the thread.
    assert ended.is_set()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_blocks_a_loop_is_bounded(provider: str) -> None:
    faults = weft.testing.Faults()

    async def work() -> weft.Transfer:
        with weft.testing.pair(faults, providers=[provider], default_timeout=0.2) as both:
            sink = both.second.add(bytearray(4096))
            remote = both.first.import_grant(sink.grant(weft.Rights.write).blob, 60)
            forgotten = both.first.add(pattern(4096, 7))
            faults.set(drop=1)
            both.first.write(forgotten, remote, [(0, 0, 4096)], timeout=80)
            del forgotten
            with pytest.raises(weft.Quarantined), both.first.add(pattern(4096, 7)) as segment:
                transfer = both.first.write(segment, remote, [(0, 0, 4096)], timeout=80)
            assert transfer.state is weft.State.active
        return transfer

    transfer = asyncio.run(work())
    assert transfer.state is not weft.State.active
    faults.clear()


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def leaves_no_descriptor(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """In a loop of its own, each time."""

    def one() -> None:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(work())
        loop.close()

    one()
    before = descriptors()
    for _ in range(40):
        one()
    assert descriptors() < before + 20  # Engines have some that come and go.


def test_loops_leave_nothing_behind(engines: Pair, caplog: pytest.LogCaptureFixture) -> None:
    """Also if what they have waited for goes on."""
    expected = engines.to_a.expect(3)

    async def work() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(expected, 0.01)
        events = engines.b.events()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(events), 0.01)
        await events.aclose()  # type: ignore[attr-defined]

    leaves_no_descriptor(work)
    assert not caplog.records


def test_a_loop_that_is_closed_too_early(engines: Pair) -> None:
    expected = engines.to_a.expect(3)

    async def work() -> None:
        waits = (waited(expected), engines.b.accept_async(80), anext(engines.b.events()))
        tasks = [asyncio.create_task(waited(each)) for each in waits]
        await asyncio.sleep(0)
        for each in tasks:  # Says nothing about a task that is pending.
            each._log_destroy_pending = False  # type: ignore[attr-defined]

    leaves_no_descriptor(work)


def test_events_that_an_iterator_has_not_given_stay(engines: Pair) -> None:
    async def work() -> None:
        with engines.a.add(pattern(4096, 3)) as mine:
            yours, remote = engines.granted(bytearray(4096), weft.Rights.write)
            for cookie in range(20):
                await engines.a.write(mine, remote, [(0, 0, 4096)], cookie=cookie)
            for cookie in range(20):
                events = engines.a.events()
                assert (await anext(aiter(events))).cookie == cookie
                await events.aclose()  # type: ignore[attr-defined]
            yours.close()

    asyncio.run(work())


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


def test_a_transfer_that_ended_before_the_cancel(engines: Pair) -> None:
    async def work() -> None:
        with engines.a.add(pattern(SIZE, 5)) as mine:
            yours, remote = engines.granted(bytearray(SIZE), weft.Rights.write)
            for _ in range(50):
                transfer = engines.a.write(mine, remote, [(0, 0, SIZE // 8)])
                task = asyncio.create_task(waited(transfer))
                await asyncio.sleep(0)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
                await transfer.quiescent_async()
                assert transfer.state in (weft.State.done, weft.State.cancelled)
            yours.close()

    asyncio.run(work())
