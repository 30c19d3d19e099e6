"""All that is measured on each fabric."""

import os

from driven import Driven
from ucx import TRANSPORTS, Ucx
from weft import Ceiling, Weft

FABRICS = ("tcp", "shm")


def peers_of(fabric, perf, venv):
    if fabric == "tcp":
        return [Weft(perf, fabric, "own"), Ucx(fabric, "put"), Ucx(fabric, "tag"),
                Driven("nixl-ucx", venv, "nixl", "UCX", TRANSPORTS[fabric]),
                Driven("nixl-libfabric", venv, "nixl", "LIBFABRIC", {"FI_PROVIDER": "tcp"}),
                Driven("mooncake", venv, "mooncake", "tcp",
                       {"MC_TCP_ENABLE_CONNECTION_POOL": "1"}),
                Ceiling(perf, fabric, "socket")]
    return [Weft(perf, fabric, "own"), Weft(perf, fabric, "shared"), Ucx(fabric, "put"),
            Ucx(fabric, "tag"), Driven("nixl-ucx", venv, "nixl", "UCX", TRANSPORTS[fabric]),
            Ceiling(perf, fabric, "memcpy"), Ceiling(perf, fabric, f"memcpy:{os.cpu_count()}")]
