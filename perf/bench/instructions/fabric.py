"""Instructions and rings of the doorbell that a write takes over a NIC: by a plain libfabric loop,
as fabtests' fi_rma_bw makes it, and by an engine that its caller drives.

callgrind counts, so that a loaded machine counts as a quiet one does. Looks that find nothing are
not counted, nor is what a simulated NIC does (tests/efa_sim). Needs valgrind. Over the simulated one:

    with-efa -- python3 fabric.py weft-fabric-loop
"""

import argparse
import collections
import contextlib
import json
import select
import shutil
import subprocess
import sys

import callgrind

SKIPPED = 77
PATIENCE = 120  # Seconds that a count may take.
IDLE_LOOKS = 100

PLAIN, ENGINE = "libfabric", "Weft"
# How the loop is told who writes.
WAYS = {PLAIN: "plain", ENGINE: "engine"}

# By the file that a function is in. libefa is the driver's half of the NIC, the real one's too.
PARTS = {"ours": ["weft-fabric-loop", "libweft."], "libfabric": ["libfabric."],
         "NIC": ["libweft-efa-shim", "libefa", "libibverbs"]}
# Of the simulated NIC: it rings at the end of a batch of posts.
RING = "weft::efa_sim::(anonymous namespace)::complete(ibv_qp_ex*)"

Point = collections.namedtuple("Point", "size pieces window")
# Transfers of one write, and of many that lie apart.
POINTS = [Point(size, 1, window) for size in ("16K", "64K", "256K", "1M") for window in (1, 16)]
POINTS += [Point("16K", 16, 1), Point("16K", 256, 1), Point("64K", 256, 1)]
# One of each kind, for a quick look.
FEW = [Point("64K", 1, 1), Point("16K", 256, 1)]


def part_of(function, place):
    """None: that of its callers, as of the libraries of C and C++."""
    if function.startswith("std::"):
        return None
    for part, files in PARTS.items():
        if any(place.startswith(file) for file in files):
            return part
    return None


def parts_of(costs):
    return callgrind.by_stage(costs, lambda name: part_of(name, costs.places.get(name) or ""))


@contextlib.contextmanager
def target(loop, *arguments):
    """The address of an engine that may be written to."""
    with subprocess.Popen([loop, "--serve", *arguments], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as serving:
        try:
            if not select.select([serving.stdout], [], [], PATIENCE)[0]:
                raise TimeoutError("the target did not say its address")
            yield serving.stdout.readline().strip()
            serving.stdin.close()
            serving.wait(timeout=PATIENCE)
        finally:
            serving.kill()


def count(loop, way, point, transfers, address):
    """Instructions of a write by part, and rings."""
    # A plain loop knows no transfers: what is in flight is as much.
    pieces = 1 if way == PLAIN else point.pieces
    window = min(point.window * point.pieces, 64) if way == PLAIN else point.window
    writes = transfers * point.pieces
    arguments = ["--way", WAYS[way], "--size", point.size, "--pieces", str(pieces),
                 "--window", str(window), "--target", address]
    counted, looks = callgrind.count(loop, *arguments, "--transfers", str(writes // pieces),
                                     within="measured_loop", timeout=PATIENCE)
    idle, _ = callgrind.count(loop, *arguments, "--transfers", str(IDLE_LOOKS), "--idle",
                              within="idle_loop", timeout=PATIENCE)
    parts, nothing = parts_of(counted), parts_of(idle)
    figures = {part: (parts[part] - int(looks) * nothing[part] / IDLE_LOOKS) / writes
               for part in PARTS}
    # Calls are counted throughout, and so in the two windows that warm up.
    figures["rings"] = counted.times[RING] / (writes + 2 * window * pieces)
    return figures


def measure(loop, point, transfers):
    shape = ["--size", point.size, "--pieces", str(point.pieces), "--window", str(point.window)]
    with target(loop, *shape) as address:
        return {way: count(loop, way, point, transfers, address) for way in WAYS}


def cost(figures):
    return figures["ours"] + figures["libfabric"]


def print_row(point, measured):
    words = []
    for way in WAYS:
        each = measured[way]
        words.append(f"{each['ours']:>8.0f} + {each['libfabric']:>5.0f} {each['rings']:>6.2f}")
    ratio = cost(measured[ENGINE]) / cost(measured[PLAIN])
    print(f"{point.size:>5}{point.pieces:>7}{point.window:>7} " + "   ".join(words)
          + f"{ratio:>8.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loop", help="weft-fabric-loop")
    parser.add_argument("--few", action="store_true", help="two points")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed")
        return SKIPPED
    if not options.json:
        print("A write takes: instructions of the loop's or Weft's + those of libfabric, rings.\n")
        print(f"{'size':>5}{'pieces':>7}{'window':>7} {PLAIN:>23}   {ENGINE:>23}   ratio")
    rows = []
    for point in FEW if options.few else POINTS:
        measured = measure(options.loop, point, 20 if point.pieces > 16 else 100)
        rows.append({"point": point._asdict(), "measured": measured})
        if not options.json:
            print_row(point, measured)
    if options.json:
        print(json.dumps(rows, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
