"""The guest's initial RAM disk: a newc archive (Linux, Documentation/driver-api/early-userspace)."""

import glob
import gzip
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from kernel import Missing

GUEST = Path(__file__).resolve().parent / "guest"
# What the guest runs besides busybox and the project's own programs, with Debian's package of it:
# always, and where a test asks for it.
TOOLS = {"ip": "iproute2", "rdma": "iproute2"}
MORE_TOOLS = {"mkfs.ext4": "e2fsprogs", "mkfs.xfs": "xfsprogs", "dmsetup": "dmsetup"}
# libibverbs finds a device's driver by a file in the one folder and loads it from the other.
VERBS_DRIVER = "/usr/lib*/*/libibverbs/librxe-rdmav*.so"
VERBS_CONFIG = "/etc/libibverbs.d/rxe.driver"
LOADER = "/lib64/ld-linux-x86-64.so.2"
FILE, FOLDER, LINK, DEVICE = 0o100000, 0o040755, 0o120777, 0o020600


class Archive:
    """Grows by entries; parents come by themselves."""

    def __init__(self):
        self._entries = {}

    def _put(self, name, mode, content=b"", device=(0, 0)):
        for parent in reversed(Path(name).parents[:-1]):
            self._entries.setdefault(str(parent), (FOLDER, b"", (0, 0)))
        self._entries[str(name)] = (mode, content, device)

    def folder(self, name):
        self._put(name, FOLDER)

    def text(self, name, content, mode=0o644):
        self._put(name, FILE | mode, content.encode())

    def file(self, name, source):
        executable = os.access(source, os.X_OK)
        self._put(name, FILE | (0o755 if executable else 0o644), Path(source).read_bytes())

    def link(self, name, target):
        self._put(name, LINK, target.encode())

    def device(self, name, major, minor):
        self._put(name, DEVICE, device=(major, minor))

    def packed(self):
        def header(number, name, mode, content, device):
            fields = [number, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name) + 1, 0]
            head = b"070701" + b"".join(b"%08x" % field for field in fields) + name + b"\0"
            return head + b"\0" * (-len(head) % 4) + content + b"\0" * (-len(content) % 4)

        # A folder's name sorts before those of what it holds.
        parts = [header(number, name.encode(), mode, content, device)
                 for number, (name, (mode, content, device))
                 in enumerate(sorted(self._entries.items()), start=1)]
        parts.append(header(0, b"TRAILER!!!", 0, b"", (0, 0)))
        return gzip.compress(b"".join(parts), compresslevel=1, mtime=0)


def _libraries(program):
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"=> (/\S+)", listed)


def _libfabric():
    """The system's. Weft finds it as it starts, so no program lists it."""
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    known = subprocess.run(["ldconfig", "-p"], env={**os.environ, "PATH": search},
                           capture_output=True, text=True, check=True).stdout
    found = re.search(r"^\s*libfabric\.so\.1 .*=> (/\S+)$", known, re.MULTILINE)
    if found is None:
        raise Missing("libfabric is not installed")
    return found[1]


def _stripped(program, folder):
    """Debugging information would make the RAM disk ten times as large."""
    target = Path(folder) / Path(program).name
    subprocess.run(["strip", "-o", target, program], check=True)
    return target


def _find_tools(more):
    """Their paths, by name."""
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    tools = {name: shutil.which(name, path=search) for name in [*TOOLS, *more]}
    for name, path in tools.items():
        if path is None:
            package = {**TOOLS, **MORE_TOOLS}[name]
            raise Missing(f"the command {name} is not installed ({package})")
    return tools


def build(kernel, programs, job, files=(), more_tools=()):
    """The archive with the kernel's modules, the tools, the programs and all libraries they need.
    `job` is the script that guest/init runs; `files` lie beside it in /."""
    driver = glob.glob(VERBS_DRIVER)
    if not driver or not os.path.exists(VERBS_CONFIG):
        raise Missing("rdma-core's driver for rxe is not installed (ibverbs-providers)")
    tools = _find_tools(more_tools)

    archive = Archive()
    for name in ["proc", "sys", "dev", "tmp", "root"]:
        archive.folder(name)
    archive.device("dev/console", 5, 1)
    archive.device("dev/null", 1, 3)
    archive.file("bin/busybox", kernel.busybox)
    archive.link("bin/sh", "busybox")
    archive.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
    archive.text("etc/hosts", "127.0.0.1 localhost\n")
    for order, module in enumerate(kernel.modules):
        archive.file(f"modules/{order:02}-{module.name}", module)
    for path in [*(GUEST / name for name in ["init", "nic.sh", "drive_named.sh"]), *files]:
        archive.file(Path(path).name, path)
    archive.file("job", job)
    for name, path in tools.items():
        archive.file(f"usr/bin/{name}", os.path.realpath(path))
    for path in driver:
        archive.file(path.lstrip("/"), os.path.realpath(path))
    archive.file(VERBS_CONFIG.lstrip("/"), VERBS_CONFIG)

    libfabric = _libfabric()
    needed = {libfabric, *_libraries(libfabric)}
    with tempfile.TemporaryDirectory() as folder:
        for path in programs:
            archive.file(f"weft/{Path(path).name}", _stripped(path, folder))
            needed.update(_libraries(path))
        for path in [*tools.values(), *driver]:
            needed.update(_libraries(path))
        for path in sorted(needed):
            archive.file(f"lib/{Path(path).name}", _stripped(os.path.realpath(path), folder))
    archive.file(LOADER.lstrip("/"), os.path.realpath(LOADER))
    return archive.packed()
