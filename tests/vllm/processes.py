"""Processes with limits, none of which is left behind: those of perf/peers."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "perf" / "peers"))
from children import Child, Failed  # noqa: E402

__all__ = ["ROOT", "Child", "Failed"]
