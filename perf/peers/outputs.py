"""What a command tells meanwhile, and the files that results are written to."""

import os
import sys

from children import Failed


def tell(text):
    print(text, file=sys.stderr, flush=True)


def interrupt(*_):
    """For signals that are to end a command as Ctrl-C does."""
    raise KeyboardInterrupt


def check_writable(paths):
    """Before minutes are spent on measuring; those that were not asked for are empty."""
    for path in filter(None, paths):
        place = path if os.path.exists(path) else os.path.dirname(os.path.abspath(path))
        if os.path.isdir(path) or not os.access(place, os.W_OK):
            raise Failed(f"{path} can't be written")


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
