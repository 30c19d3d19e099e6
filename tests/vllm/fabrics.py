"""What carries the bytes: for each fabric, what engines find in their environment."""

import contextlib
import json
import os
import sys
import time
from dataclasses import dataclass

from processes import Child

NICS = 4
NICS_USED = 2  # At least: which of the four carry what, their queues decide.
DEVICE_SECONDS = 60
SKIPPED = 77
TELL = ("import json, os, sys; print(json.dumps(dict(os.environ)), flush=True); "
        "sys.stdin.read()")


class Skipped(Exception):
    """What can't be tested here."""


@dataclass
class Fabric:
    name: str
    providers: tuple  # That may carry bytes, as Weft's metrics name them.
    nics: int         # So many must, at least.
    variables: dict
    counted: bool = True  # By Weft.


# libfabric has some in several ways.
WAYS = {"tcp": ("net", "tcp", "tcp;ofi_rxm"), "shm": ("shm",), "efa": ("efa", "efa-direct")}


@contextlib.contextmanager
def of_host(name, build):
    del build
    yield Fabric(name, WAYS[name], 1, {"WEFT_PROVIDERS": name})


@contextlib.contextmanager
def simulated_efa(name, build):
    """libfabric's efa provider over a software device, which lives as long as this."""
    program = os.path.join(build, "tests", "efa_sim", "with-efa")
    if not os.access(program, os.X_OK):
        raise Skipped(f"there is no {program}: the simulated EFA takes a build with tests, and the "
                      "headers of libibverbs")
    device = Child([program, "--nics", str(NICS), "--fault", "send_queue=512,receive_queue=1024",
                    "--", sys.executable, "-c", TELL])
    try:
        variables = environment_told_by(device)
        yield Fabric(name, WAYS[name], NICS_USED, {**variables, "WEFT_PROVIDERS": "efa"})
    finally:
        device.process.stdin.close()
        with contextlib.suppress(Exception):
            device.process.wait(DEVICE_SECONDS)  # It removes what it has in shared memory.
        device.end()


def environment_told_by(device):
    """What with-efa sets besides what is set anyway."""
    try:
        told = json.loads(device.line(time.monotonic() + DEVICE_SECONDS))
    except Exception:
        if device.process.wait(DEVICE_SECONDS) == SKIPPED:
            raise Skipped(str(device.failed("skips"))) from None
        raise
    return {key: value for key, value in told.items() if os.environ.get(key) != value}


@contextlib.contextmanager
def of_another(name, build):
    """Whatever a backend chooses that is not Weft's."""
    del build
    yield Fabric(name, (), 0, {}, counted=False)


FABRICS = {"tcp": of_host, "shm": of_host, "efa": simulated_efa}


def opened(name, build):
    return FABRICS.get(name, of_another)(name, build)
