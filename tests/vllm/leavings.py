"""The processes of a group, and what they leave in shared memory.

Python's multiprocessing has a process beside each (resource_tracker) that removes what is left
there when the others are gone. So it gets the time to.
"""

import contextlib
import os
import pathlib
import signal
import time

SHARED = pathlib.Path("/dev/shm")
TRACKER = b"multiprocessing.resource_tracker"
EACH_SECONDS = 0.05


def processes_of(group):
    """Their folders in /proc, without those that have ended and wait to be told of."""
    for place in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if os.getpgid(int(place.name)) == group and (place / "cmdline").read_bytes():
                yield place


def kill_but_trackers(group):
    for place in processes_of(group):
        with contextlib.suppress(OSError):
            if TRACKER not in (place / "cmdline").read_bytes():
                os.kill(int(place.name), signal.SIGKILL)


def await_gone(group, seconds):
    """Whoever is still there after that is the caller's to kill."""
    until = time.monotonic() + seconds
    while any(processes_of(group)) and time.monotonic() < until:
        time.sleep(EACH_SECONDS)


def shared_memory():
    return {each.name for each in SHARED.iterdir()}
