"""Ctrl-C stays Python's."""

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Debian's libfabric loads a library for Omni-Path NICs, which installs handlers that end the
    process. Where libfabric is linked, that happens as the extension is imported."""
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    yield
    if threading.current_thread() is threading.main_thread():  # Python allows no other.
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)
