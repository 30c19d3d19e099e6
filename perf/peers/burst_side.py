"""One process of a burst: a prefill node with memory, or the decode node that reads from all.

Usage: burst_side.py NAME BYTES ENGINE WORD...
"""

import collections
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy
from mooncake_write import MooncakeSide
from nixl_side import NixlSide, parameters_of
from side import Side, keep_answers_apart

LOOK_SECONDS = 0.0005  # Between two looks at what has ended, as a server's loop does.


class BurstSide(Side):
    """An engine adds met, list_of and ended; a list is what begins and ends as one request."""

    @property
    def words(self):
        return numpy.frombuffer(self.memory.pages, numpy.uint64)

    def commands(self):
        return {"introduce": self.introduce, "meet": self.meet_all, "fill": self.fill,
                "plan": self.plan, "burst": self.burst, "wrong": self.wrong}

    def meet_all(self, introductions):
        self.peers = [self.met(**each) for each in introductions]

    def fill(self, seed):
        """Unlike in every other place, and with every other seed."""
        self.words[:] = self._pattern(numpy.arange(len(self.words), dtype=numpy.uint64), seed)

    @staticmethod
    def _pattern(places, seed):
        return (places + numpy.uint64(seed << 40)) * numpy.uint64(0x9E3779B97F4A7C15)

    def plan(self, requests, block, seed):
        """Of each request: peer, where it lies there and here, bytes. Its blocks are dealt anew."""
        dice = numpy.random.default_rng(seed)
        self.block, self.requests = block, []
        for peer, there, here, length in requests:
            blocks = numpy.arange(length // block, dtype=numpy.uint64) * numpy.uint64(block)
            self.requests.append((peer, blocks + numpy.uint64(there),
                                  dice.permutation(blocks) + numpy.uint64(here)))
        self.lists = [self.list_of(self.peers[peer], there, here)
                      for peer, there, here in self.requests]

    def burst(self, limit):
        """Seconds from the begin of all until each was seen to have ended."""
        start, took = time.perf_counter(), {}
        begun = [self.begin(each) for each in self.lists]
        while len(took) < len(begun):
            for number, each in enumerate(begun):
                if number not in took and self.ended(each):
                    took[number] = time.perf_counter() - start
            if time.perf_counter() - start > limit:
                raise TimeoutError(f"{len(took)} of {len(begun)} requests ended in {limit} s")
            time.sleep(LOOK_SECONDS)
        return list(took.values())

    def wrong(self):
        """Blocks that do not hold what lies at their source."""
        held, words = self.words, numpy.arange(self.block // 8, dtype=numpy.uint64)
        found = 0
        for peer, sources, places in self.requests:
            for source, place in zip(sources.tolist(), places.tolist(), strict=True):
                wanted = self._pattern(words + numpy.uint64(source // 8), peer + 1)
                found += not numpy.array_equal(
                    wanted, held[place // 8:(place + self.block) // 8])
        return found


class Weft(BurstSide):
    def __init__(self, name, length, provider):
        import weft
        super().__init__(length)
        self.weft = weft
        self.engine = weft.Engine(name=name, providers=[provider], listen="127.0.0.1:0")
        self.segment = self.engine.add(self.memory.pages)

    def introduce(self):
        return {"address": self.engine.address,
                "blob": self.segment.grant(self.weft.Rights.read).blob.hex()}

    def met(self, address, blob):
        self.engine.connect(address)
        return self.engine.import_grant(bytes.fromhex(blob))

    def list_of(self, peer, there, here):
        pieces = numpy.stack([here, there, numpy.full(len(here), self.block, numpy.uint64)], axis=1)
        return self.engine.prepare(self.segment, peer, self.weft.Direction.read, pieces)

    def begin(self, blocks):
        return self.engine.submit(blocks)

    def ended(self, transfer):
        if transfer.state == self.weft.State.active:
            return False
        transfer.wait()  # Says what went wrong, if anything.
        return True


class Nixl(NixlSide, BurstSide):
    def __init__(self, name, length, backend, *parameters):
        super().__init__(name, length, "host", backend, parameters_of(parameters), True)

    def introduce(self):
        return {"address": self.memory.address, "metadata": self.agent.get_agent_metadata().hex()}

    def met(self, address, metadata):
        return self.agent.add_remote_agent(bytes.fromhex(metadata)), address

    def list_of(self, peer, there, here):
        name, address = peer
        mine, theirs = (self.agent.get_xfer_descs(
            [(start + offset, self.block, 0) for offset in offsets.tolist()], mem_type="DRAM")
            for start, offsets in ((self.memory.address, here), (address, there)))
        return self.agent.initialize_xfer("READ", mine, theirs, name)

    def begin(self, blocks):
        self.post(blocks)
        return blocks

    def ended(self, blocks):
        return self.done(blocks)


class Mooncake(MooncakeSide, BurstSide):
    def __init__(self, name, length, protocol):
        del name
        super().__init__(protocol, length)
        self.threads = collections.defaultdict(lambda: ThreadPoolExecutor(1))

    def introduce(self):
        told = super().introduce()
        return {"address": told["address"], "host": told["host"]}

    def met(self, address, host):
        return host, address

    def list_of(self, peer, there, here):
        host, address = peer
        return (host, [self.memory.address + offset for offset in here.tolist()],
                [address + offset for offset in there.tolist()], [self.block] * len(here))

    def begin(self, blocks):
        """In a thread, as SGLang does it: what tells how a list stands waits for it. One for each
        peer, for it refuses some thousands of blocks at a time."""
        return self.threads[blocks[0]].submit(self.engine.batch_transfer_sync_read, *blocks)

    def ended(self, call):
        if not call.done():
            return False
        if call.result() != 0:
            raise RuntimeError("a transfer of Mooncake's has failed")
        return True


ENGINES = {"weft": Weft, "nixl": Nixl, "mooncake": Mooncake}


def main():
    answers = keep_answers_apart()
    _, name, length, engine, *words = sys.argv
    ENGINES[engine](name, int(length), *words).serve(answers)


if __name__ == "__main__":
    main()
