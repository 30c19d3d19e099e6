"""Allows more descriptors each time, until an engine opens: nothing but weft.Error is raised."""

from __future__ import annotations

import os
import resource

import weft

used = len(os.listdir("/proc/self/fd"))
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
for left in range(200):
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + left, most))
    try:
        weft.Engine(providers=["tcp"], listen="127.0.0.1:0").close()
    except weft.Error as error:
        assert str(error)
    else:
        print("opened with", left)
        break
