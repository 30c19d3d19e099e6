"""Instructions that the engine takes for a posted operation, by stage, over rails that move nothing.

callgrind counts them, so that a loaded machine counts as a quiet one does. Needs valgrind.
"""

import argparse
import json
import os
import re
import shutil
import sys

import callgrind

SKIPPED = 77
PATIENCE = 300  # Seconds that a count may take.
#Transfers that are counted, by the pieces of each.
TRANSFERS = {1: 500, 16: 100, 4096: 3}

#What begins with one of these counts to its stage, with all that it calls up to the next stage.
STAGES = {
    "submit": ["Engine::submit"],
    "watch": ["core::Worker::watch"],
    "hand over": ["core::Worker::offer", "core::Worker::begin", "core::Worker::empty_inbox"],
    "choose": ["core::RailScheduler::begin", "core::RailScheduler::pump"],
    "cut": ["core::TransferState::take"],
    "post": ["core::RailScheduler::send_off", "core::RailScheduler::make_op", "core::Rma::post"],
    "rail": ["perf::NullEndpoint::"],
    "complete": ["core::Rma::completed", "core::RailScheduler::chunk_ended"],
    "end": ["core::TransferState::end", "core::TransferState::perform"],
    "account": ["core::Transfers::transfer_ended"],
    "forget": ["Transfer::~Transfer"],
    "look": ["Engine::progress"],
    "ask": ["measured_loop"],
}
MEANING = {
    "submit": "checks, the choice of rails, the transfer's state",
    "watch": "its deadline",
    "hand over": "to the rail's thread, and to the scheduler's queue",
    "choose": "which transfer is next, and how much room there is",
    "cut": "pieces into runs, runs into chunks",
    "post": "the operation, its keys and addresses",
    "rail": "the rail that moves nothing",
    "complete": "what an operation's end changes",
    "end": "the transfer's end: state, waiting threads, memory released",
    "account": "the ledger, admission",
    "forget": "the handle",
    "look": "rounds of progress, besides all of the above",
    "ask": "the measuring loop",
}
_FIRST_WORDS = {start: stage for stage, starts in STAGES.items() for start in starts}


def stage_of(function):
#"non-virtual thunk to " and results come before the name.
    name = re.sub(r"^(non-virtual thunk to )?", "", function).replace("weft::", "", 1)
    for start, stage in _FIRST_WORDS.items():
        if name.startswith(start):
            return stage
    return None


def measure(loop, pieces):
    """Instructions of an operation by stage."""
    transfers = TRANSFERS[pieces]
    costs, _ = callgrind.count(loop, "--pieces", str(pieces), "--transfers", str(transfers),
                               within="measured_loop", timeout=PATIENCE)
    stages = callgrind.by_stage(costs, stage_of)
#main() and what is above it : a few instructions.
    stages["ask"] += stages.pop(None, 0)
    return {
stage: stages[stage] / (transfers * pieces) for stage in STAGES
}

def print_table(measured):
    print("Instructions of a posted operation, in a transfer of so many:\n")
    print(f"{'':<10}" + "".join(f"{pieces:>9}        " for pieces in measured))
    totals = {pieces: sum(stages.values()) for pieces, stages in measured.items()}
    for stage in STAGES:
        columns = (f"{stages[stage]:>9.0f} {100 * stages[stage] / totals[pieces]:>4.0f} %  "
                   for pieces, stages in measured.items())
        print(f"{stage:<10}" + "".join(columns) + MEANING[stage])
    print(f"{'in all':<10}" + "".join(f"{total:>9.0f}        " for total in totals.values()))


def compare(measured, budget, build):
    """Names what takes more than its budget, with slack."""
    slack = budget["slack"]
    worse = 0
    for pieces, stages in measured.items():
        allowed, counted = budget["builds"][build][str(pieces)], sum(stages.values())
        if counted > allowed * (1 + slack):
            worse += 1
            print(f"An operation in a transfer of {pieces} takes {counted:.0f} instructions: "
                  f"{100 * (counted / allowed - 1):.0f} % more than its budget of {allowed}, and "
                  f"{100 * slack:.0f} % are allowed.")
    return worse


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loop", help="weft-instructions-loop")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--build", help="how it was compiled, e.g. gcc-O3: a name in the budget")
    parser.add_argument("--budget", help="ends with 1 where an operation takes more than this says")
    parser.add_argument("--renew", action="store_true",
                        help="write what was counted into the budget")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed")
        return SKIPPED
    budget = None
    if options.budget is not None:
        with open(options.budget, encoding="utf-8") as file:
            budget = json.load(file)
        if options.build not in budget["builds"] and not options.renew:
            print(f"skipped: there is no budget for {options.build}")
            return SKIPPED

    measured = {pieces: measure(options.loop, pieces) for pieces in TRANSFERS}
    if options.json:
        print(json.dumps({str(pieces): stages for pieces, stages in measured.items()}, indent=2))
    else:
        print_table(measured)
    if budget is None:
        return 0
    if options.renew:
        budget["builds"][options.build] = {
            str(pieces): round(sum(stages.values())) for pieces, stages in measured.items()}
        with open(options.budget, "w", encoding="utf-8") as file:
            json.dump(budget, file, indent=2, sort_keys=True)
            file.write("\n")
        return 0
    return 1 if compare(measured, budget, options.build) else 0


if __name__ == "__main__":
    sys.exit(main())
