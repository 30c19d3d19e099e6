#!/usr/bin/env python3
"""Boots a machine of two NUMA nodes, each with a GPU, two RDMA NICs and a drive, and compares what
Weft makes of it with how QEMU was told to build it. A test program inside looks at engines there."""

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

import image
import kernel
import outcome
import two_nodes
from machine import Machine

HERE = Path(__file__).resolve().parent
SECONDS = 420


def wired_nodes():
    """As `weft topo --json` has to tell them: distances, and the NICs that serve host memory."""
    near = two_nodes.DISTANCES
    return [{"id": node, "distances": near if node == 0 else near[::-1],
             "nics": [f"rxe{node}_alone", f"rxe{node}_gpu"]} for node in range(two_nodes.NODES)]


def wired_gpus():
    """In the order of their addresses, each with the NIC of its own switch."""
    gpus = [{"pci": two_nodes.gpu_of(node), "numa": node, "nics": [f"rxe{node}_gpu"]}
            for node in range(two_nodes.NODES)]
    return sorted(gpus, key=lambda gpu: gpu["pci"])


def wired_drives():
    """As the GPUs. The kernel may find any of them first, which is nvme0 then."""
    drives = [{"pci": two_nodes.drive_of(node), "numa": node, "nics": [f"rxe{node}_gpu"],
               "bytes": two_nodes.DRIVE_BYTES} for node in range(two_nodes.NODES)]
    return sorted(drives, key=lambda drive: drive["pci"])


def wired_nics():
    """Where each NIC was plugged in, and whether that is the switch of a GPU."""
    nics = []
    for node in range(two_nodes.NODES):
        gpu = two_nodes.gpu_of(node)
        nics += [{"name": f"rxe{node}_gpu", "numa": node, "kind": "rdma", "gpus": [gpu],
                  "beside": [gpu]},
                 {"name": f"rxe{node}_alone", "numa": node, "kind": "rdma", "gpus": [],
                  "beside": []}]
    return nics


def told_nics(document):
    for nic in document["nics"]:
        beside = [gpu["pci"] for gpu in document["gpus"] if gpu["switch"] == nic["switch"]]
        yield {**{key: nic[key] for key in ["name", "numa", "kind", "gpus"]}, "beside": beside}


def complaints(document, drawn):
    """What differs, in sentences."""
    nodes = [{"id": node["id"], "distances": node["distances"], "nics": sorted(node["nics"])}
             for node in document["numa"]]
    gpus = [{key: gpu[key] for key in ["pci", "numa", "nics"]} for gpu in document["gpus"]]
    drives = [{key: drive[key] for key in ["pci", "numa", "nics", "bytes"]}
              for drive in document["drives"]]
    by_name = sorted(told_nics(document), key=lambda nic: nic["name"])
    # Loopback is nowhere.
    unplaced = [each for each in document["unplaced"] if each["name"] != "lo"]
    told = {"nodes": nodes, "GPUs": gpus, "NICs": by_name, "unplaced": unplaced, "drives": drives,
            "names of drives": {drive["name"] for drive in document["drives"]},
            "kinds of interfaces": {nic["kind"] for nic in document["networks"]}}
    wired = {"nodes": wired_nodes(), "GPUs": wired_gpus(),
             "NICs": sorted(wired_nics(), key=lambda nic: nic["name"]), "unplaced": [],
             "drives": wired_drives(), "names of drives": {"nvme0n1", "nvme1n1"},
             "kinds of interfaces": {"network"}}
    for what, expected in wired.items():
        if told[what] != expected:
            yield f"{what}: told {told[what]}, built {expected}"
    for name in [gpu["pci"] for gpu in wired["GPUs"]] + [nic["name"] for nic in wired["NICs"]] + \
            [drive["pci"] for drive in wired["drives"]]:
        if name not in drawn:
            yield f"weft topo does not name {name}"


def compare(results):
    """Returns whether the reports of the guest are what was built."""
    match = re.search(r"^topology$([^\0]*)^drawn$([^\0]*)^end$", results, re.MULTILINE)
    if match is None:
        print("weft topo failed in the guest")
        return False
    found = list(complaints(json.loads(match[1]), match[2]))
    print(*found, sep="\n")
    return not found


def main(arguments):
    with tempfile.TemporaryDirectory(prefix="weft-vm-") as name:
        booted = kernel.fetch(arguments.cache, ["nvme"])
        disk = image.build(booted, [arguments.weft, arguments.program],
                           HERE / "guest" / "topology.sh")
        with Machine(booted.image, disk, Path(name), devices=two_nodes.options(),
                     cores=two_nodes.CORES) as machine:
            code = machine.wait_and_show(SECONDS)
            return code if compare(machine.results()) else outcome.FAILED


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", required=True, help="folder for the guest's kernel")
    parser.add_argument("weft", help="the command")
    parser.add_argument("program", help="vm-topology-test")
    sys.exit(outcome.of(main, parser.parse_args()))
