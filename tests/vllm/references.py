"""What becomes of a reference to prefill's KV cache that is used late, twice, or changed."""

import collections
import copy
import itertools
import random
import time

from cases import ANSWER_TOKENS, LONG, check, check_same, names, prefilled, prompt_of, request
from engines import BLOCK_SIZE, TOKENS_OF_CACHE

LENGTH = 600
REPLAY_SECONDS = 60
# In chaos: what a killed decode had asked for is free again after it. Long enough for prompts in all
# blocks, one after the other.
LEASE_SECONDS = 30
RIGHT, REFUSED, WRONG = "right", "refused", "WRONG TOKENS"


class Table:
    """Of one connector, whose requests fail if a load fails. `reference`: the tokens that should
    come. `another`: starts a prefill at the address of the one that was stopped."""

    def __init__(self, prefill, decode, reference, another=None):
        self.prefill, self.decode, self.reference = prefill, decode, reference
        self.another, self.seed = another, 1000
        self.rows = {}

    def prompt(self):
        self.seed += 1
        return prompt_of(LENGTH, self.seed)

    def referred(self):
        """A prompt, and the reference to it."""
        prompt = self.prompt()
        return prompt, prefilled(self.prefill, prompt, next(names))

    def used(self, row, prompt, kv):
        """How it ends, in the row."""
        self.rows[row] = self.outcome(prompt, self.decode.generate(
            [request(prompt, copy.deepcopy(kv))])[0])
        return self.rows[row]

    def outcome(self, prompt, answer):
        if answer["ended"] != "length":
            return REFUSED
        return RIGHT if answer["tokens"] == self.reference.tokens(prompt) else WRONG

    def use_blocks_again(self):
        """Other prompts have all of prefill's blocks, one after the other."""
        for number in range(6):
            prompt = prompt_of(LONG, 5000 + number)
            kv = prefilled(self.prefill, prompt, next(names))
            self.decode.generate([request(prompt, kv, 1)])

    def common(self):
        """The rows that any connector can be asked for."""
        prompt, kv = self.referred()
        check(self.used("used once", prompt, kv) == RIGHT, "a good reference is not right")
        self.used("used again at once", prompt, kv)
        self.use_blocks_again()
        self.used("used again, its blocks by others", prompt, kv)
        other, _ = self.referred()
        self.used("another prompt's", other, self.referred()[1])
        prompt, kv = self.referred()
        changed = copy.deepcopy(kv)
        change_blocks(changed, lambda block: block + TOKENS_OF_CACHE // BLOCK_SIZE)
        self.used("block numbers out of range", prompt, changed)
        changed = copy.deepcopy(kv)
        change_blocks(changed, lambda block: block + 1)
        self.used("other block numbers", prompt, changed)

    def own(self):
        """Those of WeftConnector alone."""
        prompt, kv = self.referred()
        for name, value in kv["weft"].items():
            changed = copy.deepcopy(kv)
            changed["weft"][name] = value + 1 if isinstance(value, (int, float)) else [value, value]
            self.used(f"{name} changed", prompt, changed)
        for name in ("weft", "weft_seal"):
            changed = {key: value for key, value in kv.items() if key != name}
            self.used(f"without {name}", prompt, changed)
        check(self.used("the same, unchanged", prompt, kv) == RIGHT, "it is not right any more")
        self._at_once()
        prompt, kv = self.referred()
        self.used("before the replay", prompt, kv)
        time.sleep(REPLAY_SECONDS)
        self.used("replayed a minute later", prompt, kv)
        prompt, kv = self.referred()
        self.prefill.kill()
        self.prefill = self.another()
        self.used("prefill is another one", prompt, kv)
        prompt, kv = self.referred()
        self.used("the other one's", prompt, kv)

    def _at_once(self):
        prompt, kv = self.referred()
        answers = self.decode.generate([request(prompt, copy.deepcopy(kv)) for _ in range(2)])
        self.rows["two at a time"] = " and ".join(self.outcome(prompt, each) for each in answers)

    def told(self):
        return "; ".join(f"{row}: {how}" for row, how in self.rows.items())

    def check_none_wrong(self):
        wrong = [row for row, how in self.rows.items() if WRONG in how]
        check(not wrong, f"wrong tokens: {', '.join(wrong)}")
        return self.told()


def change_blocks(kv, change):
    """In all places where a connector may look."""
    kv["remote_block_ids"] = [[change(block) for block in group]
                              for group in kv["remote_block_ids"]]
    if "weft" in kv:
        kv["weft"]["blocks"] = kv["remote_block_ids"]


def without_the_proof(prefill, decode, reference):
    """The test of the test: with the fence taken out a used reference gives wrong tokens."""
    table = Table(prefill, decode, reference)
    prompt, kv = table.referred()
    table.used("used once", prompt, kv)
    table.use_blocks_again()
    how = table.used("used again, its blocks by others", prompt, kv)
    check(how == WRONG, f"without the proof it ended as '{how}': nothing was proven")
    return table.told()


def refused_then_recomputed(prefill, decode, reference):
    """The policy `recompute`: the tokens are right, whatever the reference is worth."""
    table = Table(prefill, decode, reference)
    prompt, kv = table.referred()
    for row in ("used once", "used again"):
        check(table.used(row, prompt, kv) == RIGHT, f"{row}: {table.told()}")
    return table.told()


def check_no_block_lost(prefill, decode, reference):
    """Prefill still has room for as many requests at a time as its cache has blocks for."""
    blocks = TOKENS_OF_CACHE // BLOCK_SIZE - 1  # vLLM keeps one.
    lengths = []
    while blocks > 0:
        lengths.append(min(LONG, blocks * BLOCK_SIZE))
        blocks -= -(-lengths[-1] // BLOCK_SIZE)
    asked = [(prompt_of(length, 8000 + number), next(names))
             for number, length in enumerate(lengths)]
    references = [prefilled(prefill, prompt, name) for prompt, name in asked]  # None has left.
    for (prompt, name), kv in zip(asked, references, strict=True):
        tokens = min(ANSWER_TOKENS, 2048 - len(prompt))
        answer = decode.generate([request(prompt, kv, tokens, name)])[0]
        check_same(answer, reference.tokens(prompt)[:tokens], f"{len(prompt)} tokens")
    return f"{len(lengths)} requests in all blocks at a time"


def aborts(prefill, decode, reference, seconds):
    """Requests are aborted at any moment of their load; afterwards no block is missing."""
    chance, until, count = random.Random(7), time.monotonic() + seconds, 0
    while time.monotonic() < until:
        asked = []
        for _ in range(4):
            prompt, name = prompt_of(LENGTH, 9000 + count), next(names)
            count += 1
            asked.append(request(prompt, prefilled(prefill, prompt, name), name=name))
        decode.begin("begin", requests=asked)
        decode.answer()
        time.sleep(chance.random() * 0.05)
        decode.begin("abort", names=[each["name"] for each in asked[:3]])
        decode.answer()
        decode.begin("collect")
        answers = decode.answer()
        check_same(answers[0], reference.tokens(asked[3]["prompt"]), "the one that was kept")
    lost = check_no_block_lost(prefill, decode, reference)
    return f"{count} requests, three of four aborted; {lost}"


class Chaos:
    """Eight requests at a time, while prefill and decode are frozen, killed and started anew.
    `start`: one of that role at the address of the one before."""

    FREEZE_SECONDS = 5

    def __init__(self, prefill, decode, reference, start):
        self.engines = {"prefill": prefill, "decode": decode}
        self.reference, self.start = reference, start
        self.chance = random.Random(5)
        self.counts = collections.Counter()

    def run(self, seconds):
        until = time.monotonic() + seconds
        faults = itertools.cycle(("none", "freeze prefill", "freeze decode", "kill prefill", "none",
                                  "kill decode"))
        while time.monotonic() < until:
            self._round(next(faults))
        time.sleep(LEASE_SECONDS)  # What decodes that were killed had asked for.
        lost = check_no_block_lost(*self.engines.values(), self.reference)
        return f"{dict(self.counts)}; {lost}"

    def _round(self, fault):
        asked = []
        for _ in range(8):
            prompt = prompt_of(LENGTH, 20_000 + self.counts["requests"])
            self.counts["requests"] += 1
            name = next(names)
            asked.append((prompt, request(prompt, prefilled(self.engines["prefill"], prompt, name),
                                          name=name)))
        decode = self.engines["decode"]
        decode.begin("generate", requests=[each for _, each in asked])
        time.sleep(self.chance.random() * 0.05)
        how, _, role = fault.partition(" ")
        if how == "freeze":
            self.engines[role].freeze()
            time.sleep(self.FREEZE_SECONDS)
            self.engines[role].thaw()
        elif how == "kill":
            self.engines[role].kill()
        self.counts[fault] += 1
        if fault != "kill decode":
            for (prompt, _), answer in zip(asked, decode.answer(), strict=True):
                self._ended(fault, prompt, answer)
        if how == "kill":
            self.engines[role] = self.start(role)

    def _ended(self, fault, prompt, answer):
        if answer["ended"] == "length":
            check_same(answer, self.reference.tokens(prompt), fault)
            self.counts["right"] += 1
        else:
            check(fault != "none", f"a request ended with '{answer['ended']}' without a fault")
            self.counts["refused"] += 1
