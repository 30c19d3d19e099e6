"""What is measured at a time, and how long its parts may take."""

import re
from dataclasses import dataclass

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
NAMES = {"K": "KiB", "M": "MiB", "G": "GiB"}

# What a peer is measured for.
ALONE, TOGETHER = "bandwidth of one in flight", "bandwidth of several in flight"
BANDWIDTH = (ALONE, TOGETHER)
LATENCY = "latency"
ALL = (*BANDWIDTH, LATENCY)


def parse_bytes(text):
    match = re.fullmatch(r"([1-9][0-9]*)([KMG]?)", text)
    if match is None:
        raise ValueError(f"'{text}' is no size such as 64K")
    return int(match[1]) * UNITS[match[2]]


def show_bytes(count):
    for unit in "GMK":
        if count % UNITS[unit] == 0:
            return f"{count // UNITS[unit]} {NAMES[unit]}"
    return f"{count} B"


@dataclass(frozen=True)
class Cell:
    """Writes of one size, so many in flight."""

    size: int
    window: int
    count: int

    @property
    def bytes(self):
        return self.size * self.count

    @property
    def figure(self):
        """What peers are measured for in it."""
        return ALONE if self.window == 1 else TOGETHER

    @property
    def title(self):
        return f"{show_bytes(self.size)}, {self.window} in flight"


@dataclass(frozen=True)
class Took:
    """What the writes of a cell took."""

    seconds: float
    # Seconds that the CPUs of both sides were busy for each GB (10^9 bytes); None: not known.
    cpu: float | None = None


def cells_of(sizes, windows, total_bytes):
    """Each moves about as many bytes, and uses each slot of its window twice at least."""
    return [Cell(size, window, max(total_bytes // size, 2 * window))
            for window in windows for size in sizes]
