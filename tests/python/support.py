"""What the tests of the Python package share."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import pytest

import weft

PROVIDERS = ["tcp", "shm"]


def pattern(count: int, seed: int) -> Any:
    """Bytes of which each tells its position."""
    position = numpy.arange(count, dtype=numpy.uint64)
    mixed = (position + numpy.uint64(seed << 32)) * numpy.uint64(0x9E3779B97F4A7C15)
    return (mixed >> numpy.uint64(40)).astype(numpy.uint8)


def released(condition: Callable[[], bool]) -> None:
    """Engines' threads let go of memory in their own time; Python's main thread releases it."""
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "the memory is never released"
        time.sleep(0)  # CPython 3.12 may not see a pending call before it takes its lock again.


@dataclass
class Pair:
    """Two engines that have met: `a` has connected to `b`."""

    a: weft.Engine
    b: weft.Engine
    to_b: weft.Peer
    to_a: weft.Peer

    def granted(self, memory: Any, rights: weft.Rights) -> tuple[weft.Segment, weft.Remote]:
        """Memory of b, and what a has of it."""
        segment = self.b.add(memory)
        return segment, self.a.import_grant(segment.grant(rights).blob)


@contextlib.contextmanager
def pair(provider: str, **options: Any) -> Iterator[Pair]:
    with (
        weft.Engine(providers=[provider], **options) as b,
        weft.Engine(providers=[provider], listen="", **options) as a,
    ):
        yield Pair(a, b, a.connect(b.address), b.accept())


def built(folder: Path, source: str) -> str:
    """A shared library of a file of tests/python/programs."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    library = folder / (source + ".so")
    path = Path(__file__).parent / "programs" / source
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, path], check=True, timeout=60)
    return str(library)


def start(program: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Runs a program of tests/python/programs."""
    path = Path(__file__).parent / "programs" / program
    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", str(path), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def finish(process: subprocess.Popen[str], timeout: float = 60) -> str:
    """Its output; it must have ended well."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"it hangs: {out}{err}") from None
    assert process.returncode == 0, f"{process.returncode}: {out}{err}"
    return out


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()
