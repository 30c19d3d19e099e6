"""A cache server that hands out pages by name, and a client: `python page_server.py`.

The server owns the memory and the index, and never touches a page: clients write and read pages
themselves. Each page has a grant of its own. A writer's ends before others hear of the page, so no
late byte of its can change it. When a page makes room for another, its readers' grant ends: who
still reads gets weft.Stale, never another page's bytes.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import time
from collections import OrderedDict
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np

import weft

PAGE = 64 << 10
ASK, ANSWER = 1, 2  # Tags of messages.
WRITING = 30.0  # Seconds that a client has to fill a page.


@dataclass
class Page:
    number: int
    grant: weft.Grant
    until: float


class Store:
    """The pages and their names."""

    def __init__(self, segment: weft.Segment) -> None:
        self.segment = segment
        self.free = list(range(segment.size // PAGE))
        self.written: OrderedDict[bytes, Page] = OrderedDict()  # The one used last is the last.
        self.being_written: dict[bytes, Page] = {}

    def answer(self, verb: bytes, name: bytes) -> bytes:
        """A grant, or nothing: the page is not there, or not to be written."""
        if verb == b"put" and name not in self.written and name not in self.being_written:
            if self.free or self.make_room():
                self.being_written[name] = self.grant(self.free.pop(), weft.Rights.write, WRITING)
                return self.being_written[name].grant.blob
        elif verb == b"written" and name in self.being_written:
            page = self.being_written.pop(name)
            page.grant.revoke()
            self.written[name] = self.grant(page.number, weft.Rights.read, None)
        elif verb == b"get" and name in self.written:
            self.written.move_to_end(name)
            return self.written[name].grant.blob
        return b""

    def grant(self, number: int, rights: weft.Rights, ttl: float | None) -> Page:
        grant = self.segment.grant(rights, [(number * PAGE, PAGE)], ttl=ttl)
        return Page(number, grant, time.monotonic() + (ttl or 0))

    def make_room(self) -> bool:
        """Takes a page that its writer has left, else the one that was used least recently."""
        now = time.monotonic()
        left = [name for name, page in self.being_written.items() if page.until < now]
        if left:
            page = self.being_written.pop(left[0])
        elif self.written:
            page = self.written.popitem(last=False)[1]
        else:
            return False
        page.grant.revoke()
        self.free.append(page.number)
        return True


def serve(parent: Connection, pages: int) -> None:
    with weft.Engine(listen="127.0.0.1:0", peer_events=True) as engine:
        store = Store(engine.add(weft.Memory.shared(pages * PAGE)))  # Clients of this host map it.
        parent.send(engine.address)
        asked: dict[int, tuple[weft.Peer, weft.Receive]] = {}
        while not parent.poll():
            for event in engine.poll(timeout=0.1):
                if event.kind == weft.Event.Kind.peer_up and event.who is not None:
                    number = len(asked)
                    asked[number] = event.who, event.who.receive(ASK, cookie=number)
                elif event.kind == weft.Event.Kind.message_arrived and event.error is None:
                    peer, receive = asked[event.cookie]
                    verb, name = receive.wait(timeout=0).bytes.split()
                    peer.send(ANSWER, store.answer(verb, name))
                    asked[event.cookie] = peer, peer.receive(ASK, cookie=event.cookie)


class Client:
    """Puts and gets pages, one at a time."""

    def __init__(self, address: str) -> None:
        self.engine = weft.Engine(listen="")
        self.peer = self.engine.connect(address, timeout=30)
        self.buffer = np.zeros(PAGE, np.uint8)
        self.segment = self.engine.add(self.buffer)

    def ask(self, verb: bytes, name: bytes) -> weft.Remote | None:
        self.peer.send(ASK, verb + b" " + name)
        blob = self.peer.recv(ANSWER, timeout=30).bytes
        return self.engine.import_grant(blob) if blob else None

    def put(self, data: bytes) -> bytes:
        """Its name, which comes from its bytes. It may be kept, or not."""
        name = hashlib.sha256(data).hexdigest().encode()
        page = self.ask(b"put", name)
        if page is not None:
            self.buffer[: len(data)] = np.frombuffer(data, np.uint8)
            self.engine.write(self.segment, page, [(0, *page.ranges[0])], timeout=30).wait()
            self.ask(b"written", name)
        return name

    def get(self, name: bytes) -> bytes | None:
        try:
            page = self.ask(b"get", name)
            if page is None:
                return None
            self.engine.read(self.segment, page, [(0, *page.ranges[0])], timeout=30).wait()
        except weft.Stale:
            return None  # It made room for another meanwhile.
        return self.buffer.tobytes()


def main() -> None:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    server = spawn.Process(target=serve, args=(theirs, 8))
    server.start()
    address = ours.recv()
    writer, reader = Client(address), Client(address)
    data = [bytes([number]) * PAGE for number in range(10)]
    names = [writer.put(each) for each in data]
    found = [reader.get(name) for name in names]
    assert found == [None, None] + data[2:]  # The first two made room.
    print(f"{len(names)} pages put, {sum(each is not None for each in found)} of them still there")
    for client in (writer, reader):
        client.engine.close()
    ours.send("stop")
    server.join(60)
    assert server.exitcode == 0


if __name__ == "__main__":
    main()
