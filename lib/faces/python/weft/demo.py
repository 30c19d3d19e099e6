"""A KV cache goes from a prefill process to a decode process: `python -m weft.demo`.

It needs nothing but this package. Prefill has pages of 16 tokens, decode of 64. Decode checks every
byte, and that nothing else in its cache has changed. `WEFT_PROVIDERS=tcp` shows another provider;
`weft demo --help` a demo with models, sizes, GPUs and two machines.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from multiprocessing.connection import Connection
from typing import Any

import weft
from weft import kv

MODEL = kv.find_model("Llama-3.1-8B")
TOKENS = 1000
HERE, THERE = MODEL.layout(blocks=80), MODEL.layout(blocks=20, tokens_per_block=64)
SOURCE = kv.Blocks(random.Random(1).sample(range(80), 63))
DESTINATION = kv.Blocks(random.Random(2).sample(range(20), 16))
PLAN = kv.plan(kv.Cache(HERE), SOURCE, kv.Cache(THERE), DESTINATION, tokens=TOKENS)
UNTOUCHED = b"\xee"
READY = 7  # The signal.


def contents() -> bytes:
    """Prefill's cache, which decode knows as well."""
    return random.Random(3).randbytes(HERE.bytes)


def prefill(address: str) -> None:
    memory = weft.Memory.shared(HERE.bytes)  # Processes of the host map it.
    with weft.Engine(listen="") as engine, engine.add(memory) as segment:
        memoryview(segment)[:] = contents()
        decode = engine.connect(address, timeout=60)
        remote = decode.lookup("kv", timeout=60)
        ((_, _, pieces),) = PLAN.transfers()  # One segment on each side.
        start = time.perf_counter()
        transfer = engine.write(segment, remote, pieces, signal=READY, timeout=60)
        transfer.wait()
        seconds = time.perf_counter() - start
        report = transfer.report()
        print(
            f"prefill: {report.bytes / 2**20:.0f} MiB in {report.ranges} pieces "
            f"took {seconds * 1000:.1f} ms ({report.bytes / seconds / 1e9:.1f} GB/s) "
            f"over {', '.join(share.rail for share in report.rails)}",
            flush=True,
        )


def decode(parent: Connection) -> None:
    memory = weft.Memory.shared(THERE.bytes)
    with weft.Engine(listen="127.0.0.1:0") as engine, engine.add(memory) as segment:
        cache = memoryview(segment)
        cache[:] = expected = bytearray(UNTOUCHED * THERE.bytes)
        grant = segment.grant(weft.Rights.write)
        engine.publish("kv", grant)
        parent.send(engine.address)
        engine.accept(timeout=60).expect(READY).wait(timeout=30)
        grant.revoke()  # No byte can change any more.
        source = memoryview(contents())
        for _, _, pieces in PLAN.transfers():
            rows: Any = memoryview(pieces).tolist()
            for here, there, length in rows:
                expected[there : there + length] = source[here : here + length]
        if expected != cache:
            raise SystemExit("decode: the bytes are wrong")
        print(f"decode: all {THERE.bytes / 2**20:.0f} MiB of the cache are as they should be")


def main() -> None:
    weft.discover()
    libfabric = weft.process_info().libfabric
    what = libfabric.version or libfabric.problem or "is not needed"
    print(f"weft {weft.__version__}, libfabric {what}")
    print(f"{TOKENS} tokens of {MODEL.name}'s KV cache, from pages of 16 tokens to pages of 64")
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    decoder = spawn.Process(target=decode, args=(theirs,))
    decoder.start()
    theirs.close()  # If decode ends, so does our wait.
    prefiller = spawn.Process(target=prefill, args=(ours.recv(),))
    prefiller.start()
    for process in (prefiller, decoder):
        process.join(120)
        if process.exitcode != 0:
            raise SystemExit(f"the demo has failed: {process}")
    print("Next: weft info; weft demo --help; weft-perf --local; help(weft) in Python")


if __name__ == "__main__":
    main()
