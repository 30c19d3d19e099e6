"""A rank of the trainer or of inference, told what to do by lines.

weights_rank.py trainer PROVIDER NUMBER TRAINERS LEADER
weights_rank.py serving PROVIDER NUMBER LEADER SETS

Two tensors: rows of `w` are dealt out to the trainers, its columns to two serving ranks; all have
`b`. A trainer is told "publish STEP SECONDS", "drop" or "end", and answers each. After "drop" none of
its writes arrives; it says "dropped" when the first one is lost. A serving rank looks at all bytes
all the time; it is told "wait STEP SECONDS", "standing", "wrong" or "end".
"""

import contextlib
import sys
import threading
import time
from pathlib import Path

import numpy

import weft
from weft import weights

sys.path.insert(0, str(Path(__file__).parent.parent))
from support import pattern  # noqa: E402

ROWS, COLUMNS, SERVING = 64, 512, 2


def matrix(step: int):
    return pattern(4 * ROWS * COLUMNS, step).view(numpy.float32).reshape(ROWS, COLUMNS)


def vector(step: int):
    return pattern(2 * COLUMNS, 1000 + step).view(numpy.float16)


def told():
    for line in sys.stdin:
        yield line.split()


def say(text) -> None:
    print(text, flush=True)


def tell_of_loss(faults: weft.testing.Faults) -> None:
    while faults.counts.dropped == 0:
        time.sleep(0.001)  # The switch has no event.
    say("dropped")


def train(provider: str, number: int, trainers: int, leader: str) -> None:
    faults = weft.testing.Faults()
    listen = leader if number == 0 else "127.0.0.1:0"
    share = ROWS // trainers
    rows = slice(number * share, (number + 1) * share)
    w = numpy.empty((share, COLUMNS), numpy.float32)
    b = numpy.empty(COLUMNS, numpy.float16)
    with weft.testing.open(faults, providers=[provider], listen=listen) as engine:
        parts = {"w": weights.Slice(w, (ROWS, COLUMNS), (rows.start, 0)), "b": b}
        holds, segments = weights.rank_of(engine, parts, name=f"trainer{number}")
        with weights.Publisher(
            engine,
            holds,
            segments,
            rank=number,
            publishers=trainers,
            leader="" if number == 0 else leader,
            subscribers=SERVING,
        ) as publisher:
            say("ready")
            for do, *what in told():
                if do == "publish":
                    step, seconds = int(what[0]), float(what[1])
                    w[:], b[:] = matrix(step)[rows], vector(step)
                    try:
                        say(f"done {publisher.publish(step, timeout=seconds).step}")
                    except weft.Error as error:
                        say(f"{error.code} {error}")
                elif do == "drop":
                    faults.set(drop=1)
                    threading.Thread(target=tell_of_loss, args=(faults,), daemon=True).start()
                elif do == "end":
                    break


class Reader(threading.Thread):
    """Looks all the time."""

    def __init__(self, subscriber: weights.Subscriber, sets, columns: slice) -> None:
        super().__init__(daemon=True)
        self.subscriber, self.sets, self.columns = subscriber, sets, columns
        self.wrong: list[str] = []
        self.over = False

    def run(self) -> None:
        while not self.over:
            try:
                with self.subscriber.read() as reading:
                    self.look(reading)
            except weft.Unavailable:
                with contextlib.suppress(weft.TimedOut):
                    self.subscriber.wait(0, timeout=0.1)  # Any step.

    def look(self, reading: weights.Reading) -> None:
        w, b = self.sets[reading.set]
        right = numpy.array_equal(w.view(numpy.uint8), bytes_of_part(reading.step, self.columns))
        if not right or b.tobytes() != vector(reading.step).tobytes():
            self.wrong.append(f"{reading!r} has bytes of another step")


def bytes_of_part(step: int, columns: slice):
    return numpy.ascontiguousarray(matrix(step)[:, columns]).view(numpy.uint8)


def serve(provider: str, number: int, leader: str, count: int) -> None:
    share = COLUMNS // SERVING
    columns = slice(number * share, (number + 1) * share)
    sets = [
        (numpy.empty((ROWS, share), numpy.float32), numpy.empty(COLUMNS, numpy.float16))
        for _ in range(count)
    ]
    with weft.Engine(providers=[provider], listen="127.0.0.1:0") as engine:
        ranks = [
            weights.rank_of(
                engine,
                {"w": weights.Slice(w, (ROWS, COLUMNS), (0, columns.start)), "b": b},
                name=f"serving{number}",
            )
            for w, b in sets
        ]
        with weights.Subscriber(
            engine, ranks[0][0], [segments for _, segments in ranks], rank=number, leader=leader
        ) as subscriber:
            reader = Reader(subscriber, sets, columns)
            reader.start()
            say("ready")
            for do, *what in told():
                if do == "wait":
                    try:
                        subscriber.wait(int(what[0]), timeout=float(what[1]))
                        say("ok")
                    except weft.Error as error:
                        say(f"{error.code} {error}")
                elif do == "standing":
                    standing = subscriber.standing
                    say(f"{standing.state.name} {standing.step} {standing.why}")
                elif do == "wrong":
                    say("; ".join(reader.wrong) or "nothing")
                elif do == "end":
                    break
            reader.over = True
            reader.join()


if sys.argv[1] == "trainer":
    train(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
else:
    serve(sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
