"""Files that results are written to."""

import os

from children import Failed


def check_writable(paths):
    """Before minutes are spent on measuring; those that were not asked for are empty."""
    for path in filter(None, paths):
        place = path if os.path.exists(path) else os.path.dirname(os.path.abspath(path))
        if os.path.isdir(path) or not os.access(place, os.W_OK):
            raise Failed(f"{path} can't be written")


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
