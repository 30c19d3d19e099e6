"""All that is measured on each fabric."""

import os

from cell import BANDWIDTH, LATENCY, TOGETHER
from driven import Driven
from engines import Mooncake, NixlUcx, nixls
from ucx import Ucx
from weft_perf import ONE_BUFFER, Ceiling, Weft

# With the provider by which Weft goes. Over gpu-tcp the memory of a GPU goes as it does between hosts
# whose NICs can't reach it.
FABRICS = {"tcp": "tcp", "shm": "shm", "gpu": "shm", "gpu-tcp": "tcp"}
USUAL_FABRICS = ("tcp", "shm")
SHARED = ["--memory", "shared"]
GPU = ["--memory", "gpu:0"]
# By name. Over shm the kind of memory decides whether the kernel or a thread copies.
MEMORIES = {"tcp": {"weft": []}, "shm": {"weft-own": [], "weft-shared": SHARED},
            "gpu": {"weft": GPU}, "gpu-tcp": {"weft": [*GPU, "--gpu-path", "staged"]}}
MANUAL = ["--engine-progress", "manual"]


def wefts(fabric, perf, variants):
    """As it comes, and with further options for weft-perf, by name."""
    for name, needs in MEMORIES[fabric].items():
        yield Weft(perf, FABRICS[fabric], name, needs, [])
        for variant, options in variants:
            yield Weft(perf, FABRICS[fabric], f"{name}-{variant}", needs, options)
        yield Weft(perf, FABRICS[fabric], f"{name}-manual", needs + MANUAL, [], (LATENCY,))


def like_ucx(fabric, perf):
    """With one buffer on each side, as ucx_perftest has it."""
    name, needs = list(MEMORIES[fabric].items())[-1]
    return Weft(perf, fabric, f"{name}-one-buffer", [*needs, ONE_BUFFER], [], (TOGETHER,))


def peers_of(fabric, perf, settings):
    if fabric.startswith("gpu"):
        return [*wefts(fabric, perf, settings.also),
                Driven("nixl-ucx", settings.venv, NixlUcx(fabric), "gpu")]
    ours = [*wefts(fabric, perf, settings.also), like_ucx(fabric, perf)]
    nixl = [Driven(name, settings.venv, engine) for name, engine in nixls(fabric, settings).items()]
    if fabric == "tcp":
        # Puts over tcp UCX makes of small messages: those are the slowest of its ways.
        return [*ours, Ucx(fabric, "put", (LATENCY,)), Ucx(fabric, "tag"),
                Ucx(fabric, "tag-put", BANDWIDTH), *nixl,
                Driven("mooncake", settings.venv, Mooncake()), Ceiling(perf, fabric, "socket")]
    return [*ours, Ucx(fabric, "put"), Ucx(fabric, "tag"), *nixl,
            Ceiling(perf, fabric, "memcpy"), Ceiling(perf, fabric, f"memcpy:{os.cpu_count()}")]
