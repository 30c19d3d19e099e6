"""Decode's worker: reads a request's blocks from prefill, and proves that they are the request's."""

from __future__ import annotations

import contextlib
import queue
import random
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import weft

from ._caches import LAYOUT, Caches, Copy, Layout, copies_between, segment_name
from ._leases import DONE, LEASES, NUMBER, REPLIES, WANTED, reply_offset
from ._reference import Reference, Refused

__all__ = ["Load", "Loader", "Pages", "Result"]

# For each prefill, so that one that hangs holds no other up.
THREADS = 8
# Threads of all prefills that may have a number under way at a time.
NUMBERS = 512
QUIET_SECONDS = 10.0


@dataclass(frozen=True)
class Pages:
    """Block tables of one group of layers, of equal length."""

    local: array[int]
    remote: array[int]

    @staticmethod
    def of(pairs: Sequence[tuple[int, int]]) -> Pages:
        return Pages(array("I", [pair[0] for pair in pairs]), array("I", [pair[1] for pair in pairs]))


@dataclass(frozen=True)
class Load:
    request: str
    reference: Reference
    """Without its blocks, which `pages` has."""
    pages: list[Pages]


@dataclass
class Result:
    request: str
    error: Exception | None
    bytes: int
    seconds: float


@dataclass
class _Peer:
    """What is known of one prefill."""

    leases: weft.Remote
    replies: weft.Remote
    segments: list[weft.Remote]
    copies: list[Copy]


@dataclass
class _Running:
    cancelled: threading.Event = field(default_factory=threading.Event)
    transfers: list[weft.Transfer] = field(default_factory=list)
    future: Future[Result] | None = None


