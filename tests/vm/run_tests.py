#!/usr/bin/env python3
"""Runs tests over verbs in one virtual machine, a handover between two of its processes, weft-perf."""

import argparse
import sys
import tempfile
from pathlib import Path

import image
import kernel
import outcome
from machine import Machine

HERE = Path(__file__).resolve().parent
NO_TESTS = "[  PASSED  ] 0 tests."
PERF = ("--local --providers verbs --operation write,read,message --size 60001 --count 40 --time 0.2 "
        "--warm-up 0 --repeats 1 --verify --baseline raw --timeout 60")
DEMO = "demo --providers verbs --tokens 256 --requests 2 --concurrency 2 --timeout 60"


def commands(arguments):
    options = f"--gtest_color=no --gtest_filter={arguments.filter}"
    if arguments.subjects:
        options += f" --subjects={arguments.subjects}"
    lines = [f"{Path(program).name} {options}" for program in arguments.programs]
    if arguments.weft:
        lines.append(f"{Path(arguments.weft).name} {DEMO}")
    if arguments.perf:
        lines.append(f"{Path(arguments.perf).name} {PERF}")
    return "".join(line + "\n" for line in lines)


def main(arguments):
    programs = arguments.programs + [each for each in (arguments.weft, arguments.perf) if each]
    with tempfile.TemporaryDirectory(prefix="weft-vm-") as name:
        folder = Path(name)
        (folder / "commands").write_text(commands(arguments))
        booted = kernel.fetch(arguments.cache)
        disk = image.build(booted, programs, HERE / "guest" / arguments.job,
                           [folder / "commands"])
        with Machine(booted.image, disk, folder) as machine:
            code = machine.wait_and_show(arguments.seconds)
            return outcome.FAILED if NO_TESTS in machine.console() else code


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", required=True, help="folder for the guest's kernel")
    parser.add_argument("--job", default="tests.sh", help="script of guest/ that runs inside")
    parser.add_argument("--filter", default="*verbs*", help="as --gtest_filter")
    parser.add_argument("--subjects", help="of the tests, with commas; all where it is left out")
    parser.add_argument("--seconds", type=float, default=540, help="what the machine gets")
    parser.add_argument("--weft", help="the command, for the handover")
    parser.add_argument("--perf", help="weft-perf, for the plain loop that it compares with")
    parser.add_argument("programs", nargs="*", help="executables of tests/integration")
    sys.exit(outcome.of(main, parser.parse_args()))
