"""Markdown of NIXL's requests."""

from report import in_one_line, is_ours, machine_line, show_spread, table
from spread import ratio

NOTES = """\
Microseconds: median (least-greatest) of the rounds; a round's is the median of its posts, p50 or
p99 of its writes or calls. Ratios: median of the rounds' ratios (95 % bootstrap interval), below 1
where Weft takes less. Both sides are processes of this machine, driven from Python by the same
script; a side that polls gives its core away between two polls. The target has a progress thread
where its backend heeds that; the initiator has none, so that a backend which moves bytes inside of
posts and checks shows it there: a backend without a figure for checks moves all inside of the
post. "made" is make_prepped_xfer, out of blocks that were prepared before, in shuffled order.
nixl-libfabric's list is done once tcp has taken its bytes."""


def by_round(samples, fabric, peer, what):
    return {each["round"]: each["seconds"] * 1e6 for each in samples
            if (each["fabric"], each["peer"], each["of"]) == (fabric, peer, what)}


def ratios(samples):
    """Ours to each other's."""
    found = []
    for fabric, what in dict.fromkeys((each["fabric"], each["of"]) for each in samples):
        names = sorted({each["peer"] for each in samples if each["fabric"] == fabric})
        for mine, other in ((a, b) for a in names for b in names if is_ours(a) and not is_ours(b)):
            taken = ratio(*(by_round(samples, fabric, name, what) for name in (mine, other)))
            if taken:
                found.append({"fabric": fabric, "of": what, "weft": mine, "peer": other,
                              "ratio": taken[0], "low": taken[1], "high": taken[2]})
    return found


def fabric_table(samples, found, fabric):
    here = [each for each in samples if each["fabric"] == fabric]
    names = sorted({each["peer"] for each in here}, key=lambda name: (not is_ours(name), name))
    pairs = dict.fromkeys((r["weft"], r["peer"]) for r in found if r["fabric"] == fabric)
    shown = {(r["of"], r["weft"], r["peer"]): f"{r['ratio']:.3g} ({r['low']:.3g}-{r['high']:.3g})"
             for r in found if r["fabric"] == fabric}
    rows = [[what, *(show_spread(list(by_round(here, fabric, name, what).values()))
                     for name in names),
             *(shown.get((what, *pair), "-") for pair in pairs)]
            for what in sorted({each["of"] for each in here})]
    return table(["", *names, *(f"{mine} to {other}" for mine, other in pairs)], rows)


def markdown(found, machine, compared):
    lines = ["## NIXL's requests, by backend", "",
             machine_line(machine, {"nixl": found.version or "unknown"}), ""]
    for fabric in dict.fromkeys(each["fabric"] for each in found.samples):
        lines += [f"### {fabric}", "", *fabric_table(found.samples, compared, fabric), ""]
    lines += [NOTES, ""]
    lines += [f"- {each['fabric']}, without {each['peer']}: {in_one_line(each['why'])}"
              for each in found.failures]
    return "\n".join(lines).rstrip() + "\n"
