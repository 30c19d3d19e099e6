#!/usr/bin/env python3
"""Compares the includes of lib, providers and topo with the table of layers in lib/README.md.

Usage: layers.py ROOT [--draw]

Fails on an include that does not carry its folder, on an arrow that the table does not list, on an
arrow that goes up or leads nowhere in it, and on one that it lists and no file needs.
"""
import collections
import pathlib
import re
import sys

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
ROW = re.compile(r"^\| `([\w/]+?)/` \| .* \|(.*)\|$", re.MULTILINE)


def folder_of(path):
    """lib/base/log.hpp -> base; providers/shm/mail.hpp -> providers."""
    parts = path.parts
    return parts[1] if parts[0] == "lib" else parts[0]


def sources(root):
    for top in ("lib", "providers", "topo"):
        for path in sorted((root / top).rglob("*.[ch]pp")):
            yield path.relative_to(root)


def target_of(root, spelled):
    """The included file, by its one spelling: from lib, or from the root for the other two."""
    for base in (pathlib.Path("lib"), pathlib.Path(".")):
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
    """{folder: folders it may include}, from top to bottom."""
    text = (root / "lib/README.md").read_text()
    return {
        folder_of(pathlib.Path(name) / "_"): re.findall(r"`(\w+)`", allowed)
        for name, allowed in ROW.findall(text)
    }


def faults_of_table(table):
    order = {folder: floor for floor, folder in enumerate(table)}
    for folder, allowed in table.items():
        for other in allowed:
            if order.get(other, -1) <= order[folder]:
                yield f"lib/README.md: {folder} -> {other} does not go down"


def faults_of_arrows(arrows, table):
    for (start, end), files in sorted(arrows.items()):
        if end not in table.get(start, []):
            yield f"{start} -> {end} is not in lib/README.md: {', '.join(sorted(files))}"
    for start, allowed in table.items():
        for end in allowed:
            if (start, end) not in arrows:
                yield f"lib/README.md lists {start} -> {end}, which no include needs"


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
    faults += [*faults_of_table(table), *faults_of_arrows(arrows, table)]
    if not arrows:
        faults.append("no includes were found")
    if "--draw" in sys.argv[2:]:
        draw(arrows, table)
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
