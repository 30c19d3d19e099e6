"""Two processes that run a script of ours, each one side, and stay for many measurements."""

import os
import tempfile
import time

from children import Child, Failed

HERE = os.path.dirname(os.path.abspath(__file__))
START_SECONDS = 60


class Pair:
    """Both sides are frozen while it is not their turn: some of them poll all the time."""

    def __init__(self, name, venv, script, engine, memory="host"):
        self.name, self.engine, self.memory = name, engine, memory
        self.python = os.path.join(venv, "bin", "python") if venv else ""
        self.script = os.path.join(HERE, script)
        self.children, self.scratch = [], None

    def start(self, memory_bytes):
        if not os.access(self.python, os.X_OK):
            raise Failed(f"--venv names no virtual environment; {self.how_to_get()}")
        self.scratch = tempfile.TemporaryDirectory()
        environment = self.engine.environment(self.scratch.name)
        for role in ("target", "initiator"):
            self.children.append(Child(
                [self.python, self.script, role, str(memory_bytes), self.memory,
                 *self.engine.words], environment))
        self.target, self.initiator = self.children
        self.introduce()
        self.signal(Child.freeze)

    def introduce(self):
        """Each to the other."""
        try:
            introduction = self.target.ask(START_SECONDS, "introduce")
            self.told_version = introduction["version"]
            self.initiator.ask(START_SECONDS, "meet", **introduction)
        except Failed as failure:
            if "ModuleNotFoundError" in str(failure):
                raise Failed(f"no wheel of it; {self.how_to_get()}") from None
            raise

    def how_to_get(self):
        return f"it needs: python3 -m venv DIR && DIR/bin/pip install {self.engine.wheel}"

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

    def compared(self, length, limit, work):
        """Has work move the initiator's first bytes to the target, each to its place."""
        self.target.ask(limit, "fill", length=length, seed=0)
        self.initiator.ask(limit, "fill", length=length, seed=1)
        work()
        wrong = self.first_wrong(length, limit)
        if wrong is not None:
            raise self.target.failed(f"got other bytes than were sent, near offset {wrong}")

    def first_wrong(self, length, limit):
        """As it is right after the writes, or in the end where they are done early."""
        until = time.monotonic() + (limit if self.engine.done_early else 0)
        while True:
            wrong = self.target.ask(limit, "first_wrong", length=length, seed=1)
            if wrong is None or time.monotonic() >= until:
                return wrong

    def end(self):
        for child in self.children:
            child.end()
        self.children = []
        if self.scratch:
            self.scratch.cleanup()
            self.scratch = None
