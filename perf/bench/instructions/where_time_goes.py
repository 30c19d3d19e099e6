"""Where the time of a write over a real provider goes, on the initiator's side, as perf samples it.

A write is waited for before the next, by a thread that polls: what it takes to wait is in the shares of
the kernel and of the provider. Needs Linux's perf, and the right to use it.
"""

import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

PATIENCE = 120  # Seconds that one of perf's commands may take.

KERNEL = r"\[kernel|\[guest"

# By the shared object that a sample is in, then by a word that the function has: one that is at its
# begin or behind an underscore. The first that fits counts.
PARTS = [
    ("kernel: copying", KERNEL, r"copy|rep_movs|memcpy|clear_page"),
    ("kernel: memory of others", KERNEL, r"process_vm|pin_user|gup|get_user_pages|follow_page"),
    ("kernel: sockets", KERNEL, r"tcp|sock|skb|inet|ip_|net_|netdev|dev_|loopback|eth_|qdisc|nf_"),
    ("kernel: polling, backoff", KERNEL, r"epoll|ep_|sched|resched|yield|switch|pick_next|fdget"),
    ("kernel: the rest", KERNEL, r""),
    ("libfabric", r"libfabric", r""),
    ("Weft's provider code", r"weft", r"weft::providers::"),
    ("engine", r"weft", r""),
    ("C and C++ libraries, clock", r"", r""),
]


def part_of(place, function):
    for name, place_pattern, words in PARTS:
        begin = r"(^|_)" if place_pattern == KERNEL else ""
        if re.search(place_pattern, place) and re.search(f"{begin}({words})", function):
            return name
    return None


def samples(lines):
    """Of perf report's lines "  12.34%  shared object  symbol"."""
    shares = collections.Counter()
    for line in lines:
        found = re.match(r"\s*([\d.]+)%\s+(\S+)\s+(?:\[[.kgu]\]\s+)?(.*?)\s*$", line)
        if found:
            shares[part_of(found[2], found[3])] += float(found[1])
    return shares


def measure(loop, provider, size, seconds):
    """Nanoseconds of a write, and their shares in percent."""
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "samples")
        result = subprocess.run(
            ["perf", "record", "--quiet", "--event", "cpu-clock", "--freq", "5000", "--output", data,
             loop, "--provider", provider, "--size", size, "--time", seconds],
            capture_output=True, text=True, timeout=PATIENCE)
        if result.returncode != 0:
            raise RuntimeError(result.stderr.strip() or result.stdout.strip())
        report = subprocess.run(
            ["perf", "report", "--stdio", "--input", data, "--comms", "initiator", "--sort",
             "dso,symbol", "--percentage", "relative"],
            capture_output=True, text=True, timeout=PATIENCE)
        if report.returncode != 0:
            raise RuntimeError(report.stderr.strip())
        return float(result.stdout), samples(report.stdout.splitlines())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loop", help="weft-write-loop")
    parser.add_argument("--providers", default="shm,tcp")
    parser.add_argument("--size", default="4K,64K")
    parser.add_argument("--time", default="3", help="seconds for each")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if shutil.which("perf") is None:
        sys.exit("perf is not installed")
    rows = []
    for provider in options.providers.split(","):
        for size in options.size.split(","):
            nanoseconds, shares = measure(options.loop, provider, size, options.time)
            rows.append({"provider": provider, "size": size, "ns": nanoseconds,
                         "shares": {name: shares[name] for name, _, _ in PARTS}})
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print("A write takes, in ns, and in percent of the initiator's time:\n")
    print(f"{'':<28}" + "".join(f"{row['provider'] + ' ' + row['size']:>18}" for row in rows))
    print(f"{'in all':<28}" + "".join(f"{row['ns']:>15.0f} ns" for row in rows))
    for name, _, _ in PARTS:
        print(f"{name:<28}" + "".join(
            f"{row['ns'] * row['shares'][name] / 100:>9.0f} {row['shares'][name]:>5.1f} %"
            .rjust(18) for row in rows))


if __name__ == "__main__":
    main()
