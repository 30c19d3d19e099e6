"""How a test in a virtual machine ends, as Meson understands it."""

import subprocess

from kernel import Missing
from machine import Infrastructure

PASSED, FAILED, SKIPPED, BROKEN = 0, 1, 77, 99


def of(main, arguments):
    """Runs `main` and returns the exit code: it passed, it failed, it could not be run here, or the
    machinery broke and nothing is known."""
    try:
        return PASSED if main(arguments) == 0 else FAILED
    except Missing as missing:
        print(f"skipped: {missing}")
        return SKIPPED
    except (Infrastructure, subprocess.SubprocessError, OSError) as error:
        print(f"no result: {error}")
        return BROKEN
