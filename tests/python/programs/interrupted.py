"""Waits for ever in one of several ways, until Ctrl-C: WAY."""

import signal
import sys

import weft

signal.signal(signal.SIGINT, signal.default_int_handler)
with weft.Engine(providers=["tcp"]) as b, weft.Engine(providers=["tcp"], listen="") as a:
    peer = a.connect(b.address)
    alone = weft.weights.Rank("trainer", [])
    elsewhere = weft.weights.Rank("rank", [])
    ways = {
        "publish": lambda: weft.weights.Publisher(b, alone, []).publish(1, timeout=60),
        "wait": lambda: weft.weights.Subscriber(a, elsewhere, [[]], leader=b.address).wait(1, 60),
        "expect": lambda: peer.expect(1).wait(60),
        "receive": lambda: peer.receive(1).wait(60),
        "recv": lambda: peer.recv(1, timeout=60),
        "accept": lambda: a.accept(timeout=60),
        "peer": lambda: a.peer("nobody", timeout=60),
        "lookup": lambda: peer.lookup("nothing", timeout=60),
        "poll": lambda: a.poll(timeout=60),
        "connect": lambda: a.connect("192.0.2.1:9", timeout=60),
    }
    try:
        print("waits", flush=True)
        ways[sys.argv[1]]()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
