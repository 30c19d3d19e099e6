"""What can be awaited, in any asyncio loop that has add_reader()."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Protocol, TypeVar

from ._errors import Error, TimedOut
from ._weft import Engine, Event, Peer, Transfer, _Waker

_Made = TypeVar("_Made", covariant=True)


class _Ends(Protocol):
    def _watch(self, waker: _Waker, number: int) -> bool: ...

    def _unwatch(self, waker: _Waker, number: int) -> None: ...


class _Arrives(_Ends, Protocol[_Made]):
    def wait(self, timeout: float | None = None) -> _Made: ...


class _Wakeups:
    """Of one loop: a descriptor by which engines' threads tell it what has ended."""

    def __init__(self) -> None:
        self.waker = _Waker()
        self.waiting: dict[int, asyncio.Future[None]] = {}
        self.numbers = itertools.count()

    def wake(self) -> None:
        for number in self.waker.take():
            future = self.waiting.get(number)
            if future is not None and not future.done():
                future.set_result(None)


# A loop owns its wakeups, as one of its readers: they go when it is closed.
_of_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.ref[_Wakeups]] = (
    weakref.WeakKeyDictionary()
)


def _wakeups_of(loop: asyncio.AbstractEventLoop) -> _Wakeups:
    known = _of_loop.get(loop)
    wakeups = known() if known is not None else None
    if wakeups is None:
        wakeups = _Wakeups()
        loop.add_reader(wakeups.waker.fileno(), wakeups.wake)
        _of_loop[loop] = weakref.ref(wakeups)
    return wakeups


@contextlib.contextmanager
def _end_of(thing: _Ends) -> Iterator[asyncio.Future[None]]:
    """A future that is done once it has ended."""
    loop = asyncio.get_running_loop()
    wakeups = _wakeups_of(loop)
    number = next(wakeups.numbers)
    future = wakeups.waiting[number] = loop.create_future()
    try:
        if not thing._watch(wakeups.waker, number):
            future.set_result(None)
        yield future
    finally:
        thing._unwatch(wakeups.waker, number)
        del wakeups.waiting[number]


async def transfer(transfer: Transfer) -> None:
    """await transfer."""
    try:
        with _end_of(transfer) as ended:
            await ended
        transfer.wait()  # It has ended, but for the last steps of the thread that told so.
    except (asyncio.CancelledError, Error) as error:
        transfer.cancel()
        if not transfer.quiescent:
            error.add_note(
                "weft: the transfer's memory is still in use. quiescent_async() waits until it is "
                "not; Segment.close() raises Quarantined until then."
            )
        raise


async def arrival(arrival: _Arrives[_Made]) -> _Made:
    """await expectation, await receive."""
    with _end_of(arrival) as ended:
        await ended
    return arrival.wait()  # It is there, but for the last steps of the thread that told so.


@contextlib.contextmanager
def _readable(descriptor: int) -> Iterator[asyncio.Future[None]]:
    """A future that is done once it is readable."""
    loop = asyncio.get_running_loop()
    # Several tasks may wait for the same: add_reader() takes a descriptor once.
    own = os.dup(descriptor)
    future = loop.create_future()
    try:
        loop.add_reader(own, lambda: future.done() or future.set_result(None))
        yield future
    finally:
        if not loop.is_closed():
            loop.remove_reader(own)
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
    with _end_of(engine) as closed:
        while True:
            while event := engine.poll(1):  # What is not wanted any more stays in the queue.
                yield event[0]
            if closed.done():
                return
            with _readable(engine.fileno()) as queued:
                await asyncio.wait({queued, closed}, return_when=asyncio.FIRST_COMPLETED)
