"""Markdown of all results."""

import statistics

from cell import Cell, show_bytes
from spread import ratio, spread

CEILINGS = ("socket", "memcpy")
FAMILIES = ("ucx",)  # Of several ways the best at each size counts.


def is_ours(name):
    """Weft, or NIXL with it as its backend."""
    return "weft" in name.split("-")


def by_round(samples, fabric, peer, size, window):
    return {each["round"]: each["gigabytes_per_second"] for each in samples
            if (each["fabric"], each["peer"], each["size"], each["window"]) ==
            (fabric, peer, size, window)}


def cpu_of(samples, fabric, peer, size, window):
    return [each["cpu_seconds_per_gigabyte"] for each in samples
            if (each["fabric"], each["peer"], each["size"], each["window"]) ==
            (fabric, peer, size, window) and each["cpu_seconds_per_gigabyte"] is not None]


def names_of(samples, fabric, window):
    """Ours first and the ceilings last."""
    names = {s["peer"] for s in samples if (s["fabric"], s["window"]) == (fabric, window)}
    return sorted(names, key=lambda name: (name.startswith(CEILINGS), not is_ours(name), name))


def rivals_of(names):
    """Names by what they are compared as: the ways of a family are one."""
    rivals = {}
    for name in names:
        if is_ours(name):
            continue
        family = name.split("-")[0]
        rivals.setdefault(family if family in FAMILIES else name, []).append(name)
    return rivals


def best_of(ways, samples, fabric, size, window):
    """The way with the greatest median, and its figures by round; None if there are none."""
    found = {way: by_round(samples, fabric, way, size, window) for way in ways}
    found = {way: values for way, values in found.items() if values}
    if not found:
        return None
    way = max(found, key=lambda each: statistics.median(found[each].values()))
    return way, found[way]


def ratios(samples):
    """Ours to each rival's best at each point."""
    result = []
    points = dict.fromkeys((s["fabric"], s["window"], s["size"]) for s in samples)
    for fabric, window, size in points:
        names = names_of(samples, fabric, window)
        for mine in (name for name in names if is_ours(name)):
            ours = by_round(samples, fabric, mine, size, window)
            for rival, ways in rivals_of(names).items():
                best = best_of(ways, samples, fabric, size, window)
                found = best and ratio(ours, best[1])
                if found:
                    result.append({"fabric": fabric, "window": window, "size": size, "weft": mine,
                                   "peer": rival, "way": best[0], "ratio": found[0],
                                   "low": found[1], "high": found[2]})
    return result


def show_spread(values):
    if not values:
        return "-"
    middle, least, greatest = spread(values)
    return f"{middle:.2f} ({least:.2f}-{greatest:.2f})"


def show_ratio(found):
    if found is None:
        return "-"
    way = "" if found["way"] == found["peer"] else " " + found["way"].split("-", 1)[1]
    return f"{found['ratio']:.2f} ({found['low']:.2f}-{found['high']:.2f}){way}"


def table(heading, rows):
    return ["| " + " | ".join(each) + " |" for each in [heading, ["---"] * len(heading), *rows]]


def bandwidth_tables(samples, found, fabric, window):
    names = names_of(samples, fabric, window)
    sizes = sorted({s["size"] for s in samples if (s["fabric"], s["window"]) == (fabric, window)})
    yield f"### {fabric}, {window} in flight: GB/s"
    yield ""
    yield from table(["bytes", *names], [
        [show_bytes(size), *(show_spread(list(by_round(samples, fabric, name, size, window).values()))
                             for name in names)] for size in sizes])
    yield ""
    here = {(r["weft"], r["peer"], r["size"]): r for r in found
            if (r["fabric"], r["window"]) == (fabric, window)}
    rivals = list(rivals_of(names))
    for mine in (name for name in names if is_ours(name)):
        yield f"{mine} to each:"
        yield ""
        yield from table(["bytes", *rivals], [
            [show_bytes(size), *(show_ratio(here.get((mine, rival, size))) for rival in rivals)]
            for size in sizes])
        yield ""


