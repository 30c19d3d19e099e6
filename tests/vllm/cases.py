"""What is tested between running engines. Each case raises Wrong where vLLM does not do what it
should, and returns a sentence about what it saw."""

import contextlib
import itertools
import random
import statistics
import subprocess
import sys
import time

from engines import TO_BE_FETCHED
from models import LONGEST, MODELS, VOCABULARY, kv_bytes

ANSWER_TOKENS = 12
LONG = LONGEST - ANSWER_TOKENS
# One token, around the edges of a block of 64 and of one of 16, and many blocks. In sum more than
# prefill's cache has room for.
LENGTHS = (1, 15, 16, 17, 63, 64, 65, 200, 1000, 1024, LONG, LONG, LONG, LONG)
COUNTED_SECONDS = 10
UNDER_WAY_SECONDS = 20
ENDED_SECONDS = 90  # A transfer's deadline is 30 s, and what is computed again takes its time.


class Wrong(Exception):
    """What vLLM or Weft did not do as it should."""


names = (f"request-{number}" for number in itertools.count(1))


def prompt_of(length, seed=0):
    return random.Random(10_000 * length + seed).choices(range(3, VOCABULARY), k=length)


def request(prompt, kv=None, tokens=ANSWER_TOKENS, name=None):
    return {"name": name or next(names), "prompt": prompt, "tokens": tokens, "kv": kv}


def check(condition, why):
    if not condition:
        raise Wrong(why)


def await_that(condition, seconds, why):
    until = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < until, f"not within {seconds} s: {why()}")
        time.sleep(0.02)


class Reference:
    """The tokens that should come; each prompt is asked once."""

    def __init__(self, ask):
        self.ask, self.known = ask, {}

    def tokens(self, prompt):
        key = tuple(prompt)
        if key not in self.known:
            self.known[key] = self.ask(prompt)["tokens"]
        return self.known[key]


def alone(engine):
    """One engine that does everything itself."""
    return Reference(lambda prompt: engine.generate([request(prompt)])[0])


def another_pair(prefill, decode):
    return Reference(lambda prompt: handed_over(prefill, decode, prompt))


def prefilled(prefill, prompt, name):
    """What decode needs to fetch the prompt's KV cache."""
    answer = prefill.generate([request(prompt, TO_BE_FETCHED, 1, name)])[0]
    check(answer["kv"], f"prefill hands nothing over: it ended with '{answer['ended']}'")
    return answer["kv"]


def handed_over(prefill, decode, prompt):
    """Decode's answer. Both sides know a request by one name, as behind a router."""
    name = next(names)
    return decode.generate([request(prompt, prefilled(prefill, prompt, name), name=name)])[0]


def check_same(answer, wanted, what):
    check(answer["ended"] == "length", f"{what}: ended with '{answer['ended']}'")
    check(answer["tokens"] == wanted,
          f"{what}: decode's tokens are {answer['tokens']}, and should be {wanted}")


class Pair:
    """Prefill and decode, and which of the two moves the bytes."""

    def __init__(self, prefill, decode, reference, fabric, model="llama", direction="read",
                 proof=0):
        self.prefill, self.decode, self.reference = prefill, decode, reference
        self.fabric, self.model, self.direction = fabric, MODELS[model], direction
        self.proof = proof  # Bytes that a request moves besides its blocks.
        self.mover = decode if direction == "read" else prefill
        self.idle = prefill if direction == "read" else decode

    def bytes_of(self, prompt):
        """What prefill has is moved in its blocks."""
        return kv_bytes(self.model, len(prompt), self.prefill.block_size)

    def serve(self, prompt, what):
        """Tokens and bytes of one request are right; the bytes."""
        wanted, length = self.reference.tokens(prompt), self.bytes_of(prompt)
        before = self.moved()
        check_same(handed_over(self.prefill, self.decode, prompt), wanted, what)
        if self.fabric.counted:
            self._check_moved(before, length, what)
        return length

    def moved(self):
        return self.mover.counters().moved(self.direction) if self.fabric.counted else 0

    def _check_moved(self, before, wanted, what):
        """Weft's counter equals the bytes: no less, and no more."""
        def told():
            return f"{what}: Weft counts {self.moved() - before} bytes, the KV cache has {wanted}"
        wanted += self.proof
        await_that(lambda: self.moved() - before >= wanted, COUNTED_SECONDS, told)
        check(self.moved() - before == wanted, told())


def tokens(pair):
    rails_before = pair.mover.counters().by_rail() if pair.fabric.counted else None
    total = sum(pair.serve(prompt_of(length, number), f"{length} tokens")
                for number, length in enumerate(LENGTHS))
    if not pair.fabric.counted:
        return f"{len(LENGTHS)} prompts"
    check_rails(pair, rails_before, total)
    check_idle(pair)
    return f"{len(LENGTHS)} prompts, {total} bytes, all counted"


def check_idle(pair):
    """Nobody moves what the other one does."""
    other = {"read": "write", "write": "read"}[pair.direction]
    for engine, direction in ((pair.mover, other), (pair.idle, "read"), (pair.idle, "write")):
        count = engine.counters().moved(direction)
        check(count <= (len(LENGTHS) + 1) * pair.proof,
              f"{engine.name} has moved {count} bytes by {direction}s")


def check_rails(pair, before, total):
    """The bytes went over NICs of the fabric, and over no others."""
    after = pair.mover.counters().by_rail()
    used = {rail: after[rail] - before.get(rail, 0) for rail in after}
    carried = {rail: count for rail, count in used.items() if count}
    wrong = {provider for provider, _ in carried if provider not in pair.fabric.providers}
    check(not wrong, f"{', '.join(wrong)} carried bytes: {carried}")
    check(sum(carried.values()) >= total, f"the rails carried {carried}, of {total} bytes")
    check(len(carried) >= pair.fabric.nics,
          f"fewer than {pair.fabric.nics} NICs carried bytes: {carried}")


