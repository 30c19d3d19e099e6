#!/usr/bin/env python3
"""Power cuts in the middle of durable writes (FileOptions::durable): no block is torn unseen.

The guest writes blocks of drives that forget what was not flushed (forgetful_drive.py), and of
files in file systems on them, and reports each version of a block that Weft has ended as written. A
cut comes at a random step of the drive. Most cuts are pictures: what the drive would have if it
lost its power then, while the guest goes on. Some are real: the guest is killed, and the drive's
cache is gone.

The rule, for each block: V is the last version that was reported before the cut. A report is here
before the guest goes on, and reports are read before the picture is taken. The block holds V whole,
or the next version, whole or in part: each byte is of the one or the other. So only a block whose
write was under way, and not reported, may be torn. While a picture is taken the guest may have got
further: how far, reports tell that are read after it. Then the same holds for one of the versions
from V to the last one reported. Anything else is a block lost.

The control writes without FileOptions::durable, and must lose blocks."""

import argparse
import random
import sys
import tempfile
import threading
from array import array
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import image
import kernel
import outcome
from forgetful_drive import ForgetfulDrive, PowerCut
from machine import Infrastructure, Machine

HERE = Path(__file__).resolve().parent
BLOCKS = 64  # power_writer.cpp's too
MODULES = ["nvme", "virtio_scsi", "sd_mod", "crc32c_generic", "ext4", "xfs"]
# mkfs.xfs makes none smaller.
DRIVE_BYTES = {"raw": 8 << 20, "ext4": 64 << 20, "xfs": 320 << 20}
ROOM = 2 << 20  # for the blocks of one cut, on the drive that takes them to the host
# Steps of a drive between two cuts. File systems take their places first, in many steps.
MEAN_GAP = {"raw": 16, "ext4": 32, "xfs": 32}
KILLS = 3


