"""Peers whose two sides are scripts of ours that stay for all measurements of a fabric."""

from cell import ALL, BANDWIDTH, Took
from pair import Pair
from spread import quantile


class Driven(Pair):
    checks = "every byte"

    def __init__(self, name, venv, engine, memory="host"):
        super().__init__(name, venv, engine.script, engine, memory)
        self.software = engine.software
        self.figures = BANDWIDTH if engine.done_early else ALL

    def write(self, cell, count, limit):
        return self.initiator.ask(2 * limit, "write", size=cell.size, window=cell.window,
                                  count=count, limit=limit)

    def measure(self, cell, limit):
        seconds, cpu = self.in_its_turn(lambda: self.timed(cell, limit))
        # The window is filled once before the writes that are timed.
        return Took(seconds, cpu / (cell.size * (cell.count + cell.window) / 1e9))

    def timed(self, cell, limit):
        before = self.cpu(limit)
        seconds = self.write(cell, cell.count, limit)
        return seconds, self.cpu(limit) - before

    def cpu(self, limit):
        """Seconds that both sides have computed so far."""
        return sum(child.ask(limit, "cpu") for child in self.children)

    def latency(self, cell, limit):
        """Microseconds from the begin of a write until a poll finds it done: p50, p99."""
        seconds = self.in_its_turn(lambda: self.initiator.ask(
            2 * limit, "latencies", size=cell.size, count=cell.count, limit=limit))
        return tuple(quantile(seconds, part) * 1e6 for part in (0.5, 0.99))

    def check(self, cell, limit):
        """Writes from each slot and compares all that came."""
        self.in_its_turn(lambda: self.compared(
            cell.size * cell.window, limit, lambda: self.write(cell, cell.window, limit)))
