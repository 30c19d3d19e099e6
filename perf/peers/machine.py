"""What was measured on."""

import os
import platform

from children import said_by


def field_of(path, name):
    with open(path, encoding="utf-8") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    return "unknown"


def facts(busy=0):
    """`busy`: processes that compute meanwhile."""
    return {"cpu": field_of("/proc/cpuinfo", "model name"), "cores": os.cpu_count(),
            "memory": field_of("/proc/meminfo", "MemTotal"), "kernel": platform.release(),
            "gpus": said_by("nvidia-smi", "-L").splitlines(),
            "load_before": os.getloadavg(), "busy": busy}
