"""NIXL's requests: the two sides, the order of measurements, their figures, and the tables of them."""

import statistics
from dataclasses import dataclass, field

from campaign import FAILURES, turns, why
from cell import show_bytes
from children import answers
from pair import START_SECONDS, Pair
from report import in_one_line, is_ours, machine_line, show_spread, table
from spread import quantile, ratio


class RequestsPair(Pair):
    def __init__(self, name, venv, engine):
        super().__init__(name, venv, "nixl_requests_side.py", engine)

    def introduce(self):
        super().introduce()
        self.target.ask(START_SECONDS, "meet", **self.initiator.ask(START_SECONDS, "introduce"))

    def notify(self, size, count, limit):
        """Seconds from the post of each write until the target has its notification."""
        self.target.tell("receive", count=count, limit=limit)
        self.initiator.tell("send", size=size, count=count, limit=limit)
        seen, posted = answers([self.target, self.initiator], 2 * limit)
        return [(after - before) / 1e9 for before, after in zip(posted, seen, strict=True)]


@dataclass
class Found:
    version: str = ""                             # NIXL's
    samples: list = field(default_factory=list)
    failures: list = field(default_factory=list)  # A backend that fails is left out from there on.


class Turns:
    def __init__(self, fabric, pairs, figures, settings, found, tell):
        self.fabric, self.pairs, self.figures = fabric, pairs, figures
        self.settings, self.found, self.tell = settings, found, tell

    def run(self):
        order = list(turns(self.figures, self.pairs, self.settings.rounds, self.settings.seed))
        memory_bytes = max(figure.bytes for figure in self.figures)
        try:
            for pair in list(self.pairs):
                self._attempt(pair, lambda p=pair: self._start(p, memory_bytes))
            for number, figure, pair in order:
                if pair in self.pairs:
                    self._attempt(pair, lambda n=number, f=figure, p=pair: self._take(n, f, p))
        finally:
            for pair in self.pairs:
                pair.end()

    def _attempt(self, pair, work):
        try:
            work()
        except FAILURES as failure:
            pair.end()
            self.pairs.remove(pair)
            self.tell(f"{self.fabric}: without {pair.name}: {why(failure)}")
            self.found.failures.append(
                {"fabric": self.fabric, "peer": pair.name, "why": why(failure)})

    def _start(self, pair, memory_bytes):
        pair.start(memory_bytes)
        self.found.version = pair.version()
        self.tell(f"{self.fabric}: comparing what {pair.name} moves")
        for figure in self.figures:
            if figure.check:
                pair.in_its_turn(lambda f=figure: f.check(pair, self.settings.limit))

    def _take(self, number, figure, pair):
        taken = pair.in_its_turn(lambda: figure.measure(pair, self.settings.limit, number))
        self.found.samples += [
            {"fabric": self.fabric, "peer": pair.name, "round": number, "of": what,
             "seconds": seconds} for what, seconds in taken.items()]


WARM_UP = 10  # One in so many of the first is not counted.
LEAST_CHECKS = 5


class List:
    """Writes of one request: so many blocks."""

    def __init__(self, size, count, posts):
        self.shape = {"size": size, "count": count}
        self.bytes, self.posts = size * count, posts
        self.title = f"list of {count} blocks of {show_bytes(size)}"

    def check(self, pair, limit):
        pair.compared(self.bytes, limit, lambda: self.taken(pair, limit, posts=1, seed=1))

    def taken(self, pair, limit, posts, seed):
        return pair.initiator.ask(2 * limit, "post_list", **self.shape, posts=posts, seed=seed,
                                  limit=limit)

    def measure(self, pair, limit, number):
        found = self.taken(pair, limit, self.posts, seed=number)
        return {f"{self.title}: made": found["made"],
                f"{self.title}: posted": statistics.median(found["posted"]),
                f"{self.title}: posted and done": statistics.median(found["done"])}


class Notification:
    """From the post of a write until the other side has seen its notification."""

    def __init__(self, size, count):
        self.bytes, self.count = size, count
        self.title = f"write of {show_bytes(size)}: posted until notified"

    def check(self, pair, limit):
        pair.compared(self.bytes, limit, lambda: pair.notify(self.bytes, 1, limit))

    def measure(self, pair, limit, number):
        del number
        found = pair.notify(self.bytes, self.count, limit)[self.count // WARM_UP:]
        return {f"{self.title}, p{part}": quantile(found, part / 100) for part in (50, 99)}


class Poll:
    """For notifications where there are none."""

    bytes, check = 0, None

    def __init__(self, calls):
        self.calls = calls

    def measure(self, pair, limit, number):
        del number
        return {f"get_new_notifs finds none, {who}": side.ask(limit, "poll", calls=self.calls)
                for who, side in (("target", pair.target), ("initiator", pair.initiator))}


class Check:
    """Of a request that is under way, where it is after its post."""

    check = None

    def __init__(self, size, count):
        self.shape, self.bytes = {"size": size, "count": count}, size * count

    def measure(self, pair, limit, number):
        found = pair.initiator.ask(2 * limit, "check_list", **self.shape, seed=number, limit=limit)
        if len(found) < LEAST_CHECKS:
            return {}
        return {f"check_xfer_state under way, p{part}": quantile(found, part / 100)
                for part in (50, 99)}


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
