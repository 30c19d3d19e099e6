"""Prefill in one process, decode in another: `python prefill_decode.py`.

Decode allocates the blocks of a request and tells prefill their numbers. Prefill writes the KV
cache of the prompt there, and raises a signal that carries the first token.
"""

from __future__ import annotations

import json
import multiprocessing
from multiprocessing.connection import Connection

import numpy as np

import weft
from transformer import PagedCache, Transformer, blocks_of, in_one_process

PROMPTS = [[7, 3, 200, 41, 5] * 6, [9] * 17, list(range(50, 90))]
NEW_TOKENS = 12
ASK, READY = 1, 1000  # The tag of requests; signal READY + n belongs to request n.


def prefill(address: str) -> None:
    model, cache = Transformer(), PagedCache(blocks=64)
    with weft.Engine(listen="") as engine, engine.add(cache.pages) as segment:
        decode = engine.connect(address, timeout=30)
        there = decode.lookup("kv", timeout=30)
        for number in range(len(PROMPTS)):
            request = json.loads(decode.recv(ASK, timeout=30).bytes)
            table = cache.allocate(len(request["prompt"]))
            first = model.prefill(cache, table, request["prompt"])
            blocks = weft.Paged(cache.block_bytes, np.array(table), np.array(request["blocks"]))
            done = weft.Signal(READY + number, json.dumps(first).encode())
            engine.write(segment, there, blocks, signal=done, timeout=30).wait()
            cache.release(table)


def decode(parent: Connection) -> None:
    model, cache = Transformer(), PagedCache(blocks=64)
    with weft.Engine(listen="127.0.0.1:0") as engine, engine.add(cache.pages) as segment:
        engine.publish("kv", segment.grant(weft.Rights.write))
        parent.send(engine.address)
        peer = engine.accept(timeout=30)
        for number, prompt in enumerate(PROMPTS):
            table = cache.allocate(len(prompt) + NEW_TOKENS)
            filled = table[: blocks_of(len(prompt))]
            ready = peer.expect(READY + number)
            peer.send(ASK, json.dumps({"prompt": prompt, "blocks": filled}).encode())
            first = json.loads(ready.wait(timeout=30).payloads[0])
            parent.send(model.decode(cache, table, len(prompt), first, NEW_TOKENS))
            cache.release(table)


def main() -> None:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    decoder = spawn.Process(target=decode, args=(theirs,))
    decoder.start()
    prefiller = spawn.Process(target=prefill, args=(ours.recv(),))
    prefiller.start()
    for prompt in PROMPTS:
        tokens = ours.recv()
        print(f"{len(prompt)} tokens, then {tokens}")
        assert tokens == in_one_process(prompt, NEW_TOKENS)
    for process in (prefiller, decoder):
        process.join(60)
        assert process.exitcode == 0
    print("the same tokens as in one process")


if __name__ == "__main__":
    main()