def cpu_table(samples, fabric, window):
    sizes = sorted({s["size"] for s in samples if (s["fabric"], s["window"]) == (fabric, window)})
    names = [name for name in names_of(samples, fabric, window)
             if any(cpu_of(samples, fabric, name, size, window) for size in sizes)]
    if not names:
        return
    yield f"### {fabric}, {window} in flight: CPU seconds of both sides for each GB"
    yield ""
    yield from table(["bytes", *names], [
        [show_bytes(size), *(show_spread(cpu_of(samples, fabric, name, size, window))
                             for name in names)] for size in sizes])
    yield ""


def latency_table(latencies, fabric):
    here = [each for each in latencies if each["fabric"] == fabric]
    if not here:
        return
    size = show_bytes(here[0]["size"])
    yield f"### {fabric}, {size}, 1 in flight: microseconds"
    yield ""
    names = dict.fromkeys(each["peer"] for each in here)
    yield from table(["", "p50", "p99"], [
        [name, *(show_spread([e[part] for e in here if e["peer"] == name])
                 for part in ("p50_us", "p99_us"))]
        for name in sorted(names, key=lambda name: (not is_ours(name), name))])
    yield ""


NOTES = """\
GB/s are 10^9 bytes: median (least-greatest) of the rounds. Ratios: median of the rounds' ratios
(95 % bootstrap interval); of UCX's ways the one that is best at that size, which is named (tag-put:
tag with UCX_RNDV_SCHEME=put_zcopy).
Each operation in flight has memory of its own on both sides, but ucx_perftest and Weft where it is
called "-one-buffer" keep one buffer on each side: with 16 in flight they touch a sixteenth of the
memory, and stay in the CPU's caches for longer. Compare these two with each other, and the others
likewise. ucx_perftest compares no contents. memcpy:N: N threads, which share the memory of the
window; where fewer than N are in flight, each has as much as one of them, and together they touch
more. CPU: of Weft-perf's and of the driven processes, in which the initiator polls; with threads that
poll it grows with the time that a GB takes. "-manual": the waiting thread makes the progress; otherwise threads of the engine do.
Latency: Weft's, NIXL's and Mooncake's from the begin of a write until its initiator knows that it
is done, a whole round trip over tcp; UCX's is half of a ping-pong's, in which each side looks at its
own memory and no one waits for a completion. NIXL and Mooncake are driven from Python, NIXL by the
same script whatever its backend: nixl-weft has Weft for it. NIXL's own nixl-libfabric tells that a
write is done once tcp has taken its bytes: of "1 in flight" several are, and it has no latency
here."""


def checked_line(results):
    peers = dict.fromkeys(f"{each['peer']} ({each['fabric']})" for each in results.checked)
    return "Every byte compared, at each point once: " + (", ".join(peers) or "none") + "."


def in_one_line(text):
    """Where it begins, and where it ends: what a program says last is why."""
    lines = [line.strip() for line in text.splitlines()]
    return lines[0] if len(lines) == 1 else f"{lines[0]} {lines[-1]}"


def machine_line(machine, software):
    return (f"{machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']} "
            f"with {machine['congestion_control']}; "
            + "".join(f"{gpu}; " for gpu in machine["gpus"])
            + (f"beside {machine['busy']} processes that compute; " if machine["busy"] else "")
            + ", ".join(f"{name} {version}" for name, version in software.items()))


def markdown(results, machine, found):
    lines = ["## Weft beside its peers", "", machine_line(machine, results.software), ""]
    for fabric in dict.fromkeys(each["fabric"] for each in results.samples):
        for window in sorted({s["window"] for s in results.samples if s["fabric"] == fabric}):
            lines += bandwidth_tables(results.samples, found, fabric, window)
            lines += cpu_table(results.samples, fabric, window)
        lines += latency_table(results.latencies, fabric)
    lines += [NOTES, "", checked_line(results), ""]
    for each in results.skipped:
        lines.append(f"- {each['fabric']}, without {each['peer']}: {in_one_line(each['why'])}")
    for each in results.failures:
        point = Cell(each["size"], each["window"], each["count"])
        lines.append(f"- {each['fabric']}, {point.title}: {each['what']} of {each['peer']} has "
                     f"failed: {in_one_line(each['why'])}")
    return "\n".join(lines).rstrip() + "\n"
