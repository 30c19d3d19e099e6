"""Stands in for NIXL's Python API where weft nixl status is tested: plug-ins are files that are
only mapped, and transfers are copies.

STAND_IN_FAULT names what goes wrong.
"""

import ctypes
import mmap
import os
import re
import signal

FAULT = os.environ.get("STAND_IN_FAULT", "")
MODULE = __name__.split(".", maxsplit=1)[0]
SITE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLUGINS = os.environ.get("NIXL_PLUGIN_DIR") or os.path.join(
    SITE, f".{MODULE}.mesonpy.libs", "plugins")

print("what a library prints to standard output")
if FAULT == f"import {MODULE}":
    raise ImportError("no libcudart")


class nixl_agent_config:
    def __init__(self, backends):
        self.backends = backends


class Transfer:
    def __init__(self, source, target):
        self.source, self.target = source, target
        self.looks = 0

    def move(self):
        memory = bytearray(ctypes.string_at(*self.source[:2]))
        if FAULT == "wrong byte":
            memory[-1] ^= 1
        ctypes.memmove(self.target[0], bytes(memory), len(memory))


class nixl_agent:
    def __init__(self, name, config):
        if config.backends:
            raise ValueError("an agent without backends was to be asked for")
        self.name = name
        self.mapped = {}
        self.regions = []

    def get_plugin_list(self):
        found = (re.fullmatch(r"libplugin_(\w+)\.so", file) for file in os.listdir(PLUGINS))
        return sorted(each[1] for each in found if each)

    def create_backend(self, name):
        if FAULT == "refuse":
            os.write(2, b"weft error: no EFA here\n")
            raise RuntimeError("NIXL_ERR_BACKEND")
        if FAULT == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if FAULT == "hang":
            signal.pause()
        file = "POSIX" if FAULT == "other file" else name
        with open(os.path.join(PLUGINS, f"libplugin_{file}.so"), "rb") as plugin:
            self.mapped[name] = mmap.mmap(plugin.fileno(), 0, prot=mmap.PROT_READ)

    def get_backend_mem_types(self, name):
        return ["DRAM_SEG"] if name in self.mapped else []

    def register_memory(self, regions, kind, backends):
        self.check(kind, backends)
        self.regions = [region[:3] for region in regions]
        return regions

    def deregister_memory(self, registered, backends):
        self.check("DRAM", backends)
        if [region[:3] for region in registered] != self.regions:
            raise ValueError("other memory was registered")

    def get_xfer_descs(self, regions, kind):
        self.check(kind, [])
        return regions

    def initialize_xfer(self, operation, local, remote, agent, backends):
        self.check("DRAM", backends)
        if operation != "WRITE" or agent != self.name:
            raise ValueError("a write to this agent itself was to be asked for")
        if local + remote != self.regions:
            raise ValueError("this memory is not registered")
        return Transfer(local[0], remote[0])

    def transfer(self, handle):
        return "ERR" if FAULT == "error" else "PROC"

    def check_xfer_state(self, handle):
        handle.looks += 1
        if FAULT == "stuck" or handle.looks < 3:
            return "PROC"
        handle.move()
        return "DONE"

    def release_xfer_handle(self, handle):
        if FAULT == "exit":
            os.dup2(1, 2)
            os._exit(7)

    def check(self, kind, backends):
        if kind != "DRAM" or any(name not in self.mapped for name in backends):
            raise ValueError("host memory of an open backend was to be given")
