"""Pages between a file and memory within one agent, by several backends of NIXL in turn.

Usage: nixl_files.py FILE [--backends POSIX,WEFT] [--sizes 4K,64K,1M] [--windows 1,16,64]
                     [--rounds N] [--seconds S] [--json]

To be run by a Python that has NIXL's wheel, with NIXL_PLUGIN_DIR naming the folder of the plug-ins.
The file is overwritten. It is opened with O_DIRECT for POSIX, as Weft does by itself.
"""

import argparse
import json
import mmap
import os
import statistics
import time

import numpy

from nixl import nixl_agent, nixl_agent_config

from command import list_of, positive, size


class Backend:
    """An agent with this backend alone, and a handle for each page of the window."""

    def __init__(self, name, path, size, window, operation):
        self.agent = nixl_agent(f"{name}-{size}-{window}-{operation}",
                                nixl_agent_config(backends=[]))
        self.agent.create_backend(name, {})
        length = size * window
        self.memory = mmap.mmap(-1, length)
        self.fd = os.open(path, os.O_RDWR | (os.O_DIRECT if name == "POSIX" else 0))
        view = numpy.frombuffer(self.memory, numpy.uint8)
        address = view.ctypes.data
        self.agent.register_memory([(address, length, 0, "")], mem_type="DRAM", backends=[name])
        self.agent.register_memory([(0, length, self.fd, "")], mem_type="FILE", backends=[name])
        self.handles = []
        for slot in range(window):
            memory = self.agent.get_xfer_descs([(address + slot * size, size, 0)], mem_type="DRAM")
            file = self.agent.get_xfer_descs([(slot * size, size, self.fd)], mem_type="FILE")
            self.handles.append(self.agent.initialize_xfer(operation, memory, file,
                                                           self.agent.name, backends=[name]))
        self.size = size

    def run(self, seconds):
        """GB/s and CPU seconds for each GB, with every handle posted again once it has ended."""
        moved, begun, cpu = 0, time.perf_counter(), time.process_time()
        under_way = []
        for handle in self.handles:
            self.post(handle)
            under_way.append(handle)
        while under_way:
            left = []
            for handle in under_way:
                state = self.agent.check_xfer_state(handle)
                if state == "ERR":
                    raise RuntimeError("a transfer has failed")
                if state == "DONE":
                    moved += self.size
                    if time.perf_counter() - begun >= seconds:
                        continue
                    self.post(handle)
                left.append(handle)
            under_way = left
            os.sched_yield()
        gigabytes = moved / 1e9
        return gigabytes / (time.perf_counter() - begun), (time.process_time() - cpu) / gigabytes

    def post(self, handle):
        if self.agent.transfer(handle) == "ERR":
            raise RuntimeError("a transfer was refused")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--backends", default="POSIX,WEFT")
    parser.add_argument("--sizes", type=list_of(size), default="4K,64K,1M")
    parser.add_argument("--windows", type=list_of(positive), default="1,16,64")
    parser.add_argument("--operations", default="READ,WRITE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    backends = options.backends.split(",")
    sizes, windows = options.sizes, options.windows
    with open(options.file, "wb") as file:
        file.write(os.urandom(1 << 20) * (max(sizes) * max(windows) >> 20 or 1))
        os.fsync(file.fileno())
    results = []
    for operation in options.operations.split(","):
        for page in sizes:
            for window in windows:
                sides = {name: Backend(name, options.file, page, window, operation)
                         for name in backends}
                runs = {name: [] for name in backends}
                for turn in range(options.rounds):
                    for name in backends if turn % 2 == 0 else reversed(backends):
                        runs[name].append(sides[name].run(options.seconds))
                for name, figures in runs.items():
                    speeds = [speed for speed, _ in figures]
                    results.append({"operation": operation, "size": page, "window": window,
                                    "backend": name, "gigabytes_per_second": speeds,
                                    "cpu_seconds_per_gigabyte": [cpu for _, cpu in figures]})
                    if not options.json:
                        print(f"{operation:5} {page:8} x{window:<3} {name:5} "
                              f"{statistics.median(speeds):6.3f} GB/s "
                              f"({min(speeds):.3f} to {max(speeds):.3f}), CPU "
                              f"{statistics.median(cpu for _, cpu in figures):.2f} s/GB",
                              flush=True)
    if options.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()
