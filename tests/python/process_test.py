"""Processes and threads: handovers, Ctrl-C, fork, spawn, and ends with everything left open."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy
import pytest
from support import PROVIDERS, Pair, built, finish, line_of, pattern, start

import weft

SIZE = (1 << 20) + 12346


@pytest.mark.parametrize("provider", PROVIDERS)
def test_handover_between_two_processes(provider: str) -> None:
    target = numpy.zeros(SIZE, numpy.uint8)
    with weft.Engine(providers=[provider]) as engine, engine.add(target) as segment:
        grant = segment.grant(weft.Rights.read_write)
        engine.publish("kv", grant)
        other = start("handover.py", provider, engine.address, str(SIZE))
        peer = engine.accept(60)
        peer.expect(7).wait(60)
        source, half = pattern(SIZE, 1), SIZE // 2
        assert numpy.array_equal(target[half : 2 * half], source[:half])
        assert numpy.array_equal(target[: SIZE - half], source[half:])
        target[:] = pattern(SIZE, 2)
        peer.send(1, b"written")
        assert peer.recv(2, timeout=60).bytes == b"read"
        grant.revoke()
        peer.send(3, b"done")
        finish(other)


@pytest.mark.parametrize(
    "way", ["expect", "receive", "recv", "accept", "peer", "lookup", "poll", "connect"]
)
def test_ctrl_c_ends_a_wait(way: str) -> None:
    program = start("interrupted.py", way)
    assert line_of(program) == "waits"
    program.send_signal(signal.SIGINT)
    assert "interrupted" in finish(program, timeout=30)


def test_ctrl_c_ends_the_wait_for_a_transfer() -> None:
    other = start("serve.py", "tcp", str(16 << 20))
    address = line_of(other).split()[0]
    with weft.Engine(providers=["tcp"], listen="") as engine:
        peer = engine.connect(address)
        remote = peer.lookup("memory")
        segment = engine.add(weft.Memory.own(16 << 20))
        other.send_signal(signal.SIGSTOP)
        transfer = engine.write(segment, remote, [(0, 0, 16 << 20)])
        timer = threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,))
        timer.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                transfer.wait()
            assert transfer.state == weft.State.active
        finally:
            other.send_signal(signal.SIGCONT)
        transfer.wait()
    finish(other)


@pytest.mark.parametrize(
    "way", ["open", "threads", "joined", "asyncio", "loop", "cycle", "error", "exit"]
)
def test_the_end_with_everything_left_open(way: str) -> None:
    program = start("exits.py", way)
    out = finish(program, timeout=60)
    assert way == "error" or "end" in out
    assert out.count("joined") == (2 if way == "joined" else 0)


@pytest.mark.parametrize("owner", ["segment", "closed segment", "grant", "prepared", "transfer"])
def test_memory_goes_while_other_threads_run(owner: str, tmp_path: Path) -> None:
    before = [built(tmp_path, "waiting_munmap.c")]
    if preloaded := os.environ.get("LD_PRELOAD"):
        before.insert(0, preloaded)
    program = start("unmaps.py", owner, LD_PRELOAD=":".join(before))
    assert finish(program).split() == ["answered"]


def test_fork() -> None:
    assert finish(start("forks.py")).split() == ["child", "parent"]


def test_spawn() -> None:
    assert finish(start("spawns.py")).split() == ["done"]


def test_threads_share_an_engine(engines: Pair) -> None:
    count, rounds, part = 8, 50, 8192
    source, target = pattern(count * part, 3), numpy.zeros(count * part, numpy.uint8)
    yours, remote = engines.granted(target, weft.Rights.write)
    mine = engines.a.add(source)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(rounds):
                pieces = [(number * part, number * part, part)]
                engines.a.write(mine, remote, pieces, signal=number).wait()
            assert engines.to_a.expect(number, rounds).wait().count == rounds
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert numpy.array_equal(source, target)
    mine.close()
    yours.close()


def test_two_threads_wait_for_one_thing(engines: Pair) -> None:
    expected = engines.to_a.expect(1)
    counts: list[int] = []
    threads = [
        threading.Thread(target=lambda: counts.append(expected.wait(60).count)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    engines.to_b.signal(weft.Signal(1, b"once"))
    for thread in threads:
        thread.join()
    assert counts == [1, 1, 1, 1]
    assert expected.wait(0).payloads == [b"once"]


def test_a_wait_lets_other_threads_run(engines: Pair) -> None:
    expected = engines.to_a.expect(1)

    def signal_it() -> None:
        engines.to_b.signal(1)

    threading.Timer(0.05, signal_it).start()
    assert expected.wait(60).count == 1


def test_too_few_descriptors_raise_what_weft_raises() -> None:
    """An engine opens, or fails as Weft's calls do, wherever they run out."""
    assert "opened" in finish(start("few_descriptors.py"), timeout=80)
