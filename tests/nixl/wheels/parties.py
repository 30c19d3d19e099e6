"""The parties of a test: processes of party.py, met, and ended with it."""

import concurrent.futures
import contextlib
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "..", "..", "perf", "peers"))
from children import Child, Failed  # noqa: E402

PATIENCE = 60  # Seconds for a command, besides its own limit.
TO_LEAVE = 30  # Seconds for an interpreter to end in, with everything left open.
MOST_SAID = 1 << 20


class Party:
    """A process that has one agent; commands are its methods: party.post(handles=[1])."""

    def __init__(self, name, environment):
        self.name = name
        self.child = Child([sys.executable, os.path.join(HERE, "party.py")], environment)
        self.child.name = name

    def __getattr__(self, command):
        return lambda **arguments: self.ask(command, **arguments)

    def ask(self, command, patience=PATIENCE, **arguments):
        return self.child.ask(patience + arguments.get("limit", 0), command, **arguments)

    def own(self, lengths, path=None):
        """Memory of its own, registered; others meet it by `introduction`."""
        self.lengths = lengths
        self.introduction = self.ask("own", lengths=lengths, path=path)

    def freeze(self):
        self.child.freeze()

    def thaw(self):
        self.child.thaw()

    def kill(self):
        if self.child.process.returncode is None:  # Else its number may be another's by now.
            self.child.end()

    def said(self):
        """What it wrote to standard error."""
        with contextlib.suppress(ValueError):  # Ended.
            written = os.pread(self.child.complaints.fileno(), MOST_SAID, 0)
            return written.decode(errors="replace")
        return ""

    def close(self):
        """Tells it to leave."""
        self.child.process.stdin.close()

    def exit_code(self):
        """Of an interpreter that ends with all that is open."""
        try:
            return self.child.process.wait(TO_LEAVE)
        except subprocess.TimeoutExpired:
            return f"not ended in {TO_LEAVE} s"


class Parties:
    """Starts parties, and ends those that are left: each has to leave, without a crash."""

    def __init__(self, settings):
        self._settings = settings
        self._living = []

    def start(self, name, sync=None, parameters=None, environment=None):
        """Opens its backend, too."""
        party = self.begin(name, environment)
        self._must_open(party, sync, parameters)
        return party

    def start_each(self, wanted, sync=None):
        """All at a time, by their names, each with its parameters."""
        started = [self.begin(name) for name in wanted]
        together(*(lambda party=party: self._must_open(party, sync, wanted[party.name])
                   for party in started))
        return started

    def _must_open(self, party, sync, parameters):
        outcome = self.open(party, sync, parameters)
        if outcome != "open":
            raise Failed(f"{party.name} can't open {self._settings.backend}: {outcome}\n"
                         + party.said())

    def begin(self, name, environment=None):
        """A process without an agent."""
        party = Party(name, {**self._settings.environment, **(environment or {})})
        self._living.append(party)
        return party

    def open(self, party, sync=None, parameters=None):
        settings = self._settings
        if settings.parameters:  # There are none for another backend.
            parameters = {**settings.parameters, **(parameters or {})}
        return party.ask("open", name=party.name, backend=settings.backend, sync=sync,
                         parameters=parameters or {})

    def reopen(self, party):
        """A new agent in the place of one that was destroyed."""
        return party.ask("reopen", name=party.name, backend=self._settings.backend,
                         parameters=self._settings.parameters)

    def kill(self, party):
        self._living.remove(party)
        party.kill()

    def leave(self, party):
        """It has to, without a crash."""
        party.close()
        self._must_leave(party)

    def _must_leave(self, party):
        self._living.remove(party)
        code, said = party.exit_code(), party.said()
        party.kill()
        if code != 0 and not self._settings.may_crash_at_exit:
            raise Failed(f"{party.name} left by {code}:\n{said}")

    def end(self):
        """All at a time. What they said is shown with a failure."""
        wrong = []
        for party in self._living:
            party.thaw()
            party.close()
        for party in list(self._living):
            try:
                self._must_leave(party)
            except Failed as failure:
                wrong.append(str(failure))
        if wrong:
            raise Failed("\n".join(wrong))

    def tell(self):
        """What those said that still live."""
        for party in self._living:
            print(f"--- {party.name} said:\n{party.said()}")

    def kill_all(self):
        while self._living:
            self.kill(self._living[-1])


def introduce(*parties):
    """Each to all others."""
    for party in parties:
        for other in parties:
            if other is not party:
                party.meet(**other.introduction)


def together(*calls):
    """Their answers; all run at a time."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        begun = [pool.submit(call) for call in calls]
        return [each.result() for each in begun]


@contextlib.contextmanager
def frozen(party):
    party.freeze()
    try:
        yield time.monotonic()
    finally:
        party.thaw()
