"""The same hand-over in one asyncio program for each side, all requests at once.

Transfers and expectations are awaited like anything else. A task that is cancelled cancels its
transfer and goes on at once, so the pages of a transfer that failed are not released here.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from multiprocessing.connection import Connection

import numpy as np

import weft
from transformer import PagedCache, Transformer, blocks_of, in_one_process

PROMPTS = [[seed * 31 % 256, 3, seed, 41, 5] * (seed + 2) for seed in range(8)]
NEW_TOKENS = 8
ASK, READY = 1, 1000  # The tag of requests; signal READY + n belongs to request n.


async def hand_over(
    engine: weft.Engine, segment: weft.Segment, there: weft.Remote, cache: PagedCache, ask: bytes
) -> None:
    request = json.loads(ask)
    table = cache.allocate(len(request["prompt"]))
    first = await asyncio.to_thread(Transformer().prefill, cache, table, request["prompt"])
    blocks = weft.Paged(cache.block_bytes, np.array(table), np.array(request["blocks"]))
    done = weft.Signal(READY + request["number"], json.dumps(first).encode())
    await engine.write(segment, there, blocks, signal=done, timeout=30)
    cache.release(table)


async def prefill(address: str) -> None:
    cache = PagedCache(blocks=64)
    with weft.Engine(listen="") as engine, engine.add(cache.pages) as segment:
        peer = engine.connect(address, timeout=30)
        there = peer.lookup("kv", timeout=30)
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            for _ in PROMPTS:
                ask = await peer.receive(ASK)
                tasks.create_task(hand_over(engine, segment, there, cache, ask.bytes))


async def answer(
    engine: weft.Engine, peer: weft.Peer, cache: PagedCache, number: int, prompt: list[int]
) -> list[int]:
    table = cache.allocate(len(prompt) + NEW_TOKENS)
    filled = table[: blocks_of(len(prompt))]
    ready = peer.expect(READY + number)
    ask = {"number": number, "prompt": prompt, "blocks": filled}
    peer.send(ASK, json.dumps(ask).encode())
    first = json.loads((await ready).payloads[0])
    tokens = await asyncio.to_thread(
        Transformer().decode, cache, table, len(prompt), first, NEW_TOKENS
    )
    cache.release(table)
    return tokens


async def decode(parent: Connection) -> None:
    cache = PagedCache(blocks=64)
    with weft.Engine(listen="127.0.0.1:0") as engine, engine.add(cache.pages) as segment:
        engine.publish("kv", segment.grant(weft.Rights.write))
        parent.send(engine.address)
        peer = await engine.accept_async(timeout=30)
        async with asyncio.timeout(60):
            answers = (answer(engine, peer, cache, *each) for each in enumerate(PROMPTS))
            parent.send(await asyncio.gather(*answers))


def run_prefill(address: str) -> None:
    asyncio.run(prefill(address))


def run_decode(parent: Connection) -> None:
    asyncio.run(decode(parent))


def main() -> None:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    decoder = spawn.Process(target=run_decode, args=(theirs,))
    decoder.start()
    prefiller = spawn.Process(target=run_prefill, args=(ours.recv(),))
    prefiller.start()
    for prompt, tokens in zip(PROMPTS, ours.recv(), strict=True):
        print(f"{len(prompt)} tokens, then {tokens}")
        assert tokens == in_one_process(prompt, NEW_TOKENS)
    for process in (prefiller, decoder):
        process.join(60)
        assert process.exitcode == 0
    print("the same tokens as in one process")


if __name__ == "__main__":
    main()
