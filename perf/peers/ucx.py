"""UCX, by its own ucx_perftest."""

import re
import shutil
import socket
import time

from cell import ALL, Took
from children import Failed, output_of, said_by, started

# Puts go straight into memory that UCX allocates and maps (posix); cma carries what is not mapped.
TRANSPORTS = {"tcp": {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"},
              "shm": {"UCX_TLS": "posix,sysv,cma,self"},
              "gpu": {"UCX_TLS": "cuda_copy,cuda_ipc,posix,sysv,self"},
              "gpu-tcp": {"UCX_TLS": "cuda_copy,tcp", "UCX_NET_DEVICES": "lo"}}
# Bandwidth, latency, and what is set for them. Large messages are fetched by the receiver, or put.
WAYS = {"put": ("ucp_put_bw", "ucp_put_lat", {}), "tag": ("tag_bw", "tag_lat", {}),
        "tag-put": ("tag_bw", "tag_lat", {"UCX_RNDV_SCHEME": "put_zcopy"})}
QUIET = {"UCX_WARN_UNUSED_ENV_VARS": "n", "UCX_LOG_LEVEL": "error"}
PERCENTILES = (50, 99)
MEBIBYTE = 1 << 20  # UCX's "MB".


def parse_csv(text):
    """The figures of `ucx_perftest -f -v`, by the names in its heading."""
    lines = [line.strip() for line in text.splitlines()]
    headings = [at for at, line in enumerate(lines) if line.startswith("iterations,")]
    if not headings or headings[-1] + 1 >= len(lines):
        raise Failed("ucx_perftest printed no figures")
    names, values = (lines[headings[-1] + step].split(",") for step in (0, 1))
    if len(names) != len(values):
        raise Failed("ucx_perftest printed figures without names")
    try:
        return {name: float(value) for name, value in zip(names, values)}
    except ValueError as error:
        raise Failed(f"ucx_perftest printed what is no figure: {error}") from None


def parse_version(text):
    match = re.search(r"(?:Library version|Version):? ([0-9.]+)", text)
    return match[1] if match else "unknown"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Ucx:
    """ucx_perftest keeps one buffer on each side, however many operations are in flight."""

    software, checks = "ucx", None

    def __init__(self, fabric, way, figures=ALL):
        self.name, self.figures = f"ucx-{way}", figures
        self.bandwidth_test, self.latency_test, settings = WAYS[way]
        self.environment = {**TRANSPORTS[fabric], **settings, **QUIET}

    def start(self, memory_bytes):
        del memory_bytes
        for program in ("ucx_perftest", "stdbuf"):
            if shutil.which(program) is None:
                raise Failed(f"there is no {program}; the package ucx-utils (coreutils) has it")

    def version(self):
        return parse_version(said_by("ucx_info", "-v"))

    def run(self, test, size, count, limit, *options):
        # Its own line says when the server listens; unbuffered, since that is waited for.
        port = str(free_port())
        server = ["stdbuf", "-oL", "ucx_perftest", "-p", port, "-f"]
        client = ["ucx_perftest", "127.0.0.1", "-p", port, "-t", test, "-s", str(size), "-n",
                  str(count), "-w", str(min(1000, max(2, count // 10))), "-m", "host", "-f", "-v",
                  *options]
        with started(server, self.environment) as target:
            target.line_with("Waiting for connection", time.monotonic() + limit)
            return parse_csv(output_of(client, limit, self.environment))

    def measure(self, cell, limit):
        figures = self.run(self.bandwidth_test, cell.size, cell.count, limit, "-O", str(cell.window))
        return Took(cell.bytes / (figures["overall_bw"] * MEBIBYTE))

    def latency(self, cell, limit):
        """Microseconds of half a round trip: p50, p99."""
        return tuple(
            self.run(self.latency_test, cell.size, cell.count, limit, "-R", str(rank))
            [f"{rank}.0_percentile_lat"] for rank in PERCENTILES)

    def end(self):
        pass
