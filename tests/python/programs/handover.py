"""Writes into a peer's memory, raises a signal, reads it back: PROVIDER ADDRESS BYTES."""

import sys
from pathlib import Path

import numpy

import weft

sys.path.insert(0, str(Path(__file__).parent.parent))
from support import pattern  # noqa: E402

provider, address, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
with weft.Engine(providers=[provider], listen="") as engine:
    peer = engine.connect(address)
    remote = peer.lookup("kv")
    source = engine.add(pattern(size, 1))
    target = numpy.zeros(size, numpy.uint8)
    back = engine.add(target)
    half = size // 2
    engine.write(source, remote, [(0, half, half), (half, 0, size - half)], signal=7).wait()
    peer.recv(1)
    engine.read(back, remote, [(0, 0, size)]).wait()
    assert numpy.array_equal(target, pattern(size, 2))
    peer.send(2, b"read")
    peer.recv(3)
