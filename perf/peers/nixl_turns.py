"""NIXL's backends on one fabric, from their start to their end: contents, then figures in turn."""

from dataclasses import dataclass, field

from campaign import FAILURES, why
from turns import turns


@dataclass
class Found:
    version: str = ""                             # NIXL's
    samples: list = field(default_factory=list)
    failures: list = field(default_factory=list)  # A backend that fails is left out from there on.


class Turns:
    def __init__(self, fabric, pairs, figures, settings, found, tell):
        self.fabric, self.pairs, self.figures = fabric, pairs, figures
        self.settings, self.found, self.tell = settings, found, tell

    def run(self):
        order = list(turns(self.figures, self.pairs, self.settings.rounds, self.settings.seed))
        memory_bytes = max(figure.bytes for figure in self.figures)
        try:
            for pair in list(self.pairs):
                self._attempt(pair, lambda p=pair: self._start(p, memory_bytes))
            for number, figure, pair in order:
                if pair in self.pairs:
                    self._attempt(pair, lambda n=number, f=figure, p=pair: self._take(n, f, p))
        finally:
            for pair in self.pairs:
                pair.end()

    def _attempt(self, pair, work):
        try:
            work()
        except FAILURES as failure:
            pair.end()
            self.pairs.remove(pair)
            self.tell(f"{self.fabric}: without {pair.name}: {why(failure)}")
            self.found.failures.append(
                {"fabric": self.fabric, "peer": pair.name, "why": why(failure)})

    def _start(self, pair, memory_bytes):
        pair.start(memory_bytes)
        self.found.version = pair.version()
        self.tell(f"{self.fabric}: comparing what {pair.name} moves")
        for figure in self.figures:
            if figure.check:
                pair.in_its_turn(lambda f=figure: f.check(pair, self.settings.limit))

    def _take(self, number, figure, pair):
        taken = pair.in_its_turn(lambda: figure.measure(pair, self.settings.limit, number))
        self.found.samples += [
            {"fabric": self.fabric, "peer": pair.name, "round": number, "of": what,
             "seconds": seconds} for what, seconds in taken.items()]
