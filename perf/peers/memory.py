"""Memory of a side, in which every byte can be told from those around it."""

import ctypes
import mmap
import random

TILE_BYTES = 1_048_573  # A prime: bytes that land a power of two too far differ.
DRIVER = "libcuda.so.1"


class Memory:
    """Of any kind: a subclass adds address, write and holds."""

    def _tiles(self, length, seed):
        """Each byte depends on its position and on the seed."""
        tile = random.Random(seed).randbytes(TILE_BYTES)
        for start in range(0, length, TILE_BYTES):
            yield start, tile[:min(TILE_BYTES, length - start)]

    def fill(self, length, seed):
        for start, tile in self._tiles(length, seed):
            self.write(start, tile)

    def first_wrong(self, length, seed):
        """The offset of the first tile that differs from the pattern, or None."""
        return next((start for start, tile in self._tiles(length, seed)
                     if not self.holds(start, tile)), None)


class HostMemory(Memory):
    """Private pages that are all there."""

    def __init__(self, length):
        self.pages = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self.pages.madvise(mmap.MADV_HUGEPAGE)  # Weft asks for them too.
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.pages))
        self.fill(length, seed=0)

    def write(self, start, data):
        self.pages[start:start + len(data)] = data

    def holds(self, start, data):
        return self.pages[start:start + len(data)] == data


class GpuMemory(Memory):
    """Of the first GPU, by the CUDA driver; its context is this thread's from here on."""

    def __init__(self, length):
        try:
            self._driver = ctypes.CDLL(DRIVER)
        except OSError as error:
            raise RuntimeError(f"there is no CUDA driver: {error}") from None
        context, address = ctypes.c_void_p(), ctypes.c_uint64()
        self._call("cuInit", 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self._call("cuCtxPushCurrent_v2", context)
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(length))
        self.address = address.value
        self.fill(length, seed=0)

    def _call(self, name, *arguments):
        status = getattr(self._driver, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name} gives {status}")

    def _at(self, start):
        return ctypes.c_uint64(self.address + start)

    def write(self, start, data):
        self._call("cuMemcpyHtoD_v2", self._at(start), data, ctypes.c_size_t(len(data)))
        self._call("cuCtxSynchronize")  # What comes out of pageable memory may be on its way yet.

    def holds(self, start, data):
        found = ctypes.create_string_buffer(len(data))
        self._call("cuMemcpyDtoH_v2", found, self._at(start), ctypes.c_size_t(len(data)))
        return found.raw == data


KINDS = {"host": HostMemory, "gpu": GpuMemory}
