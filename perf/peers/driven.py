"""Peers whose two sides are scripts of ours that stay for all measurements of a fabric."""

import os

from cell import ALL
from children import Child, Failed
from spread import quantile

HERE = os.path.dirname(os.path.abspath(__file__))
START_SECONDS = 60
SCRIPTS = {"nixl": "nixl_write.py", "mooncake": "mooncake_write.py"}
WHEELS = {"nixl": "nixl", "mooncake": "mooncake-transfer-engine (or its -non-cuda)"}


class Driven:
    """Both sides are frozen while it is not their turn: some of them poll all the time."""

    checks = "every byte"
    figures = ALL

    def __init__(self, name, venv, software, backend, environment, memory="host"):
        self.name, self.software, self.backend = name, software, backend
        self.memory = memory
        self.python = os.path.join(venv, "bin", "python") if venv else ""
        self.environment = environment
        self.children = []

    def start(self, memory_bytes):
        if not os.access(self.python, os.X_OK):
            raise Failed(f"--venv names no virtual environment; {self.how_to_get()}")
        for role in ("target", "initiator"):
            self.children.append(Child(
                [self.python, os.path.join(HERE, SCRIPTS[self.software]), role, self.backend,
                 str(memory_bytes), self.memory], self.environment))
        self.target, self.initiator = self.children
        try:
            introduction = self.target.ask(START_SECONDS, "introduce")
            self.told_version = introduction["version"]
            self.initiator.ask(START_SECONDS, "meet", **introduction)
        except Failed as failure:
            if "ModuleNotFoundError" in str(failure):
                raise Failed(f"no wheel of it; {self.how_to_get()}") from None
            raise
        self.signal(Child.freeze)

    def how_to_get(self):
        return f"it needs: python3 -m venv DIR && DIR/bin/pip install {WHEELS[self.software]}"

    def version(self):
        return self.told_version

    def signal(self, how):
        for child in self.children:
            how(child)

    def in_its_turn(self, work):
        self.signal(Child.thaw)
        try:
            return work()
        finally:
            self.signal(Child.freeze)

    def write(self, cell, count, limit):
        return self.initiator.ask(2 * limit, "write", size=cell.size, window=cell.window,
                                  count=count, limit=limit)

    def measure(self, cell, limit):
        return self.in_its_turn(lambda: self.write(cell, cell.count, limit))

    def latency(self, cell, limit):
        """Microseconds from the begin of a write until a poll finds it done: p50, p99."""
        seconds = self.in_its_turn(lambda: self.initiator.ask(
            2 * limit, "latencies", size=cell.size, count=cell.count, limit=limit))
        return tuple(quantile(seconds, part) * 1e6 for part in (0.5, 0.99))

    def check(self, cell, limit):
        """Writes from each slot and compares all that came."""
        length = cell.size * cell.window

        def written_and_compared():
            self.target.ask(limit, "fill", length=length, seed=0)
            self.initiator.ask(limit, "fill", length=length, seed=1)
            self.write(cell, cell.window, limit)
            return self.target.ask(limit, "first_wrong", length=length, seed=1)

        wrong = self.in_its_turn(written_and_compared)
        if wrong is not None:
            raise self.target.failed(f"got other bytes than were sent, near offset {wrong}")

    def end(self):
        for child in self.children:
            child.end()
        self.children = []
