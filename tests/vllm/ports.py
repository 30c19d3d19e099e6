"""Ports that are still free when an engine, a minute later, listens on them."""

import pathlib
import random
import socket

LOWEST = 10_000
USED_BY_ALL = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port():
    """None of those that the kernel gives to whoever connects or asks for any."""
    end = int(USED_BY_ALL.read_text().split()[0])
    while True:
        port = random.randrange(LOWEST, end)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
