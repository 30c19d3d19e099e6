"""A virtual machine under software emulation, and how it tells what came out."""

import ctypes
import re
import shutil
import signal
import socket
import subprocess
import time

from kernel import Missing

PR_SET_PDEATHSIG = 1
# The guest's exit code plus this is written to the exit device, and QEMU ends with twice that plus
# one: so no result can be mistaken for QEMU's own failures (1), or its being killed.
RESULT_BASE = 8


class Infrastructure(Exception):
    """Nothing is known about what was tested: the machine did not do its part."""


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def nvme_drive(path, size):
    """QEMU's words for a new NVMe drive whose bytes lie in that file, and whose serial number is
    its name."""
    with open(path, "wb") as file:
        file.truncate(size)
    return ["-drive", f"if=none,id={path.name},format=raw,cache=writeback,file={path}",
            "-device", f"nvme,drive={path.name},serial={path.name}"]


class Machine:
    """Used with `with`: whatever happens, QEMU is gone afterwards. `folder` takes its files."""

    def __init__(self, kernel, disk, folder, name="vm", devices=(), append="", cores="2"):
        self._program = shutil.which("qemu-system-x86_64")
        if self._program is None:
            raise Missing("qemu-system-x86_64 is not installed (tools/setup vm)")
        self.name = name
        self._folder = folder
        self._append = append
        self._cores = cores
        self._kernel = kernel
        self._disk = disk
        self._devices = list(devices)
        self._process = None
        self._started = time.monotonic()

    def __enter__(self):
        (self._folder / f"{self.name}.disk").write_bytes(self._disk)
        command = [
            self._program, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max",
            "-smp", self._cores, "-m", "2048", "-kernel", self._kernel,
            "-initrd", self._folder / f"{self.name}.disk",
            # A kernel that does not find /init ends (panic, no reboot), instead of starting a shell.
            "-append", f"console=ttyS0 quiet panic=-1 init=/none mitigations=off {self._append}",
            "-device", "isa-debug-exit,iobase=0xf4,iosize=0x04",
            "-serial", f"file:{self._path('console')}", "-serial", f"file:{self._path('result')}",
            "-monitor", f"unix:{self._path('monitor')},server=on,wait=off", *self._devices]
        with open(self._path("qemu"), "wb") as output:
            self._process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, preexec_fn=_die_with_parent)
        return self

    def __exit__(self, *_):
        self.kill()

    def _path(self, kind):
        return self._folder / f"{self.name}.{kind}"

    def _read(self, kind):
        path = self._path(kind)
        return path.read_text(errors="replace").replace("\r", "") if path.exists() else ""

    def console(self):
        """All that the guest's kernel and programs said so far."""
        return self._read("console") + self._read("qemu")

    def results(self):
        """What the guest reported so far."""
        return self._read("result")

    def kill(self):
        self._process.kill()
        self._process.wait()

    def running(self):
        return self._process.poll() is None

    def tell_monitor(self, command):
        """A command of QEMU's monitor, such as "set_link rdma off"."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(self._path("monitor")))
            self._read_prompt(connection)
            connection.sendall(command.encode() + b"\n")
            self._read_prompt(connection)

    @staticmethod
    def _read_prompt(connection):
        answer = b""
        while not answer.endswith(b"(qemu) "):
            part = connection.recv(4096)
            if not part:
                raise Infrastructure("QEMU closed its monitor")
            answer += part

    def await_report(self, pattern, deadline):
        """Waits until the guest reports a line that matches, and returns the match."""
        while True:
            match = re.search(pattern, self.results(), re.MULTILINE)
            if match:
                return match
            if not self.running():
                raise Infrastructure(f"{self.name} ended before it reported '{pattern}'")
            if time.monotonic() > deadline:
                raise Infrastructure(f"{self.name} did not report '{pattern}' in time")
            time.sleep(0.1)

    def wait_and_show(self, seconds):
        """The guest's exit code. What it has said is printed, whatever comes."""
        try:
            return self.wait(time.monotonic() + seconds)
        finally:
            print(self.console(), self.results(), sep="\n", flush=True)

    def wait(self, deadline):
        """The guest's exit code."""
        try:
            ended = self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Infrastructure(f"{self.name} did not end in time") from None
        told = re.search(r"^EXIT (\d+)$", self.results(), re.MULTILINE)
        code = (ended - 1) // 2 - RESULT_BASE
        if told is None or ended % 2 != 1 or int(told[1]) != code:
            raise Infrastructure(f"{self.name} ended without a result (QEMU's exit code {ended})")
        return code
