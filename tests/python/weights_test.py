"""weft.weights: steps that all ranks have or none, plans, models, and what tensors become."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy
import pytest
from support import PROVIDERS, finish, line_of, start

import weft
from weft import weights

PATIENCE = 30.0
SHAPE = (16, 32)


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


class Process:
    """A program of tests/python/programs/weights_rank.py."""

    def __init__(self, *arguments: str) -> None:
        self.program: subprocess.Popen[str] = start("weights_rank.py", *arguments)

    def tell(self, text: str) -> None:
        assert self.program.stdin is not None
        self.program.stdin.write(text + "\n")
        self.program.stdin.flush()

    def hear(self) -> str:
        line = line_of(self.program)
        if not line:
            raise AssertionError(f"it has ended: {self.program.communicate(timeout=PATIENCE)}")
        return line

    def ask(self, text: str) -> str:
        self.tell(text)
        return self.hear()

    def end(self) -> None:
        finish(self.program)

    def kill(self) -> None:
        self.program.kill()
        self.program.communicate(timeout=PATIENCE)


class Group:
    """Two trainers and two serving ranks, in processes of their own."""

    def __init__(self, provider: str, sets: int = 2) -> None:
        self.provider, self.leader = provider, free_address()
        self.trainers = [self.trainer(number) for number in range(2)]
        self.serving = [
            Process("serving", provider, str(number), self.leader, str(sets)) for number in range(2)
        ]
        for each in (*self.trainers, *self.serving):
            assert each.hear() == "ready"

    def trainer(self, number: int) -> Process:
        return Process("trainer", self.provider, str(number), "2", self.leader)

    def publish(self, step: int, seconds: float = PATIENCE) -> list[str]:
        for each in self.trainers:
            each.tell(f"publish {step} {seconds}")
        return [each.hear() for each in self.trainers]

    def publish_well(self, step: int, tries: int = 5) -> None:
        """A step that became void is published again: on a busy machine a rank is met too late."""
        said = self.publish(step)
        while said[0].startswith("cancelled") and (tries := tries - 1) > 0:
            said = self.publish(step)
        assert said == [f"done {step}"] * 2
        for each in self.serving:
            assert each.ask(f"wait {step} {PATIENCE}") == "ok"

    def check(self) -> None:
        for each in self.serving:
            assert each.ask("wrong") == "nothing"

    def close(self) -> None:
        for each in (*self.serving, *self.trainers):
            each.program.kill()
            each.program.communicate()


@pytest.fixture(params=PROVIDERS)
def group(request: pytest.FixtureRequest) -> Iterator[Group]:
    with contextlib.closing(Group(request.param)) as group:
        yield group


def test_steps_come_whole(group: Group) -> None:
    for step in range(1, 5):
        group.publish_well(step)
    group.check()
    for each in (*group.trainers, *group.serving):
        each.tell("end")
    for each in (*group.trainers, *group.serving):
        each.end()


@pytest.mark.parametrize("victim", [0, 1])
def test_a_trainer_is_killed_in_the_middle_of_a_step(group: Group, victim: int) -> None:
    group.publish_well(1)
    doomed, other = group.trainers[victim], group.trainers[1 - victim]
    doomed.tell("drop")
    for each in group.trainers:
        each.tell(f"publish 2 {PATIENCE}")
    assert doomed.hear() == "dropped"  # The other one's bytes are there, or on their way.
    doomed.kill()
    for each in group.serving:
        standing = each.ask("standing")
        assert standing.split()[:2] == ["ready", "1"], standing
        assert each.ask("wait 2 0.2").startswith("timed_out")
    # The leader takes what it knows along.
    assert other.hear().startswith("cancelled" if victim == 1 else "unavailable")
    group.check()
    group.trainers[victim] = group.trainer(victim)
    assert group.trainers[victim].hear() == "ready"
    group.publish_well(3)
    group.check()


def test_with_one_set_what_was_overwritten_is_unusable() -> None:
    with contextlib.closing(Group("tcp", sets=1)) as group:
        group.publish_well(1)
        group.trainers[1].tell("drop")
        for each in group.trainers:
            each.tell("publish 2 5")
        assert group.trainers[1].hear() == "dropped"
        assert group.trainers[0].hear().startswith("cancelled")
        for each in group.serving:
            assert each.ask("standing").split()[0] == "unusable"
        group.check()


@dataclass
class Pair:
    """A trainer and a rank with two sets, in this process."""

    publisher: weights.Publisher
    subscriber: weights.Subscriber
    source: Any
    sets: list[Any]

    def publish(self, step: int, timeout: float = PATIENCE) -> weights.Published:
        self.source[:] = step
        return self.publisher.publish(step, timeout=timeout)


@pytest.fixture
def pair() -> Iterator[Pair]:
    source = numpy.zeros(SHAPE, numpy.float32)
    sets = [numpy.zeros(SHAPE, numpy.float32) for _ in range(2)]
    with (
        weft.Engine(providers=["tcp"], listen="127.0.0.1:0") as trainer,
        weft.Engine(providers=["tcp"], listen="127.0.0.1:0") as serving,
    ):
        holds, segments = weights.rank_of(trainer, {"w": source}, name="trainer")
        ranks = [weights.rank_of(serving, {"w": each}, name="rank") for each in sets]
        with (
            weights.Publisher(trainer, holds, segments) as publisher,
            weights.Subscriber(
                serving, ranks[0][0], [each for _, each in ranks], leader=trainer.address
            ) as subscriber,
        ):
            yield Pair(publisher, subscriber, source, sets)


def test_a_reading_keeps_its_memory(pair: Pair) -> None:
    with pytest.raises(weft.Unavailable):
        pair.subscriber.read()
    assert pair.subscriber.step is None
    published = pair.publish(1)
    assert (published.step, published.bytes) == (1, pair.source.nbytes)
    assert published.elapsed > 0
    pair.subscriber.wait(1)
    assert pair.subscriber.step == 1
    with pair.subscriber.read() as reading:
        assert reading.step == 1 and (pair.sets[reading.set] == 1).all()
        pair.publish(2)  # Into the other set.
        with pytest.raises((weft.Cancelled, weft.Unavailable)):
            pair.publish(3, timeout=0.5)
        assert (pair.sets[reading.set] == 1).all()
        assert "closed" not in repr(reading)
    assert "closed" in repr(reading)
    reading.close()
    standing = pair.subscriber.standing
    assert (standing.state, standing.step) == (weights.StepState.ready, 2)
    assert standing.connected
    pair.publish(4)
    pair.subscriber.wait(4)


def test_a_reading_ends_with_its_object(pair: Pair) -> None:
    pair.publish(1)
    readings = [pair.subscriber.read()]
    pair.publish(2)
    readings.clear()
    gc.collect()
    pair.publish(3)


def test_a_wait_that_times_out(pair: Pair) -> None:
    with pytest.raises(weft.TimedOut):
        pair.subscriber.wait(1, timeout=0.05)


def test_asyncio(pair: Pair) -> None:
    async def work() -> None:
        waiting = asyncio.create_task(pair.subscriber.wait_async(1, timeout=PATIENCE))
        published = await pair.publisher.publish_async(1, timeout=PATIENCE)
        assert published.step == 1
        await waiting
        with pytest.raises(weft.TimedOut):
            await pair.subscriber.wait_async(2, timeout=0.05)
        given_up = asyncio.create_task(pair.subscriber.wait_async(2, timeout=PATIENCE))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert (await pair.publisher.publish_async(2)).step == 2

    asyncio.run(work())


def test_others_run_while_it_waits(pair: Pair) -> None:
    counts: list[int] = []
    waits = threading.Thread(target=lambda: counts.append(pair.subscriber.wait(1, PATIENCE) or 1))
    waits.start()
    pair.publish(1)
    waits.join()
    assert counts == [1]


def test_after_the_end(pair: Pair) -> None:
    pair.publish(1)
    reading = pair.subscriber.read()
    pair.publisher.close()
    pair.subscriber.close()
    pair.subscriber.close()
    for call in (
        lambda: pair.publisher.publish(2),
        lambda: pair.subscriber.wait(1),
        lambda: pair.subscriber.read(),
        lambda: pair.subscriber.step,
        lambda: pair.subscriber.standing,
    ):
        with pytest.raises(weft.Closed):
            call()
    assert (pair.sets[reading.set] == 1).all()


def test_an_engine_that_goes_first() -> None:
    array = numpy.zeros(SHAPE, numpy.float32)
    engine = weft.Engine(providers=["tcp"], listen="127.0.0.1:0")
    holds, segments = weights.rank_of(engine, {"w": array}, name="trainer")
    publisher = weights.Publisher(engine, holds, segments)
    engine.close()
    with pytest.raises(weft.Error):
        publisher.publish(1, timeout=0.2)
    del engine
    publisher.close()


def test_what_is_wrong_is_said() -> None:
    array = numpy.zeros(SHAPE, numpy.float32)
    with weft.Engine(providers=["tcp"], listen="127.0.0.1:0") as engine:
        holds, segments = weights.rank_of(engine, {"w": array}, name="rank")
        with pytest.raises(weft.InvalidArgument, match="leader"):
            weights.Publisher(engine, holds, segments, rank=1, publishers=2)
        with pytest.raises(weft.InvalidArgument, match="sets"):
            weights.Subscriber(engine, holds, [], leader="127.0.0.1:1")
        with pytest.raises(weft.InvalidArgument, match="segment 0"):
            weights.Subscriber(engine, holds, [[]], leader="127.0.0.1:1")
        with weights.Publisher(engine, holds, segments) as alone:
            with pytest.raises(weft.Cancelled):
                alone.publish(1, timeout=0.2)
        with pytest.raises(weft.InvalidArgument, match="backwards"):
            weights.rank_of(engine, {"w": array[::-1]}, name="rank")
        with pytest.raises(weft.InvalidArgument, match="no array"):
            weights.rank_of(engine, {"w": b"bytes"}, name="rank")
        with pytest.raises(weft.NotFound, match="bfloat16"):
            weights.rank_of(engine, {"w": array.astype(complex)}, name="rank")


@pytest.mark.parametrize("way", ["publish", "wait"])
def test_ctrl_c_ends_a_wait(way: str) -> None:
    program = start("interrupted.py", way)
    assert line_of(program) == "waits"
    program.send_signal(signal.SIGINT)
    assert "interrupted" in finish(program)


def test_a_forked_child_has_none_of_it(pair: Pair) -> None:
    pair.publish(1)
    child = os.fork()
    if child == 0:
        for call in (lambda: pair.publisher.publish(2), lambda: pair.subscriber.read()):
            try:
                call()
            except weft.Forked:
                continue
            os._exit(3)
        pair.publisher.close()
        pair.subscriber.close()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    pair.publish(2)


def test_arrays_become_shards() -> None:
    whole = numpy.zeros((6, 8), numpy.float32)
    shared = weft.Memory.shared(4096)
    with weft.Engine(providers=["tcp"], listen="") as engine:
        segment = engine.add(shared)
        there = numpy.asarray(segment)[64:80].view(numpy.int16)
        rank, segments = weights.rank_of(
            engine,
            {
                "all": whole,
                "rows": weights.Slice(whole[2:4], (60, 8), (10, 0)),
                "columns": whole[:, 2:5],
                "turned": whole.T,
                "there": there,
                "number": numpy.zeros((), numpy.float64),
                "flag": numpy.zeros(1, numpy.bool_),
            },
            name="rank",
            host="h",
            nics=4,
            gbps=400,
            segments=[segment],
        )
        assert (rank.name, rank.host, rank.nics, rank.gbps) == ("rank", "h", 4, 400)
        assert [len(each) for each in segments] == [4096, 192, 8, 1]
        by_name = {each.name: each for each in rank.shards}

        def described(name: str) -> tuple[Any, ...]:
            each = by_name[name]
            return (each.shape, each.begin, each.extent, each.segment, each.offset, each.strides)

        assert described("all") == ((6, 8), (0, 0), (6, 8), 1, 0, ())
        assert described("rows") == ((60, 8), (10, 0), (2, 8), 1, 64, ())
        assert described("columns") == ((6, 3), (0, 0), (6, 3), 1, 8, (32, 4))
        assert described("turned") == ((8, 6), (0, 0), (8, 6), 1, 0, (4, 32))
        assert described("there") == ((8,), (0,), (8,), 0, 64, ())
        assert described("number") == ((), (), (), 2, 0, ())
        assert by_name["flag"].dtype is weights.DType.boolean
        assert by_name["there"].dtype is weights.DType.int16
        for each in segments:
            each.close()


def test_tensors_become_shards() -> None:
    torch = pytest.importorskip("torch")
    flat = torch.zeros(64, dtype=torch.bfloat16, requires_grad=True)
    with weft.Engine(providers=["tcp"], listen="") as engine:
        rank, segments = weights.rank_of(
            engine,
            {"a": flat[:32].view(4, 8), "b": flat[32:].view(4, 8)[:, :2], "c": flat[40:48]},
            name="rank",
        )
        assert [len(each) for each in segments] == [128]
        assert [each.offset for each in rank.shards] == [0, 64, 80]
        assert [each.strides for each in rank.shards] == [(), (16, 2), ()]
        assert {each.dtype for each in rank.shards} == {weights.DType.bf16}
        segments[0].close()


def halves() -> weights.World:
    shape, kind = (64, 16), weights.DType.bf16
    trainers = [
        weights.Rank(
            f"trainer{number}",
            [weights.Shard("w", shape, kind, begin=(32 * number, 0), extent=(32, 16))],
            host="a",
            nics=4,
        )
        for number in range(2)
    ]
    return weights.World(trainers, [weights.Rank("decode0", [weights.Shard("w", shape, kind)])])


def test_a_plan() -> None:
    plan = weights.plan(halves())
    assert (plan.fan_out, plan.chunks, plan.hops) == (weights.FanOut.direct, 1, 1)
    assert (plan.bytes, plan.published) == (2048, 2048)
    assert [each.source.rank for each in plan.transfers] == [0, 1]
    first, second = plan.transfers
    assert first.source.side is weights.Side.publisher and first.to == 0
    assert second.pieces().tolist() == [[0, 0, 0, 1024, 1024, 1, 0, 0]]
    assert (len(second), second.bytes, second.chunk, second.hop) == (1, 1024, 0, 0)
    assert plan.subscribers[0].received == 2048 and plan.publishers[0].sent_by_nic == 256
    assert [(each.to, each.bytes) for each in plan.pairs] == [(0, 1024), (0, 1024)]
    assert plan.predicted_seconds > 0
    again = weights.World.from_json(halves().to_json())
    assert weights.plan(again).bytes == plan.bytes
    for thing in (plan, first, first.source, again, again.publishers[0].shards[0]):
        assert repr(thing).startswith("<weft.weights.")
    del plan
    gc.collect()
    assert first.bytes == 1024  # It keeps the plan.


def test_replicas_pass_weights_on() -> None:
    kind = weights.DType.fp8_e4m3
    ranks = [
        weights.Rank(f"decode{each}", [weights.Shard("w", (1 << 20,), kind)]) for each in range(4)
    ]
    world = weights.World([weights.Rank("t", [weights.Shard("w", (1 << 20,), kind)])], ranks)
    plan = weights.plan(world, fan_out=weights.FanOut.chain, chunk_bytes=1 << 18)
    assert plan.fan_out is weights.FanOut.chain and plan.published == 1 << 20
    assert plan.hops == 4 and plan.bytes == 4 << 20


def test_plans_that_can_not_be() -> None:
    world = halves()
    with pytest.raises(weft.InvalidArgument, match="decode0"):
        weights.plan(weights.World(world.publishers[:1], world.subscribers))
    with pytest.raises(weft.InvalidArgument, match="go together"):
        weights.Shard("w", (1,), weights.DType.bf16, begin=(0,))
    with pytest.raises(weft.InvalidArgument):
        weights.World.from_json("{")


def test_types_have_names() -> None:
    assert weights.dtype_named("float8_e4m3fn") is weights.DType.fp8_e4m3
    assert weights.name_of(weights.DType.bf16) == "bfloat16"
    assert weights.bytes_of(weights.DType.fp64) == 8
    with pytest.raises(weft.NotFound, match="bfloat16"):
        weights.dtype_named("float17")


CONFIG = """{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256,
"tie_word_embeddings": false, "torch_dtype": "bfloat16"}"""


def test_models() -> None:
    model = weights.from_config(CONFIG, "tiny")
    assert (model.name, model.layers, model.experts) == ("tiny", 2, 0)
    assert model.bytes == 2 * model.parameters
    shapes = {each.name: each.shape for each in model.tensors}
    assert shapes["model.embed_tokens.weight"] == (256, 64)
    ranks = model.ranks(parallel=weights.Parallelism(tp=2), name="decode")
    assert [each.name for each in ranks] == ["decode0", "decode1"]
    trainers = model.ranks(parallel=weights.Parallelism.parse("fsdp=4"), name="trainer")
    plan = weights.plan(weights.World(trainers, ranks))
    assert model.bytes < plan.bytes < 2 * model.bytes
    with pytest.raises(weft.Unsupported):
        weights.from_config('{"model_type": "unheard-of"}')
    with pytest.raises(weft.InvalidArgument):
        weights.Parallelism.parse("tp=x")
