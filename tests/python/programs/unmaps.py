"""Memory goes with its last owner, while another thread runs: OWNER. Under waiting_munmap.c."""

import ctypes
import os
import sys
import threading

import weft

BYTES = (3 << 20) + 4096
owner = sys.argv[1]
b = weft.Engine(providers=["tcp"])
a = weft.Engine(providers=["tcp"], listen="")
a.connect(b.address)
target = b.add(bytearray(4096))
remote = a.import_grant(target.grant(weft.Rights.write).blob)

segment = a.add(weft.Memory.own(BYTES))
if owner == "segment":
    last = segment
elif owner == "closed segment":
    segment.close()
    last = segment
elif owner == "grant":
    last = segment.grant(weft.Rights.read)
    a.close()
elif owner == "prepared":
    last = a.prepare(segment, remote, weft.Direction.write, [(0, 0, 4096)])
elif owner == "transfer":
    last = a.write(segment, remote, [(0, 0, 4096)])
    last.wait()
del segment

told, answered = os.pipe(), os.pipe()


def answer() -> None:
    os.read(told[0], 1)
    os.write(answered[1], b"x")
    print("answered", flush=True)


thread = threading.Thread(target=answer, daemon=True)
thread.start()
ctypes.CDLL(None).watch_munmap(ctypes.c_size_t(BYTES), told[1], answered[0])
del last
thread.join(20)
