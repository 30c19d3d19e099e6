"""The examples of the pages do what they say, and their types are right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import weft

EXAMPLES = Path(__file__).parents[2] / "tools/docs/examples"
PROGRAMS = {
    "prefill_decode.py": "the same tokens as in one process",
    "prefill_decode_asyncio.py": "the same tokens as in one process",
    "page_server.py": "10 pages put, 8 of them still there",
    "weights.py": "3 steps in 2 ranks: every byte is right",
}


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=80, cwd=EXAMPLES
    )


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_runs(program: str) -> None:
    ended = run(program)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == PROGRAMS[program]


def test_types() -> None:
    pytest.importorskip("mypy")
    if not Path(weft.__file__).with_name("_weft.pyi").is_file():
        pytest.skip("a build with a sanitizer has no stubs")
    ended = run("-m", "mypy", "--strict", "--cache-dir=/dev/null", *PROGRAMS)
    assert ended.returncode == 0, ended.stdout + ended.stderr