class Loader:
    """`rank`: which of prefill's workers has what this one needs. `version`: the step of the weights
    that this worker computes with. `verify`: the share of transfers that are compared by XXH3."""

    def __init__(self, engine: weft.Engine, caches: Caches, *, rank: int, timeout: float,
                 verify: float, version: Callable[[], int], fenced: bool = True) -> None:
        self._engine, self._caches, self._rank = engine, caches, rank
        self._timeout, self._verify, self._version = timeout, verify, version
        self._fenced = fenced
        self._closed = False
        self._peers: dict[tuple[str, str], _Peer] = {}
        self._meeting: dict[tuple[str, str], threading.Lock] = {}
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._pooling = threading.Lock()
        self._running: dict[str, _Running] = {}
        # Numbers that are read and written, one for each thread at a time.
        self._numbers = engine.add(weft.Memory.own(NUMBERS * NUMBER))
        self._values = memoryview(self._numbers).cast("Q")
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()
        for index in range(NUMBERS):
            self._free.put(index)

    def begin(self, load: Load) -> None:
        running = self._running[load.request] = _Running()
        running.future = self._submit(load.reference, self._run, load, running)

    def refuse(self, request: str, why: str) -> None:
        """A load that fails before it begins."""
        running = self._running[request] = _Running()
        running.future = Future()
        running.future.set_result(Result(request, Refused(why), 0, 0.0))

    def cancel(self, request: str) -> None:
        """It ends soon; results() has it then."""
        if running := self._running.get(request):
            running.cancelled.set()
            for transfer in list(running.transfers):
                transfer.cancel()

    def results(self) -> list[Result]:
        """Loads that have ended. Nothing writes to their blocks any more."""
        ended = [request for request, running in self._running.items()
                 if running.future is not None and running.future.done()]
        return [self._running.pop(request).future.result() for request in ended]  # type: ignore[union-attr]

    def say(self, references: Iterable[Reference], what: int) -> None:
        """Tells lenders that requests are still wanted, or that this worker is done with them."""
        for reference in references:
            self._submit(reference, self._say_quietly, reference, what)

    def close(self) -> None:
        for request in list(self._running):
            self.cancel(request)
        with self._pooling:
            pools, self._pools = list(self._pools.values()), {}
            self._closed = True
        for pool in pools:
            pool.shutdown(wait=True, cancel_futures=True)
        self._values.release()

    def _submit(self, reference: Reference, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        with self._pooling:
            if self._closed:
                refused: Future[Any] = Future()
                refused.cancel()
                return refused
            pool = self._pools.get(reference.lender)
            if pool is None:
                pool = self._pools[reference.lender] = ThreadPoolExecutor(
                    THREADS, thread_name_prefix="weft-load")
            return pool.submit(work, *arguments)

    def _run(self, load: Load, running: _Running) -> Result:
        begun = time.monotonic()
        size = 0
        error: Exception | None = None
        try:
            size = self._load(load, running, weft_deadline(self._timeout))
        except Exception as failed:  # Whatever it is, the request has an end.
            error = failed
        for transfer in running.transfers:
            _settle(transfer)
        if error is not None and not isinstance(error, Refused):
            self._forget(load.reference)
        self.say([load.reference], DONE)
        return Result(load.request, error, size, time.monotonic() - begun)

    def _load(self, load: Load, running: _Running, left: Callable[[], float]) -> int:
        reference = load.reference
        peer = self._meet(reference, left)
        size = 0
        for copy in peer.copies:
            pages = load.pages[copy.local.group]
            if not pages.local:
                continue
            if running.cancelled.is_set():
                raise Refused("the request was aborted")
            running.transfers.append(self._engine.read(
                self._caches.segments[copy.local.segment], peer.segments[copy.remote.segment],
                weft.Paged(copy.local.bytes, pages.local, pages.remote,
                           local_base=copy.local.base, remote_base=copy.remote.base,
                           local_stride=copy.local.stride, remote_stride=copy.remote.stride),
                timeout=left(), wait_for_room=left(),
                verify=self._verify > 0 and random.random() < self._verify))
            size += copy.local.bytes * len(pages.local)
        for transfer in running.transfers:
            transfer.wait()
        if self._fenced:
            self._prove(reference, peer, left)
        return size

    def _prove(self, reference: Reference, peer: _Peer, left: Callable[[], float]) -> None:
        """After the last byte: see _leases.py."""
        with self._number() as index:
            self._engine.read(self._numbers, peer.leases,
                              [(index * NUMBER, reference.slot * NUMBER, NUMBER)],
                              timeout=left(), priority=weft.Priority.latency).wait()
            if self._values[index] != reference.generation:
                raise Refused("prefill does not keep this request's blocks any more: the reference "
                              "was used before, came too late, or was given up")
        if reference.weights != self._version():
            raise Refused(f"prefill computed it with the weights of step {reference.weights}, and "
                          f"this worker has those of step {self._version()}")

    def _say(self, reference: Reference, peer: _Peer, what: int,
             left: Callable[[], float]) -> None:
        with self._number() as index:
            self._values[index] = reference.generation if what == DONE else time.monotonic_ns()
            at = reply_offset(reference.slot, self._rank, len(reference.workers), what)
            self._engine.write(self._numbers, peer.replies, [(index * NUMBER, at, NUMBER)],
                               timeout=left(), priority=weft.Priority.latency).wait()

    def _say_quietly(self, reference: Reference, what: int) -> None:
        """Whoever can't be reached lets go by itself when the lease is over."""
        left = weft_deadline(self._timeout)
        try:
            self._say(reference, self._meet(reference, left), what, left)
        except Refused:
            return
        except Exception:
            self._forget(reference)

    def _forget(self, reference: Reference) -> None:
        """Prefill is met again next time: another process may answer at its address."""
        if self._rank < len(reference.workers):
            self._peers.pop(self._key(reference), None)
        with self._pooling:
            if pool := self._pools.pop(reference.lender, None):
                pool.shutdown(wait=False)  # What it has begun, or has to begin, it still does.

    def _key(self, reference: Reference) -> tuple[str, str]:
        return reference.lender, reference.workers[self._rank]

    def _meet(self, reference: Reference, left: Callable[[], float]) -> _Peer:
        if self._rank >= len(reference.workers):
            raise Refused(f"prefill has {len(reference.workers)} workers, and this is number "
                          f"{self._rank}: both sides need the same tensor and pipeline sizes")
        key = self._key(reference)
        if peer := self._peers.get(key):
            return peer
        with self._meeting.setdefault(key, threading.Lock()):
            if peer := self._peers.get(key):
                return peer
            lender = self._engine.connect(key[0], left())
            worker = self._engine.connect(key[1], left())
            layout = self._read_layout(worker.lookup(LAYOUT, left()), left)
            copies = copies_between(self._caches.layout, layout)
            count = max((copy.remote.segment for copy in copies), default=-1) + 1
            peer = _Peer(lender.lookup(LEASES, left()), lender.lookup(REPLIES, left()),
                         [worker.lookup(segment_name(index), left()) for index in range(count)],
                         copies)
            self._peers[key] = peer
            return peer

    def _read_layout(self, remote: weft.Remote, left: Callable[[], float]) -> Layout:
        with self._engine.add(bytearray(remote.segment_size)) as room:
            self._engine.read(room, remote, [(0, 0, room.size)], timeout=left()).wait()
            return Layout.decoded(bytes(memoryview(room.owner)))

    @contextlib.contextmanager
    def _number(self):  # type: ignore[no-untyped-def]
        index = self._free.get()
        try:
            yield index
        finally:
            self._free.put(index)


def weft_deadline(seconds: float) -> Callable[[], float]:
    """What is left of so many seconds."""
    until = time.monotonic() + seconds
    return lambda: max(0.0, until - time.monotonic())


def _settle(transfer: weft.Transfer) -> None:
    """Returns when nothing of it can write here any more, and not before."""
    transfer.cancel()
    while transfer.state is weft.State.active or not transfer.quiescent:
        with contextlib.suppress(weft.Error):
            transfer.wait_quiescent(QUIET_SECONDS)
