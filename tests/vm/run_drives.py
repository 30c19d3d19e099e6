#!/usr/bin/env python3
"""Weft over drives that are none of this machine's: QEMU's NVMe drive, and the same as a namespace
over NVMe-oF by TCP and by RDMA (soft-RoCE), every byte compared by weft-perf."""

import argparse
import sys
import tempfile
from pathlib import Path

import image
import kernel
import outcome
from machine import Machine, nvme_drive

HERE = Path(__file__).resolve().parent
DRIVE_BYTES = 256 << 20
STEPS = 3  # Drives that drives.sh reports.
# nvme_tcp sends neighbouring pages as one piece, which this check of the receiver's takes for an
# overflow now and then: "usercopy: Kernel memory exposure attempt detected from page alloc" (Linux
# 6.1; openebs/mayastor has it as issues 1330 and 1693).
KERNEL_OPTIONS = "hardened_usercopy=off"


def main(arguments):
    with tempfile.TemporaryDirectory(prefix="weft-vm-") as name:
        folder = Path(name)
        booted = kernel.fetch(arguments.cache, kernel.DRIVES)
        disk = image.build(booted, [arguments.perf], HERE / "guest" / "drives.sh")
        with Machine(booted.image, disk, folder, devices=nvme_drive(folder / "nvme", DRIVE_BYTES),
                     append=KERNEL_OPTIONS) as machine:
            code = machine.wait_and_show(arguments.seconds)
            moved = [line for line in machine.results().splitlines() if line.startswith("RIGHT ")]
            return code if len(moved) == STEPS else max(code, outcome.FAILED)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", required=True, help="folder for the guest's kernel")
    parser.add_argument("--seconds", type=float, default=540, help="what the machine gets")
    parser.add_argument("perf", help="weft-perf")
    sys.exit(outcome.of(main, parser.parse_args()))