@dataclass
class Trial:
    """A drive, how the guest writes to it, and what came of the cuts."""
    name: str
    kind: str
    way: str
    block_bytes: int
    cuts: int
    fua: bool = True
    durable: bool = True
    taken: list = field(default_factory=list)  # (picture, reported before, reported after)
    found: Counter = field(default_factory=Counter)
    sentences: list = field(default_factory=list)

    def writes(self):
        """In whole rounds, and more than all cuts need: a durable write takes two steps or more."""
        return (MEAN_GAP[self.kind] * self.cuts // BLOCKS + 2) * BLOCKS

    def line(self, writes):
        """For guest/power.sh."""
        how = "durable" if self.durable else "lax"
        return f"{self.name} {self.kind} {self.way} {how} {self.block_bytes} {writes}\n"


def trials(cuts):
    """`cuts` of durable writes, and the control."""
    each, few = cuts // 4, cuts * 3 // 20
    return [Trial("raw-local", "raw", "local", 16384, each),
            Trial("raw-tcp", "raw", "tcp", 20001, each, fua=False),
            Trial("raw-shm", "raw", "shm", 16384, cuts - 2 * each - 2 * few),
            Trial("ext4-tcp", "ext4", "tcp", 16384, few),
            Trial("xfs-shm", "xfs", "shm", 20001, few, fua=False),
            Trial("control", "raw", "tcp", 16384, 10, durable=False)]


def reported(path, name):
    """The last version of each block that the guest has reported; a line is whole or not there."""
    versions = {}
    text = path.read_text() if path.exists() else ""
    for line in text.split("\n")[:-1]:
        who, block, version = line.split()
        if who == name:
            versions[int(block)] = int(version)
    return versions


def drawn(block, version, count):
    """The bytes of a version of a block, as power_writer.cpp draws them; 0: never written."""
    if version == 0:
        return bytes(count)
    first = block << 48 | version << 16
    return array("Q", range(first, first + (count + 7) // 8)).tobytes()[:count]


def judge(content, block, before, after):
    """"whole", "torn" where it may be, or "lost"."""
    versions = [drawn(block, version, len(content)) for version in range(before, after + 2)]
    if content in versions:
        return "whole"
    for old, new in zip(versions, versions[1:]):
        if all(is_ in (was, will_be) for is_, was, will_be in zip(content, old, new)):
            return "torn"
    return "lost"


def judge_all(trial, content, before, after):
    for block in range(BLOCKS):
        part = content[block * trial.block_bytes:(block + 1) * trial.block_bytes]
        low, high = (versions.get(block, 0) for versions in (before, after))
        verdict = judge(part, block, low, high)
        trial.found[verdict] += 1
        if verdict == "lost":
            trial.sentences.append(f"block {block} was reported at version {low}")


class Cuts:
    """Called by a trial's drive at each of its steps: takes pictures at random ones."""

    def __init__(self, trial, folder, dice):
        self._trial, self._folder, self._dice = trial, folder, dice
        self._left = 0
        self.drive = None

    def __call__(self):
        if len(self._trial.taken) == self._trial.cuts:
            return
        if self._left == 0:
            before = reported(self._folder / "reports", self._trial.name)
            if not before:  # it makes its file system, or has not begun
                return
            self._take(before)
            self._left = self._dice.randint(1, 2 * MEAN_GAP[self._trial.kind] - 1)
        self._left -= 1

    def _take(self, before):
        path = self._folder / f"{self._trial.name}.{len(self._trial.taken)}"
        self.drive.picture_of_a_cut(path)
        after = reported(self._folder / "reports", self._trial.name)
        self._trial.taken.append((path, before, after))
        if self._trial.kind == "raw":
            judge_all(self._trial, path.read_bytes(), before, after)
            path.unlink()


class Kill:
    """Called by a drive at each of its steps: cuts the power at the step of that number."""

    def __init__(self, step):
        self._left = step
        self.cut = threading.Event()

    def __call__(self):
        self._left -= 1
        if self._left == 0:
            self.cut.set()
            raise PowerCut


def new_drive(folder, trial, dice, at_step):
    path = folder / trial.name
    with open(path, "wb") as file:
        file.truncate(DRIVE_BYTES[trial.kind])
    return ForgetfulDrive(path, dice, at_step)


def shared_devices(folder):
    """The drives' controller, and the console for reports."""
    return ["-device", "virtio-scsi-pci", "-chardev", f"file,id=reports,path={folder / 'reports'}",
            "-device", "isa-debugcon,iobase=0xe9,chardev=reports"]


def disk_for(booted, arguments, folder, lines, job="power.sh"):
    (folder / "trials").write_text("".join(lines))
    return image.build(booted, [arguments.writer], HERE / "guest" / job, [folder / "trials"],
                       ["mkfs.ext4", "mkfs.xfs"])


def run_to_its_end(machine, seconds):
    if machine.wait_and_show(seconds) != 0:
        raise Infrastructure("the guest could not write or read its drives")


def take_pictures(booted, arguments, folder, all_trials, dice):
    drives, devices = [], shared_devices(folder)
    for trial in all_trials:
        cuts = Cuts(trial, folder, dice)
        cuts.drive = new_drive(folder, trial, dice, cuts)
        drives.append(cuts.drive)
        devices += cuts.drive.devices(trial.name, trial.fua)
    disk = disk_for(booted, arguments, folder, [trial.line(trial.writes()) for trial in all_trials])
    with Machine(booted.image, disk, folder, "writer", devices) as machine:
        run_to_its_end(machine, arguments.seconds)
    for trial, drive in zip(all_trials, drives):
        drive.close()
        print(f"{trial.name}: {drive.flushes} flushes")
        if drive.failure or len(trial.taken) < trial.cuts:
            raise Infrastructure(f"the drive {trial.name} had {len(trial.taken)} cuts, and failed "
                                 f"with {drive.failure!r}")


def read_files(booted, arguments, folder, of_files):
    """A second machine mounts each picture, as after a cut, and hands the file's bytes over."""
    pictures = [(trial, *taken) for trial in of_files for taken in trial.taken]
    with open(folder / "pages", "wb") as file:
        file.truncate(len(pictures) * ROOM)
    devices = ["-drive", f"if=none,id=pages,format=raw,file={folder / 'pages'}",
               "-device", "nvme,drive=pages,serial=pages", "-device", "nvme,id=cuts,serial=cuts"]
    for number, (_, path, _, _) in enumerate(pictures, start=1):
        devices += ["-drive", f"if=none,id=cut{number},format=raw,file={path}",
                    "-device", f"nvme-ns,drive=cut{number},bus=cuts,nsid={number}"]
    lines = [f"{number} {trial.kind}\n" for number, (trial, *_) in enumerate(pictures, start=1)]
    disk = disk_for(booted, arguments, folder, lines, "after_cuts.sh")
    with Machine(booted.image, disk, folder, "reader", devices) as machine:
        run_to_its_end(machine, arguments.seconds)
    content = (folder / "pages").read_bytes()
    for number, (trial, _, before, after) in enumerate(pictures):
        judge_all(trial, content[number * ROOM:(number + 1) * ROOM], before, after)


def kill(booted, arguments, folder, dice):
    """The machine of a new drive is killed in the middle of writes without end, again and again."""
    trial = Trial("killed", "raw", "tcp", 20001, KILLS)
    disk = disk_for(booted, arguments, folder, [trial.line(1 << 30)])
    while len(trial.taken) < KILLS:
        (folder / "reports").unlink()
        at_step = Kill(dice.randint(100, 400))
        drive = new_drive(folder, trial, dice, at_step)
        devices = [*shared_devices(folder), *drive.devices(trial.name, trial.fua)]
        with Machine(booted.image, disk, folder, "killed", devices) as machine:
            if not at_step.cut.wait(arguments.seconds):
                print(machine.console(), flush=True)
                raise Infrastructure("the machine did not write as much as was to be cut")
            machine.kill()
        left = folder / "left"
        drive.picture_of_a_cut(left)
        drive.close()
        last = reported(folder / "reports", trial.name)
        judge_all(trial, left.read_bytes(), last, last)
        trial.taken.append((left, last, last))
        (folder / trial.name).unlink()
    return trial


def verdict(all_trials):
    """Says what was found, and whether it is right."""
    right = True
    for trial in all_trials:
        found = trial.found
        print(f"{trial.name}: {len(trial.taken)} cuts, of {found.total()} blocks {found['whole']} "
              f"whole, {found['torn']} torn while under way, {found['lost']} lost")
        if trial.durable:
            right &= found["lost"] == 0
            print("".join(f"  {sentence}\n" for sentence in trial.sentences[:5]), end="")
        else:
            right &= found["lost"] > 0
    # Or the drives don't tear, and nothing was shown.
    return right and any(trial.durable and trial.found["torn"] > 0 for trial in all_trials)


def main(arguments):
    print(f"seed {arguments.seed}")
    dice = random.Random(arguments.seed)
    all_trials = trials(arguments.cuts)
    booted = kernel.fetch(arguments.cache, MODULES)
    with tempfile.TemporaryDirectory(prefix="weft-vm-") as name:
        folder = Path(name)
        take_pictures(booted, arguments, folder, all_trials, dice)
        read_files(booted, arguments, folder,
                   [trial for trial in all_trials if trial.kind != "raw"])
        all_trials.append(kill(booted, arguments, folder, dice))
    return outcome.PASSED if verdict(all_trials) else outcome.FAILED


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", required=True, help="folder for the guest's kernel")
    parser.add_argument("--seconds", type=float, default=400, help="what each machine gets")
    parser.add_argument("--cuts", type=int, default=200, help="pictures of durable writes")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("writer", help="vm-power-writer")
    sys.exit(outcome.of(main, parser.parse_args()))
