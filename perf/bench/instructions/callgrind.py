"""Runs a program under callgrind, and reads what it has counted."""

import collections
import os
import re
import subprocess
import tempfile


class Costs:
    """Instructions of each function itself, and of its calls by (caller, callee); how often each
    was called; the file that each is in."""

    def __init__(self):
        self.own = collections.Counter()
        self.calls = collections.Counter()
        self.times = collections.Counter()
        self.places = {}

    def total(self):
        return sum(self.own.values())

    def within(self, function):
        """With all that it calls."""
        return self.own[function] + sum(
            cost for (caller, _), cost in self.calls.items() if caller == function)


# "fn=(12) name" the first time, "fn=(12)" later; likewise "cfn" for the function that is called. In a line of
# costs the last number counts; the one after "calls" is what the call came to.
# "ob" is the file that what follows is in, "cob" that of the next function that is called, where
# it is another.
_NAMED = re.compile(r"(c?fn)=\((\d+)\)(?: (.*))?$")
_PLACED = re.compile(r"(c?ob)=\((\d+)\)(?: (.*))?$")
_COST = re.compile(r"[+*\-\d]\S* (\d+)$")


def read(lines):
    costs, names, files = Costs(), {}, {}
    function = called = place = place_of_called = None
    is_call = False
    for line in lines:
        if placed := _PLACED.match(line):
            which, number, name = placed.groups()
            if name is not None:
                files[number] = os.path.basename(name)
            if which == "ob":
                place = files[number]
            else:
                place_of_called = files[number]
        elif named := _NAMED.match(line):
            which, number, name = named.groups()
            if name is not None:
                names[number] = name
            if which == "fn":
                function = names[number]
                costs.places[function] = place
            else:
                called = names[number]
                costs.places[called] = place_of_called or place
        elif line.startswith("calls="):
            costs.times[called] += int(line.removeprefix("calls=").split()[0])
            place_of_called = None
            is_call = True
        elif cost := _COST.match(line):
            if is_call:
                costs.calls[function, called] += int(cost.group(1))
            else:
                costs.own[function] += int(cost.group(1))
            is_call = False
    return costs


def count(program, *arguments, within, timeout):
    """What the program's thread does while it is in that function (or those, as "scope::*"), and
    what the program says."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "costs")
        result = subprocess.run(
            ["valgrind", "--tool=callgrind", "--fair-sched=try", f"--callgrind-out-file={out}",
             f"--toggle-collect={within}", program, *arguments],
            capture_output=True, text=True, timeout=timeout)
        if result.returncode != 0:
            raise RuntimeError(result.stderr.strip())
        with open(out, encoding="utf-8", errors="replace") as file:
            return read(file), result.stdout


def by_stage(costs, stage_of):
    """Counts each function to the stage that `stage_of` names, else to those of its callers, in
    proportion to what their calls came to. What has no stage above it is under None."""
    callers = collections.defaultdict(list)
    for (caller, callee), cost in costs.calls.items():
        if caller != callee:
            callers[callee].append((caller, cost))
    shares = {each: {stage_of(each): 1.0} for each in set(costs.own) | set(callers)}
    # Deeper than any chain of calls between two stages.
    for _ in range(60):
        for function, above in callers.items():
            known = sum(cost for _, cost in above)
            if stage_of(function) is not None or known == 0:
                continue
            mixed = collections.Counter()
            for caller, cost in above:
                for stage, share in shares.get(caller, {None: 1.0}).items():
                    mixed[stage] += share * cost / known
            shares[function] = mixed
    stages = collections.Counter()
    for function, cost in costs.own.items():
        for stage, share in shares[function].items():
            stages[stage] += cost * share
    return stages
