"""Weft moves KV-cache pages between the memories of machines, over libfabric.

One process grants memory, another one writes into it and raises a signal:

    import numpy, weft

    cache = numpy.zeros(64 << 20, numpy.uint8)             # decode
    with weft.Engine(listen="127.0.0.1:7000") as engine:
        segment = engine.add(cache)
        engine.publish("kv", segment.grant(weft.Rights.write))
        peer = engine.accept(timeout=60)
        peer.expect(7).wait(timeout=60)            # the bytes are here
        segment.close()                                    # no peer can write any more
        peer.signal(8)

    with weft.Engine(listen="") as engine:                 # prefill
        segment = engine.add(pages)
        peer = engine.connect("127.0.0.1:7000")
        remote = peer.lookup("kv")
        transfer = engine.write(segment, remote, [(0, 4096, 65536)], signal=7)
        transfer.wait()                                    # or: await transfer
        peer.expect(8).wait(timeout=60)            # decode has met us, and is done

The objects:

    Engine       rails, threads and peers of a process; its keywords are Options
    Peer         another engine
    Segment      local memory: of an array, a tensor, or weft.Memory
    Grant        a lease: peers may read or write ranges of a segment until it ends
    Remote       a peer's grant, imported here
    Prepared     a list of pieces that was checked once, to be submitted often
    Transfer     pieces on their way
    Expectation  waits for signals
    Receive      waits for a message
    weft.kv      layouts of KV caches, and plans between them
    weft.weights new weights for running ranks, from trainers
    weft.testing engines whose rails go wrong, for your own tests

Rules that hold everywhere:

- Offsets and lengths are bytes, times are seconds. Every wait has a `timeout`.
- What fails raises a subclass of Error, with `peer`, `rail` and `cause`. Many are Python's too:
  TimedOut is a TimeoutError, Disconnected a ConnectionError, InvalidArgument a ValueError.
- A wait that times out ends nothing: wait again, or cancel.
- Waits let other threads run, and Ctrl-C interrupts them. Transfers, expectations and receives can
  be awaited; Engine.fileno() serves any other event loop.
- The memory of a segment stays alive until nothing can touch it any more, also if the program
  forgets it. Segment.close() and Grant.revoke() return when that is proven, or raise Quarantined.
- A task that is cancelled while it awaits goes on at once, and its transfer is cancelled.
- A transfer that has ended, or is being cancelled, may still have operations in a NIC, so that its
  memory must not be reused: Transfer.quiescent.
- After fork() the child opens engines of its own; what it inherited raises Forked.
"""

from ._install import check as _check_install
from ._signals import kept as _kept

_check_install()
with _kept():
    from . import kv, testing, weights

from ._errors import (
    Cancelled,
    Closed,
    Corrupt,
    Disconnected,
    Error,
    FabricFailed,
    Forked,
    Internal,
    InvalidArgument,
    NotFound,
    OutOfMemory,
    PermissionDenied,
    PolicyRefused,
    ProtocolMismatch,
    Quarantined,
    QueueFull,
    RemoteFailed,
    Stale,
    TimedOut,
    Unavailable,
    Unsupported,
)
from ._options import Options
from ._weft import (
    Candidate,
    Capability,
    Copied,
    Direction,
    Engine,
    Event,
    Expectation,
    FenceScope,
    Grant,
    Health,
    Hop,
    Info,
    Keys,
    Late,
    LibfabricInfo,
    LogLevel,
    Memory,
    MemoryKind,
    Message,
    Mover,
    NicCounters,
    OptionInfo,
    Paged,
    Path,
    PathSide,
    Peer,
    Pieces,
    Place,
    Placed,
    Policy,
    Prepared,
    Priority,
    ProcessInfo,
    RailInfo,
    RailShare,
    Receive,
    Remote,
    Report,
    Rights,
    Segment,
    Setting,
    Signal,
    Signals,
    SlowTransfer,
    State,
    Stop,
    Strided,
    Transfer,
    TransportKind,
    __version__,
    discover,
    options,
    process_info,
    set_log_level,
)

__all__ = [
    "Cancelled", "Candidate", "Capability", "Closed", "Copied", "Corrupt", "Direction",
    "Disconnected", "Engine", "Error", "Event", "Expectation", "FabricFailed", "FenceScope",
    "Forked", "Grant", "Health", "Hop", "Info", "Internal", "InvalidArgument", "Keys", "Late",
    "LibfabricInfo", "LogLevel", "Memory", "MemoryKind", "Message", "Mover", "NicCounters",
    "NotFound", "OptionInfo", "Options", "OutOfMemory", "Paged", "Path", "PathSide", "Peer",
    "PermissionDenied", "Pieces", "Place", "Placed", "Policy", "PolicyRefused", "Prepared",
    "Priority", "ProcessInfo", "ProtocolMismatch", "Quarantined", "QueueFull", "RailInfo",
    "RailShare", "Receive", "Remote", "RemoteFailed", "Report", "Rights", "Segment", "Setting",
    "Signal", "Signals", "SlowTransfer", "Stale", "State", "Stop", "Strided", "TimedOut",
    "Transfer", "TransportKind", "Unavailable", "Unsupported", "__version__", "discover", "kv",
    "options", "process_info", "set_log_level", "testing", "weights",
]  # fmt: skip
