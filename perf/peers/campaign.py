"""One fabric's peers from their start to their end: contents, bandwidth in turn, latency."""

import random
import time
from dataclasses import asdict, dataclass, field

from cell import LATENCY, Cell
from children import Failed


def turns(cells, peers, rounds, seed):
    """(round, cell, peer) of all measurements. In each round each cell meets each peer once."""
    dice = random.Random(seed)
    for number in range(rounds):
        for cell in dice.sample(cells, len(cells)):
            for peer in dice.sample(peers, len(peers)):
                yield number, cell, peer


MOST_FAILURES = 3
# What a peer's program prints, or does not, may be read wrongly too.
FAILURES = (Failed, ArithmeticError, LookupError, ValueError)


def why(failure):
    return str(failure) if isinstance(failure, Failed) else f"{type(failure).__name__}: {failure}"


@dataclass
class Results:
    software: dict = field(default_factory=dict)    # Its version.
    checked: list = field(default_factory=list)     # Peers and cells whose every byte was compared.
    samples: list = field(default_factory=list)
    latencies: list = field(default_factory=list)
    skipped: list = field(default_factory=list)
    failures: list = field(default_factory=list)


class Campaign:
    """No round begins that would not end by `until`."""

    def __init__(self, fabric, peers, cells, settings, results, tell, until):
        self.fabric, self.peers, self.cells = fabric, peers, cells
        self.settings, self.results, self.tell = settings, results, tell
        self.until = until
        self.memory_bytes = max(settings.latency_size,
                                *(cell.size * cell.window for cell in cells))
        self.failed = {}  # So often, by peer.

    def run(self):
        try:
            self._start_all()
            self._check_all()
            self._measure_all()
            self._measure_latencies()
        finally:
            for peer in self.peers:
                peer.end()

    def _start_all(self):
        present = []
        for peer in self.peers:
            try:
                peer.start(self.memory_bytes)
            except FAILURES as failure:
                peer.end()
                self.tell(f"{self.fabric}: without {peer.name}: {why(failure)}")
                self.results.skipped.append(
                    {"fabric": self.fabric, "peer": peer.name, "why": why(failure)})
                continue
            present.append(peer)
            if peer.software:
                self.results.software[peer.software] = peer.version()
        self.peers = present

    def _attempt(self, peer, cell, what, work):
        """What work gives, or None; a peer that fails again and again is left out."""
        if self.failed.get(peer.name, 0) >= MOST_FAILURES:
            return None
        try:
            return work()
        except FAILURES as failure:
            self.tell(f"{self.fabric}, {cell.title}: {what} of {peer.name} has failed: "
                      f"{why(failure)}")
            self.results.failures.append({"fabric": self.fabric, "peer": peer.name, **asdict(cell),
                                          "what": what, "why": why(failure)})
        self.failed[peer.name] = self.failed.get(peer.name, 0) + 1
        self._restart(peer)
        return None

    def _restart(self, peer):
        peer.end()
        try:
            if self.failed[peer.name] < MOST_FAILURES:
                peer.start(self.memory_bytes)
                return
        except FAILURES:
            peer.end()
            self.failed[peer.name] = MOST_FAILURES
        self.tell(f"{self.fabric}: {peer.name} is left out from here on")

    def _check_all(self):
        for peer in (each for each in self.peers if each.checks):
            cells = [cell for cell in self.cells if cell.figure in peer.figures]
            if cells:
                self.tell(f"{self.fabric}: comparing what {peer.name} moves")
            for cell in cells:
                def check(peer=peer, cell=cell):
                    peer.check(cell, self.settings.limit)
                    self.results.checked.append(
                        {"fabric": self.fabric, "peer": peer.name, **asdict(cell)})
                self._attempt(peer, cell, "a check", check)

    def _measure_all(self):
        started = time.monotonic()
        order = [(number, cell, peer) for number, cell, peer
                 in turns(self.cells, self.peers, self.settings.rounds, self.settings.seed)
                 if cell.figure in peer.figures]
        each_round = len(order) // self.settings.rounds
        for done, (number, cell, peer) in enumerate(order):
            if done and done % each_round == 0:
                used = time.monotonic() - started
                self.tell(f"{self.fabric}: round {number} of {self.settings.rounds} done, about "
                          f"{used / done * (len(order) - done):.0f} s to go")
                if time.monotonic() + used / number > self.until:
                    self.tell(f"{self.fabric}: no time for more rounds")
                    break
            took = self._attempt(peer, cell, "a measurement",
                                 lambda p=peer, c=cell: p.measure(c, self.settings.limit))
            if took is not None:
                self.results.samples.append(
                    {"fabric": self.fabric, "peer": peer.name, "round": number, **asdict(cell),
                     "seconds": took.seconds,
                     "gigabytes_per_second": cell.bytes / took.seconds / 1e9,
                     "cpu_seconds_per_gigabyte": took.cpu})

    def _measure_latencies(self):
        cell = Cell(self.settings.latency_size, 1, self.settings.latency_count)
        peers = [peer for peer in self.peers if LATENCY in peer.figures]
        self.tell(f"{self.fabric}: latency")
        for number, _, peer in turns([cell], peers, self.settings.rounds, self.settings.seed):
            found = self._attempt(peer, cell, "a latency",
                                  lambda p=peer: p.latency(cell, self.settings.limit))
            if found is not None:
                self.results.latencies.append(
                    {"fabric": self.fabric, "peer": peer.name, "round": number, **asdict(cell),
                     "p50_us": found[0], "p99_us": found[1]})
