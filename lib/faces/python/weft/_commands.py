"""The programs of the wheel, which lie beside this file."""

import os
import sys


def _become(name: str) -> None:
    program = os.path.join(os.path.dirname(__file__), "bin", name)
    os.execv(program, [program, *sys.argv[1:]])


def weft() -> None:
    _become("weft")


def weft_perf() -> None:
    _become("weft-perf")
