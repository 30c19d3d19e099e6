#!/usr/bin/env python3
"""Fails if a library or program is linked with libfabric or rdma-core.

Usage: needed.py FILE...
"""
import re
import subprocess
import sys

FOUND_AT_RUN_TIME = re.compile(r"lib(fabric|ibverbs|rdmacm|efa)\b")

wrong = []
for path in sys.argv[1:]:
    table = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", table.stdout)
    assert needed, f"{path} needs nothing at all?"
    wrong += [f"{path} is linked with {each}" for each in needed if FOUND_AT_RUN_TIME.match(each)]
print("\n".join(wrong) or "none is linked with libfabric or rdma-core")
sys.exit(1 if wrong else 0)
