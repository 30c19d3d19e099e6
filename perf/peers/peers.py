"""All that is measured on each fabric."""

import os

from driven import Driven
from ucx import TRANSPORTS, Ucx
from weft import Ceiling, Weft

FABRICS = ("tcp", "shm")


def wefts(perf, fabric, variants):
    """As it comes, and with further options for weft-perf, by name."""
    memories = {"tcp": {"": "own"}, "shm": {"-own": "own", "-shared": "shared"}}[fabric]
    return [Weft(perf, fabric, memory, f"weft{kind}{'-' if variant else ''}{variant}", options)
            for variant, options in [("", []), *variants] for kind, memory in memories.items()]


def peers_of(fabric, perf, venv, variants):
    ours = wefts(perf, fabric, variants)
    nixl = Driven("nixl-ucx", venv, "nixl", "UCX", TRANSPORTS[fabric])
    if fabric == "tcp":
        return [*ours, Ucx(fabric, "put"), Ucx(fabric, "tag"), nixl,
                Driven("nixl-libfabric", venv, "nixl", "LIBFABRIC", {"FI_PROVIDER": "tcp"}),
                Driven("mooncake", venv, "mooncake", "tcp",
                       {"MC_TCP_ENABLE_CONNECTION_POOL": "1"}),
                Ceiling(perf, fabric, "socket")]
    return [*ours, Ucx(fabric, "put"), Ucx(fabric, "tag"), nixl, Ceiling(perf, fabric, "memcpy"),
            Ceiling(perf, fabric, f"memcpy:{os.cpu_count()}")]
