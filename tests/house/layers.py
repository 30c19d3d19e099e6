#!/usr/bin/env python3
"""Checks that the includes of lib, providers and topo go down only, in the order of lib/README.md.

Usage: layers.py ROOT [--draw]

Fails on an include that does not carry its folder, on one that goes up, on a folder that the table
does not have or has for nothing, and where a face or an application includes more of the core than
`base`.
"""
import collections
import pathlib
import re
import sys

GROUPS = ("faces", "apps", "core")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
ROW = re.compile(r"^\| `([\w/]+?)/` \|", re.MULTILINE)
# It puts faults into the engine's transports, which no public header can.
INSIDE = {"testkit"}


def folder_of(path):
    """lib/core/base/log.hpp -> base; lib/include/weft/x.hpp -> include; topo/x.hpp -> topo."""
    parts = path.parts
    if parts[0] != "lib":
        return parts[0]
    return parts[2] if parts[1] in GROUPS else parts[1]


def sources(root):
    for top in ("lib", "providers", "topo"):
        for path in sorted((root / top).rglob("*.[ch]pp")):
            yield path.relative_to(root)


def target_of(root, spelled):
    """The included file, by its one spelling: from its group, or from the root for the other two."""
    for base in (*(pathlib.Path("lib") / group for group in GROUPS), pathlib.Path(".")):
        if (root / base / spelled).is_file():
            return base / spelled
    return None


def read_includes(root):
    """{(from folder, to folder): files}, and what is wrong with single includes."""
    arrows, wrong = collections.defaultdict(set), []
    for path in sources(root):
        for spelled in INCLUDE.findall((root / path).read_text()):
            if spelled.endswith("_generated.h"):
                continue
            target = target_of(root, spelled)
            if target is None or "/" not in spelled:
                wrong.append(f'{path}: "{spelled}" does not carry its folder')
            elif folder_of(target) != folder_of(path):
                arrows[folder_of(path), folder_of(target)].add(str(path))
    return arrows, wrong


def read_table(root):
    """{folder: group}, from top to bottom."""
    paths = [pathlib.Path(name) for name in ROW.findall((root / "lib/README.md").read_text())]
    return {folder_of(path / "_"): path.parts[1] if len(path.parts) > 2 else "" for path in paths}


def faults_of(root, arrows, table):
    floors = {folder: floor for floor, folder in enumerate(table)}
    there = {folder_of(path) for path in sources(root)} | {"include"}
    for folder in sorted(there ^ set(table)):
        yield f"{folder}: it is in only one of the tree and the table of lib/README.md"
    for (start, end), files in sorted(arrows.items()):
        if floors.get(end, -1) <= floors.get(start, -1):
            yield f"{start} -> {end} goes up in lib/README.md: {', '.join(sorted(files))}"
        inner = table.get(end) == "core" and end != "base"
        if inner and table.get(start) in ("faces", "apps") and start not in INSIDE:
            yield f"{start} -> {end} is not public: {', '.join(sorted(files))}"


def draw(arrows, table):
    """Floors from top to bottom: a folder stands one floor above the highest that it includes."""
    height = {}
    for folder in reversed(table):
        height[folder] = 1 + max((height[end] for start, end in arrows if start == folder), default=0)
    for floor in range(max(height.values()), 0, -1):
        print(f"{floor:2}  " + "   ".join(each for each in table if height[each] == floor))


def main():
    root = pathlib.Path(sys.argv[1])
    arrows, faults = read_includes(root)
    table = read_table(root)
    faults += faults_of(root, arrows, table)
    if not arrows:
        faults.append("no includes were found")
    if "--draw" in sys.argv[2:]:
        draw(arrows, table)
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
