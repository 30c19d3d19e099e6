"""How a test in a virtual machine ends, as Meson understands it."""

import signal
import subprocess
import sys

from kernel import Missing
from machine import Infrastructure

PASSED, FAILED, SKIPPED, BROKEN = 0, 1, 77, 99


def of(main, arguments):
    """Runs `main` and returns the exit code: it passed, it failed, it could not be run here, or the
    machinery broke and nothing is known."""
    # Meson ends a test that takes too long by a signal; what is open is to be closed then too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(BROKEN))
    try:
        return PASSED if main(arguments) == 0 else FAILED
    except Missing as missing:
        print(f"skipped: {missing}")
        return SKIPPED
    except (Infrastructure, subprocess.SubprocessError, OSError) as error:
        print(f"no result: {error}")
        return BROKEN
