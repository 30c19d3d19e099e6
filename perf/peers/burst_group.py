"""The processes of a burst: one decode node and several prefill nodes of one engine."""

import contextlib
import os
import random
import tempfile

from children import Child, Failed, answers

HERE = os.path.dirname(os.path.abspath(__file__))
START_SECONDS = 120


def requests_of(count, least, largest, block, peers, seed):
    """(peer, offset there, offset here, bytes): sizes whose logarithms are even, peers by turns."""
    dice, here, found = random.Random(seed), 0, []
    for number in range(count):
        wanted = least * (largest / least) ** dice.random()
        length = max(1, round(wanted / block)) * block
        found.append((number % peers, largest - length, here, length))
        here += length
    return found


class BurstGroup:
    def __init__(self, engine, venv, requests, peers, largest):
        self.engine, self.requests = engine, requests
        self.scratch = tempfile.TemporaryDirectory()
        here = sum(length for *_, length in requests)
        environment = engine.environment(self.scratch.name)
        python = os.path.join(venv, "bin", "python")
        self.children = []
        for name, length in [("decode", here), *((f"prefill{i}", largest) for i in range(peers))]:
            self.children.append(Child([python, os.path.join(HERE, "burst_side.py"), name,
                                        str(length), engine.kind, *engine.words], environment))

    def start(self, block, seed):
        decode, *prefills = self.children
        for number, each in enumerate(prefills):
            each.tell("fill", seed=number + 1)
        answers(prefills, START_SECONDS)
        for each in prefills:
            each.tell("introduce")
        decode.ask(START_SECONDS, "meet", introductions=answers(prefills, START_SECONDS))
        decode.ask(START_SECONDS, "plan", requests=self.requests, block=block, seed=seed)

    def burst(self, limit):
        """Seconds of each request, and CPU seconds of all processes together."""
        before = sum(self.cpu_seconds(each) for each in self.children)
        took = self.children[0].ask(2 * limit, "burst", limit=limit)
        return took, sum(self.cpu_seconds(each) for each in self.children) - before

    def check(self, limit):
        wrong = self.children[0].ask(limit, "wrong")
        if wrong:
            raise Failed(f"{self.engine.name}: {wrong} blocks are not what was sent")

    @staticmethod
    def cpu_seconds(child):
        with open(f"/proc/{child.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        for each in self.children:
            with contextlib.suppress(OSError):
                each.end()
        self.scratch.cleanup()
