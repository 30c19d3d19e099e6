"""A party to transfers: one agent of NIXL's and its memory, in a Python that has the wheel.

It reads commands as lines of JSON and answers each with one, and ends with its input. What NIXL
raises is an outcome, told by the name of its class.
"""

import gc
import json
import os
import sys
import threading
import time

from memory import Kept, Memory
from pattern import note, number_of

HERE = os.path.dirname(os.path.abspath(__file__))
BETWEEN_LOOKS = 50e-6  # Seconds in which the core is left to others.


def note_of(recipe):
    """Of [number, length]; without one there is no notification."""
    return note(*recipe) if recipe else b""


def looks(limit, what):
    """Turns of a loop that looks for something, until it has taken too long."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        yield
        time.sleep(BETWEEN_LOOKS)
    raise TimeoutError(f"{what} took more than {limit} s")


class Party:
    def __init__(self):
        self.agent = self.memory = self.kept = self.others = None
        self.bases, self.handles, self.lists = {}, {}, {}
        self.registered, self.memories, self.numbers = [], [], 0

    # The agent, and whom it knows.

    def open(self, name, backend, parameters, sync=None):
        sys.path.append(os.path.join(HERE, "stand_in"))  # Last: a torch that is there is taken.
        import nixl
        modes = nixl._api.nixl_thread_sync_t
        mode = modes[f"NIXL_THREAD_SYNC_{sync}"] if sync else None
        self.errors = tuple(getattr(nixl._bindings, each) for each in dir(nixl._bindings)
                            if each.startswith("nixl") and each.endswith("Error"))
        self.nixl, self.mode = nixl, mode
        return self.reopen(name, backend, parameters)

    def reopen(self, name, backend, parameters):
        config = self.nixl.nixl_agent_config(backends=[], sync_mode=self.mode)
        self.agent = self.nixl.nixl_agent(name, config)
        return self._outcome(self.agent.create_backend, backend, parameters) or "open"

    def _outcome(self, call, *arguments):
        try:
            return call(*arguments)
        except self.errors as error:
            return type(error).__name__

    def own(self, lengths, path=None):
        """Besides what there is; pieces are of the newest."""
        self.memory = Memory(lengths, path)
        self.memories.append(self.memory)
        self.registered.append(self.agent.register_memory(
            [(address, length, 0, "") for address, length in self.memory.registered()],
            mem_type="DRAM"))
        self.bases[self.agent.name] = self.memory.base
        return {"metadata": self.agent.get_agent_metadata().hex(), "base": self.memory.base}

    def disown(self):
        while self.registered:
            refused = self._outcome(self.agent.deregister_memory, self.registered[-1])
            if refused:
                return refused
            self.registered.pop()
        return "disowned"

    def unmap(self):
        self.memory, self.memories, self.kept, self.others = None, [], None, None

    def meet(self, metadata, base):
        name = self.agent.add_remote_agent(bytes.fromhex(metadata))
        self.bases[name if isinstance(name, str) else name.decode()] = base

    def timed_meet(self, **arguments):
        start = time.monotonic()
        self.meet(**arguments)
        return time.monotonic() - start

    def forget(self, peer):
        return self._outcome(self.agent.remove_remote_agent, peer) or "forgotten"

    def tidy(self, limit=0):
        """Lets go of all handles and lists, which must have nothing under way unless there is time
        to ask again."""
        for handle in list(self.handles):
            self._release_within(handle, limit)
        for each in self.lists.values():
            self.agent.release_dlist_handle(each)
        self.handles, self.lists, self.kept = {}, {}, None

    # Memory.

    def fill(self, seed):
        self.memory.fill(seed)

    def wrong(self, seed, landed=()):
        return self.memory.wrong(seed, landed)

    def neither(self, seeds):
        return self.memory.neither(seeds)

    def arrived(self, mine, theirs, seed):
        return self.memory.arrived(mine, theirs, seed)

    def keep(self):
        self.kept = Kept(self.memory)

    def changed(self):
        return self.kept.difference()

    def look_at(self, lengths, path):
        """Maps another party's memory, for what it alone would see."""
        self.others = Memory(lengths, path)

    # Transfers.

    def _descriptors(self, owner, pieces):
        return self.agent.get_xfer_descs(
            self.memory.descriptors(self.bases[owner], pieces), mem_type="DRAM")

    def make(self, operation, peer, mine, theirs, with_note=None):
        handle = self.agent.initialize_xfer(
            operation, self._descriptors(self.agent.name, mine), self._descriptors(peer, theirs),
            peer, note_of(with_note))
        return self._keep(self.handles, handle)

    def _keep(self, shelf, thing):
        self.numbers += 1
        shelf[self.numbers] = thing
        return self.numbers

    def prepare(self, owner, pieces):
        """A list of descriptors; of this party's own without an owner."""
        listed = self.agent.prep_xfer_dlist(
            owner or "NIXL_INIT_AGENT", self._descriptors(owner or self.agent.name, pieces))
        return self._keep(self.lists, listed)

    def pick(self, operation, mine, my_indices, theirs, their_indices, with_note=None):
        handle = self.agent.make_prepped_xfer(
            operation, self.lists[mine], my_indices, self.lists[theirs], their_indices,
            note_of(with_note))
        return self._keep(self.handles, handle)

    def timed_pick(self, **arguments):
        start = time.monotonic()
        return self.pick(**arguments), time.monotonic() - start

    def _post(self, handle, with_note=None):
        if with_note:
            return self._outcome(self.agent.transfer, self.handles[handle], note(*with_note))
        return self._outcome(self.agent.transfer, self.handles[handle])

    def post(self, handles, with_note=None):
        return [self._post(handle, with_note) for handle in handles]

    def state(self, handle):
        return self._outcome(self.agent.check_xfer_state, self.handles[handle])

    def wait(self, handles, limit):
        """How each came out, in order, and the seconds that all took."""
        start, outcomes = time.monotonic(), dict.fromkeys(handles, "PROC")
        for _ in looks(limit, "transfers"):
            for handle in (each for each, outcome in outcomes.items() if outcome == "PROC"):
                outcomes[handle] = self.state(handle)
            if "PROC" not in outcomes.values():
                break
        return {"outcomes": list(outcomes.values()), "seconds": time.monotonic() - start}

    def move(self, handles, limit, with_note=None):
        """Posts all, and waits for them."""
        start = time.monotonic()
        posted = self.post(handles, with_note)
        ended = self.wait([handle for handle, outcome in zip(handles, posted)
                           if outcome == "PROC"], limit)["outcomes"]
        return {"outcomes": [outcome for outcome in posted if outcome != "PROC"] + ended,
                "seconds": time.monotonic() - start}

    def release(self, handle):
        """Once; what was let go is let go for good."""
        refused = self._outcome(self.agent.release_xfer_handle, self.handles[handle])
        if not refused:
            del self.handles[handle]
        return refused or "released"

    def _release_within(self, handle, limit):
        """Until it succeeds; the seconds of each try."""
        tries, end = [], time.monotonic() + limit
        while True:
            start = time.monotonic()
            outcome = self.release(handle)
            tries.append(time.monotonic() - start)
            if outcome == "released":
                return tries
            if time.monotonic() >= end:
                raise TimeoutError(f"a release after {limit} s: {outcome}")
            time.sleep(BETWEEN_LOOKS)

    def release_and_keep(self, handle, limit, post=()):
        """Until it succeeds; the memory is copied at that moment. Some may be posted just before.
        The seconds of each try."""
        self.post(post)
        tries = self._release_within(handle, limit)
        self.keep()
        return tries

    def until_failure(self, handle, limit, landed=None):
        """Moves again and again until it fails; what was read by those that succeeded must be
        there. The memory is copied at the moment of the failure."""
        for _ in looks(limit, "a failure"):
            outcome = self.move([handle], limit)["outcomes"][0]
            if outcome != "DONE":
                break
            if landed and self.arrived(*landed) != landed[0][2]:
                raise ValueError("a transfer is told to be done, and its bytes are not there")
        self.keep()
        return outcome

    # Files.

    def store(self, operation, text, number, length, limit):
        """The memory's first bytes to the file of a text, or from it, registered for that alone."""
        files = self._outcome(self.agent.register_memory, [(0, length, number, text)], "FILE")
        if isinstance(files, str):
            return files
        handle = self._keep(self.handles, self.agent.initialize_xfer(
            operation, self._descriptors(self.agent.name, [[0, 0, length]]), files.trim(),
            self.agent.name))
        outcome = self.move([handle], limit)["outcomes"][0]
        self._release_within(handle, limit)
        return self._outcome(self.agent.deregister_memory, files) or outcome

    def look_up(self, backend, texts):
        """How long the files are, or None."""
        asked = [(0, 0, 0, text) for text in texts]
        return [found and found["size"]
                for found in self.agent.query_memory(asked, backend, mem_type="FILE")]

    # Notifications.

    def notify(self, peer, notes):
        for number, length in notes:
            self.agent.send_notif(peer, note(number, length))

    def collect(self, count, limit, checks=None):
        """At least so many; of each the sender, number and length. Checks are made at the moment at
        which the note of that number is there: of this memory, or of the one that is looked at."""
        came = []
        for _ in looks(limit, f"{count} notifications"):
            came += self._new_notes(checks or {})
            if len(came) >= count:
                break
        return came

    def _new_notes(self, checks):
        came = []
        for sender, messages in self.agent.get_new_notifs().items():
            for message in messages:
                number = number_of(message)
                self._check(number, checks.get(str(number)))
                came.append([sender, number, len(message)])
        return came

    def _check(self, number, check):
        if check is None:
            return
        memory = self.others if check["of_other"] else self.memory
        wrong = memory.wrong(check["seed"], check["landed"])
        if wrong:
            raise ValueError(f"when notification {number} was there: {wrong}")

    def quiet(self, during):
        """What came within so many seconds."""
        end, came = time.monotonic() + during, []
        while time.monotonic() < end:
            came += self._new_notes({})
            time.sleep(BETWEEN_LOOKS)
        return came

    # Several threads.

    def drive(self, lanes, rounds, seed, limit):
        """A thread for each lane, which has transfers of its own: [handle, mine, theirs], posted in
        turns, with a note at each post. What went wrong, or nothing."""
        complaints = []
        threads = [threading.Thread(target=self._drive_lane, daemon=True,
                                    args=(number, lane, rounds, seed, limit, complaints))
                   for number, lane in enumerate(lanes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(limit)
        if any(thread.is_alive() for thread in threads):
            raise TimeoutError(f"threads took more than {limit} s")
        return complaints

    def _drive_lane(self, number, lane, rounds, seed, limit, complaints):
        try:
            for turn in range(rounds):
                handle, mine, theirs = lane[turn % len(lane)]
                outcome = self.move([handle], limit, [number * rounds + turn, 100])["outcomes"][0]
                arrived = self.arrived(mine, theirs, seed)
                if (outcome, arrived) != ("DONE", mine[2]):
                    complaints.append(f"turn {turn}: {outcome}, {arrived} of {mine[2]} bytes")
                    return
        except Exception as error:
            complaints.append(f"{type(error).__name__}: {error}")

    # Ends.

    def destroy(self):
        """The agent and all that it has, whatever is under way; the memory is copied then."""
        start = time.monotonic()
        self.handles, self.lists, self.registered, self.agent = {}, {}, [], None
        gc.collect()
        self.keep()
        return time.monotonic() - start


def commands_of(party):
    return {name: getattr(party, name) for name in dir(party)
            if not name.startswith("_") and callable(getattr(party, name))}


def serve(party, answers):
    commands = commands_of(party)
    for line in sys.stdin:
        request = json.loads(line)
        do = request.pop("do")
        try:
            answer = {"answer": commands[do](**request)}
        except Exception as error:  # Whatever it is, it is told in a line.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def answers_alone():
    """Standard output for answers alone: what libraries print there goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    PARTY = Party()  # Lives until the interpreter ends, with all that is still open.
    serve(PARTY, answers_alone())
