"""What NIXL's LIBFABRIC has to be loaded with where there is no CUDA.

It needs CUDA's libraries even for the host's memory, for which it calls none of their functions.
"""

import ctypes
import glob
import os
import shutil

from children import Failed, output_of

DRIVER = "libcuda.so.1"
# All that it takes out of the driver; each tells that there is no device.
CALLS = ("cuCtxSetCurrent", "cuDeviceGetPCIBusId", "cuPointerGetAttributes")
NO_DEVICE = 100
COMPILE_SECONDS = 30


def has(library):
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def compile_driver(folder):
    if shutil.which("cc") is None:
        raise Failed(f"there is no {DRIVER}, and no cc to make what stands in for it")
    source = os.path.join(folder, "driver.c")
    with open(source, "w", encoding="utf-8") as file:
        file.writelines(f"int {call}(void) {{ return {NO_DEVICE}; }}\n" for call in CALLS)
    output_of(["cc", "-shared", "-fPIC", f"-Wl,-soname,{DRIVER}", "-o",
               os.path.join(folder, DRIVER), source], COMPILE_SECONDS)


def without_cuda(venv, scratch):
    """Folders of libraries: the wheel nvidia-cuda-runtime-cu12, and a driver made in scratch."""
    runtime = glob.glob(os.path.join(
        venv, "lib", "python3*", "site-packages", "nvidia", "cuda_runtime", "lib"))
    if has(DRIVER):
        return runtime
    compile_driver(scratch)
    return [*runtime, scratch]
