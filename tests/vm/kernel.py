"""The guest's kernel and shell: Debian packages, downloaded once and unpacked into a cache folder."""

import lzma
import os
import re
import shutil
import subprocess
from pathlib import Path

# Not all of what RDMA needs is named by a module's dependencies: crc32_generic is asked for by name
# when an rxe device is added.
MODULES = ["dummy", "virtio_pci", "virtio_net", "e1000e", "crc32_generic", "ib_uverbs",
           "rdma_ucm", "rdma_rxe"]
# A drive, and namespaces of it over the network, of this machine itself.
DRIVES = ["nvme", "nvmet", "nvmet_tcp", "nvmet_rdma", "nvme_tcp", "nvme_rdma"]
DOWNLOAD_SECONDS = 240


class Missing(Exception):
    """Something that this machine would need; the test is skipped with this sentence."""


def _output_of(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def _kernel_package():
    try:
        depends = _output_of("apt-cache", "depends", "linux-image-amd64")
    except (OSError, subprocess.CalledProcessError):
        raise Missing("apt-cache knows no linux-image-amd64: the guest's kernel is Debian's") from None
    named = re.search(r"Depends: (linux-image-\d\S*)", depends)
    if named is None:
        raise Missing("linux-image-amd64 names no kernel: run apt-get update")
    return named[1]


def _download(packages, folder):
    """Into a folder of its own first, so that a download that was cut off is never taken for one."""
    partial = folder / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    # As whoever runs this: apt's own user may not be able to write here.
    command = ["apt-get", "-qq", "-o", "APT::Sandbox::User=", "download", *packages]
    try:
        subprocess.run(command, cwd=partial, check=True, capture_output=True, text=True,
                       timeout=DOWNLOAD_SECONDS)
    except subprocess.TimeoutExpired:
        raise Missing(f"{' and '.join(packages)} could not be downloaded in time") from None
    except subprocess.CalledProcessError as error:
        raise Missing(f"{' and '.join(packages)} can't be downloaded: {error.stderr.strip()}") from None
    for package in partial.iterdir():
        subprocess.run(["dpkg-deb", "-x", package, partial], check=True)
        package.unlink()
    return partial


def _bare_kernel(image):
    """The ELF file inside a compressed kernel: under emulation it would take seconds to unpack."""
    packed = image.read_bytes()
    kernel = lzma.LZMADecompressor().decompress(packed[packed.index(b"\xfd7zXZ\0"):])
    if not kernel.startswith(b"\x7fELF"):
        raise Missing(f"{image.name} holds no kernel that this script knows how to unpack")
    return kernel


class Kernel:
    """`image` to boot, `busybox`, and `modules` in the order in which they have to be loaded."""

    def __init__(self, folder, more_modules=()):
        self.image = folder / "vmlinux"
        self.busybox = folder / "bin" / "busybox"
        found = {path.stem.replace("-", "_"): path for path in folder.rglob("*.ko")}
        self.modules = []
        for name in [*MODULES, *more_modules]:
            self._add(name, found)

    def _add(self, name, found):
        path = found.get(name.replace("-", "_"))
        if path is None or path in self.modules:  # built in, or added before
            return
        depends = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
        for other in depends[1].decode().split(",") if depends else []:
            self._add(other, found)
        self.modules.append(path)


def fetch(cache, more_modules=()):
    """Downloads what is not in the cache folder yet; WEFT_VM_CACHE names another one."""
    cache = Path(os.environ.get("WEFT_VM_CACHE") or cache)
    package = _kernel_package()
    folder = cache / package
    if not folder.exists():
        partial = _download([package, "busybox-static"], cache)
        image, = (partial / "boot").glob("vmlinuz-*")
        (partial / "vmlinux").write_bytes(_bare_kernel(image))
        os.rename(partial, folder)
    return Kernel(folder, more_modules)
