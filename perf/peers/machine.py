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


def congestion_control():
    """Of new sockets."""
    try:
        with open("/proc/sys/net/ipv4/tcp_congestion_control", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return "unknown"


def facts(busy=0):
    """`busy`: processes that compute meanwhile."""
    return {"cpu": field_of("/proc/cpuinfo", "model name"), "cores": os.cpu_count(),
            "memory": field_of("/proc/meminfo", "MemTotal"), "kernel": platform.release(),
            "congestion_control": congestion_control(),
            "gpus": said_by("nvidia-smi", "-L").splitlines(),
            "load_before": os.getloadavg(), "busy": busy}
