"""One run: the engines that are needed, the cases between them, and what came out."""

import contextlib
import dataclasses
import time

import cases
import groups
import updates
from engines import Engine
from fabrics import FABRICS, Skipped, opened

UPDATES = ("updates", "trainer_killed")
# The cases of a group share engines.
GROUPS = {
    groups.pull: ("tokens", "changed", "killed", "frozen"),
    groups.push: ("push",),
    groups.own: ("own", "recomputed", "aborted", "references"),
    groups.chaos: ("chaos",),
    groups.unfenced: ("unfenced",),
    groups.nixl_references: ("nixl_references",),
    groups.mla: ("mla",),
    groups.blocks: ("blocks",),
    groups.waits: ("waits", "stalls"),
    groups.new_weights: UPDATES,
}
COMPARED_WITH_ONE = (groups.pull, groups.push, groups.own, groups.chaos, groups.unfenced,
                     groups.nixl_references)
ABOUT = {
    "tokens": "tokens equal those of one engine, Weft's counters equal the KV bytes",
    "changed": "decode's tokens change with the bytes that are moved",
    "killed": "prefill is killed while two decodes load from it; another one follows",
    "frozen": "prefill stands still while two decodes load from it, and goes on",
    "push": "NixlPushConnector: prefill writes; otherwise as tokens",
    "own": "WeftConnector; otherwise as tokens",
    "recomputed": "WeftConnector with the policy recompute: a used reference gives right tokens",
    "aborted": "WeftConnector: requests are aborted while they load; no block is lost",
    "references": "WeftConnector: changed, used, late, foreign references: right or refused",
    "chaos": "WeftConnector: both sides are frozen, killed and started anew under 8 requests",
    "unfenced": "WeftConnector without its proof gives wrong tokens, so the table can fail",
    "nixl_references": "the same table for NixlConnector, over Weft and over UCX, as it comes",
    "mla": "a model with one latent vector for all heads: tokens equal those over UCX",
    "blocks": "prefill's blocks are half as long as decode's: tokens equal those over UCX",
    "waits": "decode's wait for its KV cache, beside UCX: 600 and 2,000 tokens, 8 at a time",
    "stalls": "the same beside six processes that compute",
    "updates": "a trainer's new weights: tokens equal those of a fresh load, three steps in a row",
    "trainer_killed": "a trainer is killed in the midst of a step: the tokens stay",
}
# Where a stopped process would stop the transfer, and where one way is enough.
OWN = ("own", "recomputed", "aborted", "references", "chaos", "unfenced")
OVER = {"unfenced": ("shm",), "nixl_references": ("shm",), "frozen": ("tcp", "efa"),
        "killed": ("tcp", "efa"), "mla": ("tcp",), "blocks": ("tcp",), "waits": ("tcp", "shm"),
        "stalls": ("tcp", "shm")}
# Those look at Weft's counters to see that a read is under way, compare with UCX, or have no NIXL.
OF_WEFT = ("frozen", "killed", "mla", "blocks", "waits", "stalls", "nixl_references", *OWN,
           *UPDATES)


class Campaign:
    def __init__(self, site, build, tell, minutes):
        self.site, self.build, self.tell, self.minutes = site, build, tell, minutes
        self.results = []  # (name, fabric, "ok" or "FAILED" or "skipped").
        self._alone = None
        self._fresh_loads = None
        self._ends = contextlib.ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._ends.close()

    def engine(self, fabric, role, **settings):
        return Engine(self.site, role, variables=fabric.variables, **settings)

    def engine_over_ucx(self, role, **settings):
        site = dataclasses.replace(self.site, backend="UCX", plugins="")
        return Engine(site, role, **settings)

    def begin_alone(self):
        if self._alone is None:
            self._alone = Engine(self.site, "alone")
            self._ends.callback(self._alone.end)

    def alone(self):
        """Ready from its first use on."""
        self.begin_alone()
        if isinstance(self._alone, Engine):
            self._alone.await_ready()
            self._alone = cases.alone(self._alone)
        return self._alone

    def fresh_loads(self):
        """What each version of the weights gives."""
        if self._fresh_loads is None:
            self._fresh_loads = updates.fresh_loads(self.site, self.tell)
        return self._fresh_loads

    def run(self, names, over):
        for fabric in over:
            for group, all_of_group in GROUPS.items():
                wanted = {name for name in names if name in all_of_group and runs(name, fabric)}
                if wanted:
                    self._run_group(group, fabric, wanted)

    def _run_group(self, group, name, wanted):
        if group in COMPARED_WITH_ONE:
            self.begin_alone()  # Beside the others.
        done = len(self.results)
        try:
            with opened(name, self.build) as fabric:
                group(self, fabric, wanted)
        except Skipped as skipped:
            self._rest(done, name, wanted, "skipped", skipped)
        except Exception as error:  # Whatever keeps the others from their turn.
            self._rest(done, name, wanted, "FAILED", error)

    def _rest(self, done, fabric, wanted, how, why):
        """The cases of a group that had no turn."""
        for name in sorted(wanted - {name for name, _, _ in self.results[done:]}):
            self._add(name, fabric, how, f"{type(why).__name__}: {why}")

    def attempt(self, name, fabric, wanted, work):
        if name not in wanted:
            return
        begun = time.monotonic()
        try:
            how, what = "ok", work()
        except Exception as error:  # A case that fails in its own way is one that failed.
            how, what = "FAILED", f"{type(error).__name__}: {error}"
        self._add(name, fabric.name, how, f"{what} ({time.monotonic() - begun:.0f} s)")

    def _add(self, name, fabric, how, what):
        self.results.append((name, fabric, how))
        self.tell(f"{how}: {name} over {fabric}: {what}")

    def count(self, how):
        return sum(1 for result in self.results if result[2] == how)


def runs(name, fabric):
    if fabric not in FABRICS:
        return name not in OF_WEFT
    return fabric in OVER.get(name, FABRICS)
