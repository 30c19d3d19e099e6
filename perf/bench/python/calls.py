#!/usr/bin/env python3
"""What calls from Python cost beside the same from C++, in one run.

Usage: calls.py PROGRAM [PROVIDER [ROUNDS [REPEATS]]]

PROGRAM is weft-python-calls (ninja benches). The two take turns; the least median of each counts.

A list of a million takes 8 or 24 MB, and each process's malloc decides by its history whether such
memory goes back to the system: that is none, or 2,000 to 6,000 page faults for a prepare(). With
MALLOC_MMAP_THRESHOLD_=1000000000 and MALLOC_TRIM_THRESHOLD_=2000000000 both keep it.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy

import weft

PAGE, PAGES, LISTED = 4096, 4096, 1_000_000


def median(rounds: int, work: Callable[[], object]) -> float:
    """Nanoseconds."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        work()
        times.append(time.perf_counter_ns() - begin)
    return statistics.median(times)


async def awaited(rounds: int, begin: Callable[[], weft.Transfer]) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter_ns()
        await begin()
        times.append(time.perf_counter_ns() - started)
    return statistics.median(times)


def measure(provider: str, rounds: int) -> dict[str, float]:
    with weft.Engine(providers=[provider]) as b, weft.Engine(providers=[provider]) as a:
        a.connect(b.address)
        mine = a.add(weft.Memory.shared(PAGE * PAGES))
        yours = b.add(weft.Memory.shared(PAGE * PAGES))
        remote = a.import_grant(yours.grant(weft.Rights.write).blob)
        one = [(0, 0, PAGE)]
        prepared = a.prepare(mine, remote, weft.Direction.write, one)
        latency = weft.Priority.latency

        def submit() -> None:
            a.submit(prepared, priority=latency).wait()

        def write() -> None:
            a.write(mine, remote, one, priority=latency).wait()

        median(rounds // 10, submit)
        i = numpy.arange(LISTED)
        pieces = numpy.stack([i * 7 % PAGES * PAGE, i * 5 % PAGES * PAGE, i * 0 + 1], axis=1)
        from_, to = (i * 7 % PAGES).astype(numpy.uint32), (i * 5 % PAGES).astype(numpy.uint32)

        def prepare(pieces: object) -> weft.Prepared:
            return a.prepare(mine, remote, weft.Direction.write, pieces)

        return {
            "submit 4 KiB": median(rounds, submit),
            "write 4 KiB": median(rounds, write),
            "prepare 1e6 pieces": median(9, lambda: prepare(pieces)),
            "prepare 1e6 pages": median(9, lambda: prepare(weft.Paged(PAGE, from_, to))),
            "Engine.name": median(rounds, lambda: a.name),
            "await 4 KiB": asyncio.run(
                awaited(rounds, lambda: a.submit(prepared, priority=latency))
            ),
        }


def main() -> None:
    program, provider, rounds, repeats = [*sys.argv[1:], *["shm", "20000", "3"][len(sys.argv) - 2 :]]
    python: dict[str, float] = {}
    cpp: dict[str, float] = {}
    for _ in range(int(repeats)):
        ran = subprocess.run(
            [program, provider, rounds], capture_output=True, text=True, check=True
        )
        for best, now in ((cpp, json.loads(ran.stdout)), (python, measure(provider, int(rounds)))):
            for name, value in now.items():
                best[name] = min(value, best.get(name, value))
    print(f"{provider:20}{'C++':>14}{'Python':>14}{'more':>12}   (us)")
    for name, value in python.items():
        other = cpp.get(name)
        beside = f"{other / 1e3:14.2f}" if other else f"{'-':>14}"
        more = f"{(value - other) / 1e3:12.2f}   x {value / other:.2f}" if other else ""
        print(f"{name:20}{beside}{value / 1e3:14.2f}{more}")


if __name__ == "__main__":
    main()
