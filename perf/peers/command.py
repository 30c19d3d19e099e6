"""What the commands have in common: their options, what they tell and write, and what was measured on."""

import argparse
import os
import platform
import sys

from cell import parse_bytes
from children import Failed, said_by


def list_of(parse):
    def parsed(text):
        try:
            return [parse(each) for each in text.split(",")]
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return parsed


def size(text):
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def one_of(names):
    def parsed(text):
        if text not in names:
            raise ValueError(f"'{text}' is none of {', '.join(names)}")
        return text
    return parsed


def positive(text):
    value = int(text)
    if value < 1:
        raise ValueError(f"{text} is not positive")
    return value


def count(text):
    value = int(text)
    if value < 0:
        raise ValueError(f"{text} is negative")
    return value


def tell(text):
    print(text, file=sys.stderr, flush=True)


def interrupt(*_):
    """For signals that are to end a command as Ctrl-C does."""
    raise KeyboardInterrupt


def check_writable(paths):
    """Before minutes are spent on measuring; those that were not asked for are empty."""
    for path in filter(None, paths):
        place = path if os.path.exists(path) else os.path.dirname(os.path.abspath(path))
        if os.path.isdir(path) or not os.access(place, os.W_OK):
            raise Failed(f"{path} can't be written")


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


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
