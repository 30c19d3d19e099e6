"""Weft, by its own weft-perf, and the ceilings that weft-perf measures."""

import json
import os
import re
from dataclasses import replace

from cell import ALL, BANDWIDTH, Took
from children import Failed, output_of, said_by

WARM_UP = "0.05"
CEILING_SECONDS = "0.1"
ONE_BUFFER = "--one-buffer"


class WeftPerf:
    def __init__(self, build):
        self.path = os.path.join(build, "perf", "weft-perf", "weft-perf")
        if not os.access(self.path, os.X_OK):
            raise Failed(f"there is no {self.path}: ninja -C {build} perf/weft-perf/weft-perf")
        self.help = output_of([self.path, "--help"], limit=10)

    def point(self, provider, cell, limit, *options):
        """What the JSON of a run says of its only point."""
        said = json.loads(output_of(
            [self.path, "--local", "--providers", provider, "--operation", "write",
             "--size", str(cell.size), "--window", str(cell.window), "--repeats", "1",
             "--timeout", str(limit), "--progress", "never", "--json", "-", *options], 3 * limit))
        return said["points"][0]

    def knows(self, options):
        """Whether its help has each option, with the word that is given to it, if any is.

        There N stands for the number in a word such as gpu:0."""
        asked = re.sub(r":\d+\b", ":N", " ".join(options))
        given = re.findall(r"(--\S+)(?: (?!--)(\S+))?", asked)
        # An option's text goes on in lines that do not begin with another one.
        return all(re.search(rf"^ *{name} [^\n]*(\n {{9,}}[^\n]*)*?\b{re.escape(word)}\b", self.help,
                             re.MULTILINE) for name, word in given)


class Weft:
    """Writes over a provider, with options that this weft-perf needs to know, and others."""

    software = "weft"
    checks = "every byte"

    def __init__(self, perf, provider, name, needs, options, figures=ALL):
        self.perf, self.provider, self.name, self.needs = perf, provider, name, needs
        self.options = [*needs, *options]
        self.figures = figures

    def start(self, memory_bytes):
        del memory_bytes
        if not self.perf.knows(self.needs):
            raise Failed(f"this weft-perf does not know {' '.join(self.needs)}")

    def version(self):
        root = os.path.dirname(os.path.abspath(__file__))
        return said_by("git", "-C", root, "describe", "--always", "--dirty") or "unknown"

    def measure(self, cell, limit):
        point = self.perf.point(self.provider, cell, limit, *self.options, "--warm-up", WARM_UP,
                                "--count", str(cell.count), "--time", str(limit))
        run = point["runs"][0]
        return Took(run["seconds"] * cell.bytes / run["bytes"],
                    (run["cpu_seconds"] + run["peer_cpu_seconds"]) / run["bytes"] * 1e9)

    def check(self, cell, limit):
        point = self.perf.point(self.provider, cell, limit, *self.options, "--verify", "--warm-up",
                                "0", "--count", str(cell.window), "--time", str(limit))
        buffers = 1 if ONE_BUFFER in self.options else cell.window
        if point["bytes_wrong"] != 0 or point["bytes_checked"] < cell.size * buffers:
            raise Failed(f"{point['bytes_wrong']} bytes of {point['bytes_checked']} are wrong")

    def latency(self, cell, limit):
        """Microseconds from the begin of a write until it is done: p50, p99."""
        found = self.perf.point(self.provider, cell, limit, *self.options, "--warm-up", WARM_UP,
                                "--count", str(cell.count), "--time", str(limit))["latency_ns"]
        return found["p50"] / 1e3, found["p99"] / 1e3

    def end(self):
        pass


class Ceiling:
    """What the machine gives without a library: memcpy, or a plain TCP stream."""

    software = checks = None
    figures = BANDWIDTH

    def __init__(self, perf, fabric, baseline):
        self.perf, self.fabric, self.name = perf, fabric, baseline

    def start(self, memory_bytes):
        pass

    def measure(self, cell, limit):
        # Each thread copies memory of its own: together they touch as much as a transfer does.
        threads = int(self.name.partition(":")[2] or 1)
        cell = replace(cell, window=max(1, cell.window // threads))
        point = self.perf.point(self.fabric, cell, limit, "--baseline", self.name, "--warm-up", "0",
                                "--count", "1", "--time", CEILING_SECONDS)
        speed = point["baselines"][self.name]["gigabytes_per_second"][0]
        return Took(cell.bytes / speed / 1e9)

    def end(self):
        pass
