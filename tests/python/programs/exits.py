"""Ends with everything left open, in one of several ways: WAY."""

import asyncio
import atexit
import gc
import os
import sys
import threading

import numpy

way = sys.argv[1]


def join() -> None:
    """A server's shutdown. Registered before weft is imported, it runs behind weft's own."""
    for each in waiting:
        each.join()
        print("joined", flush=True)


if way == "joined":
    atexit.register(join)

import weft  # noqa: E402

b = weft.Engine(providers=["tcp"])
a = weft.Engine(providers=["tcp"], listen="")
peer = a.connect(b.address)
back = b.accept()
target = numpy.zeros(16 << 20, numpy.uint8)
there = b.add(target)
remote = a.import_grant(there.grant(weft.Rights.write).blob)
source = numpy.ones(16 << 20, numpy.uint8)
here = a.add(source)


def write() -> weft.Transfer:
    return a.write(here, remote, [(0, 0, 16 << 20)])


transfers = [write() for _ in range(4)]
waiting = []


def in_threads(count: int) -> None:
    """Threads that wait in Weft, and are no reason to wait for at the end."""
    begun = threading.Barrier(count + 1)

    def wait(number: int) -> None:
        begun.wait()
        while True:
            try:
                if number % 3 == 0:
                    peer.expect(number).wait(3600)
                elif number % 3 == 1:
                    write().wait()
                else:
                    a.poll(timeout=0.001)
            except weft.Error:
                pass

    for number in range(count):
        thread = threading.Thread(target=wait, args=(number,), daemon=True)
        thread.start()
        waiting.append(thread)
    begun.wait()


async def pending() -> None:
    async def wait(thing) -> None:
        await thing

    tasks = [asyncio.create_task(wait(write())), asyncio.create_task(wait(peer.expect(1)))]
    await asyncio.sleep(0)
    waiting.append(tasks)


if way == "open":
    pass
elif way == "threads":
    in_threads(8)
elif way == "joined":
    inside = threading.Event()

    def accept() -> None:
        inside.set()
        try:
            b.accept(2)
        except weft.TimedOut:
            pass

    for _ in range(2):
        inside.clear()
        waiting.append(threading.Thread(target=accept, daemon=True))
        waiting[-1].start()
        inside.wait()
elif way == "asyncio":
    asyncio.run(pending())
elif way == "loop":
    loop = asyncio.new_event_loop()
    loop.run_until_complete(pending())
elif way == "cycle":
    keeper = [a, b, here, there, transfers]
    keeper.append(keeper)
    del a, b, here, there, transfers, keeper, peer, back, remote
    gc.collect()
elif way == "error":
    transfers.clear()
    sys.stderr = open(os.devnull, "w")
    raise SystemExit(0)
elif way == "exit":
    in_threads(2)
    print("end", flush=True)
    os._exit(0)
print("end", flush=True)
