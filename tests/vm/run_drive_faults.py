#!/usr/bin/env python3
"""The tests of files on ext4 and xfs, and drives that fail under them (dm-error, dm-flakey, full)."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import image
import kernel
import outcome
from machine import Machine

HERE = Path(__file__).resolve().parent
MODULES = ["nvme", "loop", "crc32c_generic", "ext4", "xfs", "dm_mod", "dm_flakey"]
DRIVES = ["ext4", "xfs", "spare"]
DRIVE_BYTES = 320 << 20  # mkfs.xfs makes none smaller
SUITES = 3  # that drive_faults.sh reports


def drives(folder):
    """QEMU's words for NVMe drives whose bytes lie in files, and whose names are their numbers."""
    words = []
    for name in DRIVES:
        with open(folder / name, "wb") as file:
            file.truncate(DRIVE_BYTES)
        words += ["-drive", f"if=none,id={name},format=raw,cache=writeback,file={folder / name}",
                  "-device", f"nvme,drive={name},serial={name}"]
    return words


def main(arguments):
    booted = kernel.fetch(arguments.cache, MODULES)
    with tempfile.TemporaryDirectory(prefix="weft-vm-") as name:
        folder = Path(name)
        disk = image.build(booted, arguments.programs, HERE / "guest" / "drive_faults.sh",
                           more_tools=["mkfs.ext4", "mkfs.xfs", "dmsetup"])
        with Machine(booted.image, disk, folder, devices=drives(folder)) as machine:
            try:
                code = machine.wait(time.monotonic() + arguments.seconds)
            finally:
                print(machine.console(), machine.results(), sep="\n", flush=True)
            ended = [line for line in machine.results().splitlines() if " s: " in line]
            return code if len(ended) == SUITES else max(code, outcome.FAILED)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", required=True, help="folder for the guest's kernel")
    parser.add_argument("--seconds", type=float, default=840, help="what the machine gets")
    parser.add_argument("programs", nargs="+", help="integration-test and vm-drive-faults-test")
    sys.exit(outcome.of(main, parser.parse_args()))
