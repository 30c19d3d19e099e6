"""Processes that a measurement starts: each has a time limit, and none is left behind."""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import tempfile
import time

LAST_LINES = 6
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Failed(Exception):
    """A program that did not do what it was started for; says its last lines."""


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def last_lines(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join("    " + line for line in lines[-LAST_LINES:])


def left(deadline):
    return max(0.0, deadline - time.monotonic())


class Child:
    """A process in a group of its own; what it says of errors is kept in a file."""

    def __init__(self, arguments, environment=None):
        self.name = os.path.basename(arguments[0])
        self.complaints = tempfile.TemporaryFile(mode="w+", errors="replace")
        self.process = subprocess.Popen(
            arguments, env={**os.environ, **(environment or {})}, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.complaints, start_new_session=True,
            preexec_fn=die_with_parent)
        self._read = b""

    def failed(self, why):
        self.complaints.seek(0)
        said = last_lines(self._read.decode(errors="replace") + self.complaints.read())
        return Failed(f"{self.name} {why}" + (f":\n{said}" if said else ""))

    def _read_more(self, deadline):
        """False at the end of its output."""
        ready, _, _ = select.select([self], [], [], left(deadline))
        if not ready:
            raise self.failed("took too long")
        more = os.read(self.process.stdout.fileno(), 1 << 16)
        self._read += more
        return bool(more)

    def line(self, deadline):
        while b"\n" not in self._read:
            if not self._read_more(deadline):
                raise self.failed("has ended")
        line, self._read = self._read.split(b"\n", 1)
        return line.decode(errors="replace")

    def line_with(self, text, deadline):
        while text not in self.line(deadline):
            pass

    def output(self, deadline):
        """All that it writes until it ends well."""
        while self._read_more(deadline):
            pass
        try:
            code = self.process.wait(left(deadline))
        except subprocess.TimeoutExpired:
            raise self.failed("took too long to end") from None
        if code != 0:
            raise self.failed(f"ended with {code}")
        return self._read.decode(errors="replace")

    def ask(self, seconds, do, **arguments):
        """The answer of a side to a command."""
        self.tell(do, **arguments)
        return self.answer(seconds)

    def tell(self, do, **arguments):
        """Has a side obey a command, whose answer is taken later."""
        try:
            self.process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self.failed("has ended") from None

    def answer(self, seconds):
        reply = json.loads(self.line(time.monotonic() + seconds))
        if "error" in reply:
            raise self.failed("says " + reply["error"])
        return reply["answer"]

    def fileno(self):
        """Of what it answers by, for select."""
        return self.process.stdout.fileno()

    def _signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def freeze(self):
        self._signal(signal.SIGSTOP)

    def thaw(self):
        self._signal(signal.SIGCONT)

    def end(self):
        self._signal(signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.complaints):
            with contextlib.suppress(OSError):
                stream.close()


def answers(sides, seconds):
    """Of all of them, in their order. The first that fails is why the others wait in vain."""
    deadline, found = time.monotonic() + seconds, {}
    while len(found) < len(sides):
        waiting = [side for side in sides if side not in found]
        ready, _, _ = select.select(waiting, [], [], left(deadline))
        if not ready:
            raise waiting[0].failed("took too long")
        found.update((side, side.answer(left(deadline))) for side in ready)
    return [found[side] for side in sides]


@contextlib.contextmanager
def started(arguments, environment=None):
    child = Child(arguments, environment)
    try:
        yield child
    finally:
        child.end()


def said_by(*arguments):
    """What a command prints that may be missing, or fail: nothing then."""
    try:
        return subprocess.run(arguments, capture_output=True, text=True, timeout=10,
                              check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def output_of(arguments, limit, environment=None):
    with started(arguments, environment) as child:
        return child.output(time.monotonic() + limit)
