#!/usr/bin/env python3
"""Prefill in one virtual machine hands a KV cache over to decode in another, over verbs: left alone,
and while the RDMA link or a machine fails. Bytes must be right, or the error exact and in time."""

import argparse
import contextlib
import json
import re
import sys
import tempfile
import time
from pathlib import Path

import image
import kernel
import outcome
from machine import Infrastructure, Machine

HERE = Path(__file__).resolve().parent
BOOT_SECONDS = 60
# What a handover gets for each of its steps, and what closing may take beyond it.
STEP_SECONDS = {"undisturbed": 60, "interrupted": 60, "cut": 10, "killed": 60}
CLOSING_SECONDS = 10
# Silence for so long is a peer's death (Config::death_after), give or take an emulated second.
DEATH_SECONDS = 2 + 5
# What a handover over a broken path may end with.
ERRORS = ["timed_out", "peer_down", "fabric_failed"]


class Wrong(Exception):
    """What was tested did not do what it should."""


def link(folder, name, number):
    """One end of a cable between the two machines; the first one has to be there first."""
    server = "on" if number == 1 else "off"
    place = folder / f"{name}.cable"
    return ["-netdev", f"stream,id={name},server={server},addr.type=unix,addr.path={place}",
            "-device", f"virtio-net-pci,netdev={name},host_mtu=9000,"
                       f"mac=52:54:00:00:{len(name):02}:{number:02}"]


class Pair:
    """Two machines, cabled together, and what they tell about each scenario."""

    def __init__(self, folder, booted, weft, stack):
        self._machines = {}
        for number, role in enumerate(["decode", "prefill"], start=1):
            files = {"role": role, "scenarios": "".join(
                f"{name} {seconds}\n" for name, seconds in STEP_SECONDS.items())}
            place = folder / role
            place.mkdir()
            for name, content in files.items():
                (place / name).write_text(content)
            disk = image.build(booted, [weft], HERE / "guest" / "node.sh",
                               [place / name for name in files])
            devices = link(folder, "control", number) + link(folder, "rdma", number)
            self._await_cables(folder, number)
            machine = Machine(booted.image, disk, folder, role, devices)
            self._machines[role] = stack.enter_context(machine)

    @staticmethod
    def _await_cables(folder, number):
        deadline = time.monotonic() + BOOT_SECONDS
        while number > 1 and len(list(folder.glob("*.cable"))) < 2:
            if time.monotonic() > deadline:
                raise Infrastructure("the first machine does not start")
            time.sleep(0.1)

    def __getitem__(self, role):
        return self._machines[role]

    def machines(self):
        return self._machines.values()

    def await_movement(self, scenario):
        deadline = time.monotonic() + BOOT_SECONDS + STEP_SECONDS[scenario]
        self["prefill"].await_report(f"^moving {scenario}$", deadline)

    def report(self, role, scenario):
        """A command's JSON document, and the seconds until it was there."""
        deadline = time.monotonic() + BOOT_SECONDS + 2 * STEP_SECONDS[scenario]
        match = self[role].await_report(
            rf"^report {scenario}$([^\0]*)^reported {scenario} (\d+)$", deadline)
        try:
            document = json.loads(match[1])
        except ValueError:
            raise Wrong(f"{role} printed no report: {match[1]}") from None
        print(f"{scenario}: {role} after {match[2]} s: "
              f"{document.get('error', 'every byte right')}", flush=True)
        return document, int(match[2])

    def exit_code(self, role, scenario):
        deadline = time.monotonic() + BOOT_SECONDS
        return int(self[role].await_report(rf"^ended {scenario} (\d+)$", deadline)[1])


def expect(holds, sentence):
    if not holds:
        raise Wrong(sentence)


def expect_right(pair, scenario):
    for role in ["prefill", "decode"]:
        document, _ = pair.report(role, scenario)
        expect(document.get("ok"), f"{role} failed: {document}")
        expect(pair.exit_code(role, scenario) == 0, f"{role} ended with an error")


def expect_failure(pair, role, scenario, codes, seconds):
    document, took = pair.report(role, scenario)
    expect(document.get("code") in codes, f"{role} did not fail by {codes}: {document}")
    expect(took <= seconds, f"{role} took {took} s instead of at most {seconds}")


def undisturbed(pair):
    expect_right(pair, "undisturbed")


def interrupted(pair):
    """The link is down for a moment; the NIC sends again what was lost. Under a host loaded to the
    brim that may take too long for the peers' liveness: then an error has to say so."""
    pair.await_movement("interrupted")
    pair["prefill"].tell_monitor("set_link rdma off")
    time.sleep(1)
    pair["prefill"].tell_monitor("set_link rdma on")
    document, _ = pair.report("prefill", "interrupted")
    if document.get("ok"):
        expect_right(pair, "interrupted")
    else:
        expect_failure(pair, "prefill", "interrupted", ERRORS, STEP_SECONDS["interrupted"])


def cut(pair):
    """The link stays down while the control connection lives. rxe tries for ever; either Weft's
    deadlines end it, or Linux's connection manager does (6.1: when the neighbour is given up)."""
    pair.await_movement("cut")
    pair["prefill"].tell_monitor("set_link rdma off")
    for role in ["prefill", "decode"]:
        expect_failure(pair, role, "cut", ERRORS,
                       2 * STEP_SECONDS["cut"] + CLOSING_SECONDS)
        expect(pair.exit_code(role, "cut") == 1, f"{role} ended as if nothing had happened")
    pair["prefill"].tell_monitor("set_link rdma on")


def killed(pair):
    """The other machine is gone at once, and says nothing. The command's end is not waited for: rxe
    keeps a process until its last packets have left, 50 s at most (Linux 6.1: __rxe_cleanup)."""
    pair.await_movement("killed")
    pair["decode"].kill()
    at = time.monotonic()
    expect_failure(pair, "prefill", "killed", ["peer_down"], STEP_SECONDS["killed"])
    expect(time.monotonic() - at < DEATH_SECONDS + CLOSING_SECONDS, "prefill noticed it too late")


def main(arguments):
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weft-vm-")))
        pair = Pair(folder, kernel.fetch(arguments.cache), arguments.weft, stack)
        try:
            for scenario in [undisturbed, interrupted, cut, killed]:
                scenario(pair)
            return outcome.PASSED
        except Wrong as wrong:
            print(wrong)
            return outcome.FAILED
        finally:
            for machine in pair.machines():
                print(f"--- {machine.name}", machine.console(), machine.results(), sep="\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", required=True, help="folder for the guest's kernel")
    parser.add_argument("weft", help="the command")
    sys.exit(outcome.of(main, parser.parse_args()))
