"""Whether vLLM has put the weights away."""

from __future__ import annotations

import sys

_ALLOCATOR = "device_allocator.cumem"
"""The end of the module's name: its package is another one in some versions."""


def refuse_asleep() -> None:
    """Raises RuntimeError while vLLM sleeps at level 1, in this process.

    The parameters have no memory then, and a copy into them ends the process. A sleep of level 2
    keeps no copy of the weights, so that nothing here tells it from none.
    """
    for name, module in list(sys.modules.items()):
        if not name.endswith(_ALLOCATOR):
            continue
        allocator = getattr(getattr(module, "CuMemAllocator", None), "instance", None)
        for each in getattr(allocator, "pointer_to_data", {}).values():
            if each.tag == "weights" and each.cpu_backup_tensor is not None:
                raise RuntimeError(
                    "vLLM sleeps, and its weights have no memory: wake it up (/wake_up, with or "
                    "without tags=weights), then send the weights again"
                )
