#!/usr/bin/env python3
"""The tests of files on ext4 and xfs, and drives that fail under them (dm-error, dm-flakey, full)."""

import argparse
import sys
import tempfile
from pathlib import Path

import image
import kernel
import outcome
from machine import Machine, nvme_drive

HERE = Path(__file__).resolve().parent
MODULES = ["nvme", "loop", "crc32c_generic", "ext4", "xfs", "dm_mod", "dm_flakey"]
DRIVES = ["ext4", "xfs", "spare"]
DRIVE_BYTES = 320 << 20  # mkfs.xfs makes none smaller
SUITES = 3  # that drive_faults.sh reports


def main(arguments):
    booted = kernel.fetch(arguments.cache, MODULES)
    with tempfile.TemporaryDirectory(prefix="weft-vm-") as name:
        folder = Path(name)
        disk = image.build(booted, arguments.programs, HERE / "guest" / "drive_faults.sh",
                           more_tools=["mkfs.ext4", "mkfs.xfs", "dmsetup"])
        devices = [word for name in DRIVES for word in nvme_drive(folder / name, DRIVE_BYTES)]
        with Machine(booted.image, disk, folder, devices=devices) as machine:
            code = machine.wait_and_show(arguments.seconds)
            ended = [line for line in machine.results().splitlines() if " s: " in line]
            return code if len(ended) == SUITES else max(code, outcome.FAILED)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", required=True, help="folder for the guest's kernel")
    parser.add_argument("--seconds", type=float, default=840, help="what the machine gets")
    parser.add_argument("programs", nargs="+", help="integration-test and vm-drive-faults-test")
    sys.exit(outcome.of(main, parser.parse_args()))
