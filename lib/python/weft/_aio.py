"""What can be awaited, in any asyncio loop that has add_reader()."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Protocol, TypeVar

from ._errors import Error, TimedOut
from ._weft import Engine, Event, Peer, Transfer, _Waker

_Made = TypeVar("_Made", covariant=True)


class _Ends(Protocol):
    def _watch(self, waker: _Waker, number: int) -> bool: ...


class _Arrives(_Ends, Protocol[_Made]):
    def wait(self, timeout: float | None = None) -> _Made: ...


class _Wakeups:
    """Of one loop: a descriptor by which engines' threads tell it what has ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.waker = _Waker()
        self.waiting: dict[int, asyncio.Future[None]] = {}
        self.numbers = itertools.count()
        loop.add_reader(self.waker.fileno(), self.wake)

    def wake(self) -> None:
        for number in self.waker.take():
            future = self.waiting.get(number)
            if future is not None and not future.done():
                future.set_result(None)


_of_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Wakeups] = (
    weakref.WeakKeyDictionary()
)


async def _ended(thing: _Ends) -> None:
    loop = asyncio.get_running_loop()
    wakeups = _of_loop.get(loop)
    if wakeups is None:
        wakeups = _of_loop[loop] = _Wakeups(loop)
    number = next(wakeups.numbers)
    future = wakeups.waiting[number] = loop.create_future()
    try:
        if thing._watch(wakeups.waker, number):
            await future
    finally:
        del wakeups.waiting[number]


async def _quiescent(transfer: Transfer) -> None:
    """Also if the task is cancelled again meanwhile: the memory must not be touched any more."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def finish() -> None:
        if not done.done():
            done.set_result(None)

    def wait() -> None:
        try:
            transfer.wait_quiescent(timeout=float("inf"))
        except Error:
            pass  # Its end, which is not what is waited for.
        try:
            loop.call_soon_threadsafe(finish)
        except RuntimeError:
            pass  # The loop was closed.

    threading.Thread(target=wait, name="weft-quiescent", daemon=True).start()
    while not done.done():
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError:
            pass


async def transfer(transfer: Transfer) -> None:
    """await transfer."""
    try:
        await _ended(transfer)
    except asyncio.CancelledError:
        transfer.cancel()
        if not transfer.quiescent:
            await _quiescent(transfer)
        raise
    transfer.wait()  # It has ended, but for the last steps of the thread that told so.


async def arrival(arrival: _Arrives[_Made]) -> _Made:
    """await expectation, await receive."""
    await _ended(arrival)
    return arrival.wait()  # It is there, but for the last steps of the thread that told so.


@contextlib.contextmanager
def _readable(descriptor: int) -> Iterator[asyncio.Future[None]]:
    """A future that is done once it is readable."""
    loop = asyncio.get_running_loop()
    # Several tasks may wait for the same: add_reader() takes a descriptor once.
    own = os.dup(descriptor)
    future = loop.create_future()
    loop.add_reader(own, lambda: future.done() or future.set_result(None))
    try:
        yield future
    finally:
        loop.remove_reader(own)
        future.cancel()
        os.close(own)


async def accept(engine: Engine, timeout: float) -> Peer:
    """Engine.accept_async()."""
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout
    while True:
        left = end - loop.time()
        with _readable(engine._accept_fileno()) as arrived:
            await asyncio.wait({arrived}, timeout=max(left, 0))
        try:
            return engine.accept(timeout=0)
        except TimedOut:
            if left <= 0:
                raise
            # Else another one was faster.


async def events(engine: Engine) -> AsyncIterator[Event]:
    """Engine.events(). Several iterators share the events of an engine."""
    closed = asyncio.ensure_future(_ended(engine))
    try:
        while True:
            for event in engine.poll():
                yield event
            if closed.done():
                return
            with _readable(engine.fileno()) as queued:
                await asyncio.wait({queued, closed}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        closed.cancel()
