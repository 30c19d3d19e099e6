"""Grants memory under a name until its peer is gone: PROVIDER BYTES. Writes its address and pid."""

import os
import sys

import weft

provider, size = sys.argv[1], int(sys.argv[2])
with weft.Engine(providers=[provider], peer_events=True) as engine:
    segment = engine.add(weft.Memory.shared(size))
    engine.publish("memory", segment.grant(weft.Rights.read_write))
    print(engine.address, os.getpid(), flush=True)
    gone = False
    while not gone:
        events = engine.poll(timeout=60)
        assert events, "nobody came, or went"
        gone = any(event.kind == weft.Event.Kind.peer_down for event in events)
