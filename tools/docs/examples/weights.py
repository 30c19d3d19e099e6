"""A trainer's new weights in two inference ranks, which read all the time: `python weights.py`."""

import multiprocessing
from multiprocessing.connection import Connection
from typing import Any

import numpy

import weft
from weft import weights

SHAPE, COLUMNS, RANKS, STEPS, PATIENCE = (1024, 2048), 1024, 2, 3, 60  # Columns: of each rank.


def weights_of(step: int) -> Any:
    """What the trainer has after so many steps. The ranks know it too, to check every byte."""
    return numpy.random.default_rng(step).random(SHAPE, numpy.float32)


def train(ranks: list[Connection]) -> None:
    mine = numpy.empty(SHAPE, numpy.float32)
    with weft.Engine(listen="127.0.0.1:0") as engine:
        holds, segments = weights.rank_of(engine, {"w": mine}, name="trainer")
        with weights.Publisher(engine, holds, segments, subscribers=RANKS) as publisher:
            for rank in ranks:
                rank.send(engine.address)
            for step in range(1, STEPS + 1):
                mine[:] = weights_of(step)
                publisher.publish(step, timeout=PATIENCE)
            for rank in ranks:
                rank.recv()  # It has looked at the last step.


def serve(number: int, trainer: Connection) -> None:
    begin, end = number * COLUMNS, (number + 1) * COLUMNS
    sets = [numpy.empty((SHAPE[0], COLUMNS), numpy.float32) for _ in range(2)]
    parts = [{"w": weights.Slice(each, SHAPE, (0, begin))} for each in sets]
    name, leader = f"rank{number}", trainer.recv()
    with weft.Engine(listen="127.0.0.1:0") as engine:
        (holds, one), (_, other) = (weights.rank_of(engine, part, name=name) for part in parts)
        with weights.Subscriber(engine, holds, [one, other], rank=number, leader=leader) as rank:
            for step in range(1, STEPS + 1):
                rank.wait(step, timeout=PATIENCE)
                with rank.read() as reading:  # Of this step, or of a newer one.
                    wanted = weights_of(reading.step)[:, begin:end]
                    assert numpy.array_equal(sets[reading.set], wanted)
            trainer.send(None)


if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = zip(*(spawn.Pipe() for _ in range(RANKS)), strict=True)
    processes = [spawn.Process(target=serve, args=each) for each in enumerate(theirs)]
    processes.append(spawn.Process(target=train, args=(list(ours),)))
    for process in processes:
        process.start()
    for process in processes:
        process.join(2 * PATIENCE)
        assert process.exitcode == 0, process
    print(f"{STEPS} steps in {RANKS} ranks: every byte is right")
