"""One side of requests by NIXL: lists of blocks, notifications, and polls for both.

Usage: nixl_requests_side.py initiator|target BYTES host BACKEND [NAME=VALUE...]
"""

import functools
import os
import random
import sys
import time

import numpy  # NIXL needs it too.

from nixl_side import NixlSide, parameters_of
from side import keep_answers_apart

READY = b"ready"


def shuffled(count, seed):
    """Next to no block goes on where the one before it ended, to be merged with it."""
    return numpy.array(random.Random(seed).sample(range(count), count), dtype=numpy.int32)


def check_time(until, what):
    if time.monotonic() > until:
        raise TimeoutError(f"{what} in time")


class RequestsSide(NixlSide):
    def commands(self):
        return {**super().commands(), "post_list": self.post_list, "check_list": self.check_list,
                "send": self.send, "receive": self.receive, "poll": self.poll}

    @functools.cache
    def _blocks(self, size, count):
        """Both sides' blocks, as they are prepared once for all requests."""
        return [self.agent.prep_xfer_dlist(
                    whose, [(start + block * size, size, 0) for block in range(count)],
                    mem_type=self.memory_type)
                for whose, start in (("NIXL_INIT_AGENT", self.memory.address),
                                     (self.peer, self.peer_address))]

    def _request(self, size, count, seed):
        """A write of all blocks to their places, and the seconds that it took to be made."""
        mine, theirs = self._blocks(size, count)
        order = shuffled(count, seed)
        begun = time.monotonic()
        handle = self.agent.make_prepped_xfer("WRITE", mine, order, theirs, order)
        return handle, time.monotonic() - begun

    def _finish(self, handle, until):
        while not self.done(handle):
            os.sched_yield()
            check_time(until, "a write is not done")

    def post_list(self, size, count, posts, seed, limit):
        """Seconds: until the request is made, until each post returns, until each is done."""
        until = time.monotonic() + limit
        handle, made = self._request(size, count, seed)
        posted, done = [], []
        for _ in range(posts):
            begun = time.monotonic()
            self.post(handle)
            posted.append(time.monotonic() - begun)
            self._finish(handle, until)
            done.append(time.monotonic() - begun)
        self.agent.release_xfer_handle(handle)
        return {"made": made, "posted": posted, "done": done}

    def check_list(self, size, count, seed, limit):
        """The seconds of each check that found the list under way."""
        until = time.monotonic() + limit
        handle, _ = self._request(size, count, seed)
        self.post(handle)
        checks, done = [], False
        while not done:
            begun = time.monotonic()
            done = self.done(handle)
            checks.append(time.monotonic() - begun)
            check_time(until, "a list is not done")
        self.agent.release_xfer_handle(handle)
        return checks[:-1]

    def _notified(self, message, until):
        """When it came, on the clock of this machine's processes."""
        while not (found := self.agent.get_new_notifs()):
            os.sched_yield()
            check_time(until, f"no notification {message} comes")
        seen = time.monotonic_ns()
        if list(found.values()) != [[message]]:
            raise RuntimeError(f"{found} came instead of {message}")
        return seen

    def send(self, size, count, limit):
        """When each write was posted: the other side waits for its notification already."""
        until = time.monotonic() + limit
        self.prepare(size, 1)
        posted = []
        for number in range(count):
            self._notified(READY, until)
            posted.append(time.monotonic_ns())
            self.post(self.handles[0], str(number).encode())
            self._finish(self.handles[0], until)
        return posted

    def receive(self, count, limit):
        """When each write's notification was seen."""
        until = time.monotonic() + limit
        seen = []
        for number in range(count):
            self.agent.send_notif(self.peer, READY)
            seen.append(self._notified(str(number).encode(), until))
        return seen

    def poll(self, calls):
        """Seconds for each poll that finds no notification."""
        begun = time.monotonic()
        for _ in range(calls):
            if self.agent.get_new_notifs():
                raise RuntimeError("there is a notification that nobody sent")
        return (time.monotonic() - begun) / calls


def main():
    answers = keep_answers_apart()
    role, length, memory, backend, *words = sys.argv[1:]
    RequestsSide(role, int(length), memory, backend, parameters_of(words),
                 progress_thread=role == "target").serve(answers)


main()