def changed(pair):
    """Decode's tokens follow what is moved, not only what the prompt says."""
    prompt = prompt_of(200)
    wanted = pair.reference.tokens(prompt)
    answers = [after_overwriting(pair, prompt, value) for value in (0.5, 0.5, -0.5)]
    check(wanted not in answers, "decode's tokens are right though what it was sent was not")
    check(answers[0] == answers[1], f"the same bytes gave {answers[0]} and {answers[1]}")
    check(answers[1] != answers[2], f"other bytes gave the same tokens, {answers[2]}")
    pair.serve(prompt, "unchanged again")
    return "the same bytes gave the same tokens, others gave others"


def after_overwriting(pair, prompt, value):
    name = next(names)
    kv = prefilled(pair.prefill, prompt, name)
    pair.prefill.overwrite(value)
    return pair.decode.generate([request(prompt, kv, name=name)])[0]["tokens"]


class Failures:
    """A prefill that goes while two decodes load from it: one gives up, one computes again."""

    def __init__(self, pair, recompute):
        self.pair, self.recompute = pair, recompute
        self.prompt = prompt_of(LONG, 99)

    def _begin(self):
        """Both decodes read from a prefill that stands still."""
        prefill, decodes = self.pair.prefill, (self.pair.decode, self.recompute)
        asked = []
        for decode in decodes:
            name = next(names)
            asked.append((decode, request(self.prompt, prefilled(prefill, self.prompt, name),
                                          name=name)))
        prefill.freeze()
        for decode, asking in asked:
            decode.begin("generate", requests=[asking])
        for decode in decodes:
            await_that(lambda decode=decode: decode.counters().under_way() > 0,
                       UNDER_WAY_SECONDS, lambda: "both decodes read")

    def _check_ended(self):
        """How long it took until both had ended."""
        begun = time.monotonic()
        answer = self.pair.decode.answer(ENDED_SECONDS)[0]
        check(answer["ended"] == "error",
              f"'fail': the request ended with '{answer['ended']}', {answer['tokens']}")
        check_same(self.recompute.answer(ENDED_SECONDS)[0],
                   self.pair.reference.tokens(self.prompt), "'recompute'")
        return time.monotonic() - begun

    def _check_alive(self):
        """Each decode answers what needs no prefill."""
        prompt = prompt_of(100)
        for decode in (self.pair.decode, self.recompute):
            check_same(decode.generate([request(prompt)])[0], self.pair.reference.tokens(prompt),
                       f"{decode.name}, by itself")

    def _check_served(self, what):
        for decode in (self.pair.decode, self.recompute):
            for number in range(3):
                served = Pair(self.pair.prefill, decode, self.pair.reference, self.pair.fabric)
                served.serve(prompt_of(300, number), f"{decode.name}, {what}")

    def frozen(self):
        self._check_served("before")
        self._begin()
        try:
            seconds = self._check_ended()
            self._check_alive()
        finally:
            self.pair.prefill.thaw()
        self._check_served("thawed")
        return f"ended {seconds:.1f} s after both had begun to read; served again once it went on"

    def killed(self, another):
        """`another` starts a prefill at the address of the one that was killed."""
        self._check_served("before")
        self._begin()
        self.pair.prefill.kill()
        seconds = self._check_ended()
        self._check_alive()
        self.pair.prefill = another()
        self._check_served("by the next prefill")
        return f"ended {seconds:.1f} s after the kill; the next prefill served"


class Waits:
    """How long decode takes to its first token. It computes the last token of the prompt only: the
    rest is the wait for the KV cache."""

    def __init__(self, pair):
        self.pair = pair

    def measure(self, length, at_a_time, rounds):
        """Seconds until all of a round had theirs."""
        seconds = [self._once(length, at_a_time, 1000 * at_a_time + each)
                   for each in range(rounds + 1)]
        return seconds[1:]  # The first meets the peer.

    def _once(self, length, at_a_time, seed):
        asked = []
        for each in range(at_a_time):
            prompt, name = prompt_of(length, 100 * seed + each), next(names)
            asked.append(request(prompt, prefilled(self.pair.prefill, prompt, name), 1, name))
        begun = time.monotonic()
        answers = self.pair.decode.generate(asked)
        took = time.monotonic() - begun
        for answer in answers:
            check(answer["ended"] == "length", f"a request ended with '{answer['ended']}'")
        return took

    def waits(self):
        return {f"{at_a_time} x {length} tokens": self.measure(length, at_a_time, rounds)
                for length, at_a_time, rounds in ((600, 1, 20), (2000, 1, 20), (600, 8, 5))}

    def stalls(self):
        with computing(6):
            return {"600 tokens beside six that compute": self.measure(600, 1, 20)}


def not_longer(seconds, than):
    """By the medians: single requests wait for half a minute over UCX, too, where Linux 6.18 keeps
    decode's main thread off the core that vLLM binds prefill's to as well."""
    said = "; ".join(f"{what}: " + ", ".join(f"{name} {told(each[what])}"
                                             for name, each in seconds.items())
                     for what in seconds[than])
    for name, each in seconds.items():
        for what, took in each.items():
            check(statistics.median(took) <= 1.25 * statistics.median(seconds[than][what]),
                  f"{name} takes longer than {than}: {said}")
    return said


def told(seconds):
    return f"{1e3 * statistics.median(seconds):.0f} ms, at most {1e3 * max(seconds):.0f}"


@contextlib.contextmanager
def computing(count):
    """Processes beside the engines that never wait, in sessions of their own."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
              for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()
