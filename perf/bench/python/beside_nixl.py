#!/usr/bin/env python3
"""Writes by Weft's Python package beside writes by NIXL's, between two processes of this machine.

Usage: beside_nixl.py [--fabrics tcp,shm] [--rounds N] [--json FILE]

Runs in a Python that has both wheels, and numpy. In each round both take their turn, each with two
new processes: one has the memory, the other writes into it. NIXL runs with UCX and its progress
threads, Weft with its defaults; memory is numpy's. Prints microseconds: the least, and the median
of the rounds' medians.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import numpy

PAGE, PAGES = 4096, 16384
SMALL, LISTS, BLOCKS = 2000, 15, 60  # of a round
SIZES = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20]
UCX = {"tcp": {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"}, "shm": {"UCX_TLS": "posix,sysv,cma,self"}}


class Weft:
    def __init__(self, fabric: str, memory: Any) -> None:
        import weft

        self.weft = weft
        self.engine = weft.Engine(providers=[fabric], listen="127.0.0.1:0")
        self.segment = self.engine.add(memory)

    def introduce(self) -> Any:
        return self.engine.address, self.segment.grant(self.weft.Rights.write).blob

    def meet(self, introduction: Any, here: Any, there: Any) -> None:
        address, blob = introduction
        self.engine.connect(address)
        self.remote = self.engine.import_grant(blob)
        self.one = self.prepared([(0, 0, PAGE)])
        self.blocks = {size: self.prepared([(0, 0, size)]) for size in SIZES}
        self.pieces = numpy.stack([here, there, numpy.full(PAGES, PAGE)], axis=1)
        self.all = self.prepared(self.pieces)
        self.picks = numpy.arange(PAGES, dtype=numpy.uint32)

    def prepared(self, pieces: Any) -> Any:
        return self.engine.prepare(self.segment, self.remote, self.weft.Direction.write, pieces)

    def small(self) -> None:
        self.engine.submit(self.one, priority=self.weft.Priority.latency).wait()

    def block(self, size: int) -> None:
        self.engine.submit(self.blocks[size]).wait()

    @contextmanager
    def listed(self) -> Iterator[Callable[[], None]]:
        yield self.engine.write(self.segment, self.remote, self.pieces).wait

    @contextmanager
    def picked(self) -> Iterator[Callable[[], None]]:
        yield self.engine.submit(self.all, self.picks).wait


class Nixl:
    def __init__(self, fabric: str, memory: Any) -> None:
        os.environ.update(UCX[fabric])
        from nixl import nixl_agent, nixl_agent_config

        self.start = memory.ctypes.data
        self.agent = nixl_agent(str(os.getpid()), nixl_agent_config(backends=[]))
        # UCX takes its shared memory only so: it can't tell that a peer has gone.
        self.agent.create_backend("UCX", {"ucx_error_handling_mode": "none"})
        self.agent.register_memory([(self.start, memory.nbytes, 0, "")], mem_type="DRAM")

    def introduce(self) -> Any:
        return self.agent.get_agent_metadata(), self.start

    def meet(self, introduction: Any, here: Any, there: Any) -> None:
        metadata, start = introduction
        self.peer = self.agent.add_remote_agent(metadata)
        self.blocks = {
            size: self.agent.initialize_xfer(
                "WRITE",
                *(self.descriptors([(begin, size, 0)]) for begin in (self.start, start)),
                self.peer,
            )
            for size in [PAGE, *SIZES]
        }
        lengths, device = numpy.full(PAGES, PAGE), numpy.zeros(PAGES, int)
        self.lists = [
            numpy.stack([begin + offsets, lengths, device], axis=1).astype(numpy.uint64)
            for begin, offsets in ((self.start, here), (start, there))
        ]
        self.sides = [
            self.agent.prep_xfer_dlist(name, self.descriptors(each))
            for name, each in zip(("NIXL_INIT_AGENT", self.peer), self.lists, strict=True)
        ]
        self.picks = numpy.arange(PAGES, dtype=numpy.int32)

    def descriptors(self, pieces: Any) -> Any:
        return self.agent.get_xfer_descs(pieces, "DRAM")

    def post(self, handle: Any) -> Callable[[], None]:
        state = self.agent.transfer(handle)

        def wait() -> None:
            nonlocal state
            while state == "PROC":
                state = self.agent.check_xfer_state(handle)
            assert state == "DONE", state

        return wait

    def small(self) -> None:
        self.block(PAGE)

    def block(self, size: int) -> None:
        self.post(self.blocks[size])()

    @contextmanager
    def listed(self) -> Iterator[Callable[[], None]]:
        handle = self.agent.initialize_xfer(
            "WRITE", *map(self.descriptors, self.lists), self.peer
        )
        yield self.post(handle)
        self.agent.release_xfer_handle(handle)

    @contextmanager
    def picked(self) -> Iterator[Callable[[], None]]:
        mine, theirs = self.sides
        handle = self.agent.make_prepped_xfer("WRITE", mine, self.picks, theirs, self.picks)
        yield self.post(handle)
        self.agent.release_xfer_handle(handle)


SIDES: dict[str, type[Weft] | type[Nixl]] = {"weft": Weft, "nixl": Nixl}


def target(name: str, fabric: str, other: Connection) -> None:
    memory = numpy.zeros(PAGE * PAGES, numpy.uint8)
    side = SIDES[name](fabric, memory)
    other.send(side.introduce())
    source, here, there = other.recv()  # Once all is written.
    expected = numpy.zeros_like(memory).reshape(PAGES, PAGE)
    expected[there // PAGE] = source.reshape(PAGES, PAGE)[here // PAGE]
    other.send(bool(numpy.array_equal(memory, expected.ravel())))
    other.recv()


def initiator(name: str, fabric: str, other: Connection, told: Connection) -> None:
    numbers = numpy.random.default_rng(1)
    memory = numbers.integers(0, 256, PAGE * PAGES, numpy.uint8)
    here, there = (numbers.permutation(PAGES).astype(numpy.int64) * PAGE for _ in range(2))
    side = SIDES[name](fabric, memory)
    side.meet(other.recv(), here, there)
    times: dict[str, list[float]] = {}

    def note(figure: str, begin: int) -> None:
        times.setdefault(figure, []).append((time.perf_counter_ns() - begin) / 1e3)

    for _ in range(SMALL):
        begin = time.perf_counter_ns()
        side.small()
        note("4 KiB, prepared", begin)
    for size in SIZES:
        for _ in range(BLOCKS):
            begin = time.perf_counter_ns()
            side.block(size)
            note(f"{size >> 10} KiB, prepared", begin)
    for text, transfers in (("from arrays", side.listed), ("prepared, by number", side.picked)):
        for _ in range(LISTS):
            begin = time.perf_counter_ns()
            with transfers() as wait:
                note(f"{PAGES} pieces, {text}: posted", begin)
                wait()
                note(f"{PAGES} pieces, {text}: done", begin)
    other.send((memory, here, there))
    assert other.recv(), f"{name}: the bytes differ"
    other.send(None)
    told.send(times)
    os._exit(0)  # Nothing is measured of the end.


def turn(name: str, fabric: str) -> dict[str, list[float]]:
    spawn = multiprocessing.get_context("spawn")
    (one, other), (ours, theirs) = spawn.Pipe(), spawn.Pipe(duplex=False)
    children = [
        spawn.Process(target=target, args=(name, fabric, one), daemon=True),
        spawn.Process(target=initiator, args=(name, fabric, other, theirs), daemon=True),
    ]
    for child in children:
        child.start()
    theirs.close()
    if not ours.poll(120):
        sys.exit(f"{name} over {fabric} does not end")
    times: dict[str, list[float]] = ours.recv()
    for child in children:
        child.join(10)
        child.kill()
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--fabrics", default="tcp,shm", help="(%(default)s)")
    parser.add_argument("--rounds", type=int, default=10, help="(%(default)s)")
    parser.add_argument("--json", help="write each round's least and median there")
    arguments = parser.parse_args()
    found: dict[str, dict[str, dict[str, list[tuple[float, float]]]]] = {}
    for fabric in arguments.fabrics.split(","):
        figures = found.setdefault(fabric, {})
        for _ in range(arguments.rounds):
            for name in random.sample(list(SIDES), len(SIDES)):
                for figure, times in turn(name, fabric).items():
                    rounds = figures.setdefault(figure, {}).setdefault(name, [])
                    rounds.append((min(times), statistics.median(times)))
        print(f"{fabric:44}{'Weft':>10}{'median':>10}{'NIXL':>10}{'median':>10}   ratios")
        for figure, by_name in figures.items():
            least = {name: min(low for low, _ in each) for name, each in by_name.items()}
            middle = {
                name: statistics.median(median for _, median in each)
                for name, each in by_name.items()
            }
            texts = [f"{each[name]:10,.1f}" for name in SIDES for each in (least, middle)]
            ratios = [f"{each['weft'] / each['nixl']:.3f}" for each in (least, middle)]
            print(f"{figure:44}{''.join(texts)}   {' '.join(ratios)}", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
