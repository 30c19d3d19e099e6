"""The exceptions of Weft: one class for each kind of failure."""

from __future__ import annotations

from typing import Any

__all__ = [
    "Cancelled", "Closed", "Corrupt", "Disconnected", "Error", "FabricFailed", "Forked",
    "Internal", "InvalidArgument", "NotFound", "OutOfMemory", "PermissionDenied", "PolicyRefused",
    "ProtocolMismatch", "Quarantined", "QueueFull", "RemoteFailed", "Stale", "TimedOut",
    "Unavailable", "Unsupported",
]  # fmt: skip


class Error(Exception):
    """What can fail in Weft raises one of its subclasses.

    code: the kind as text, such as "timed_out".
    cause: one sentence, without what follows.
    peer: name of the peer concerned; empty where there is none.
    rail: name of the rail concerned; empty where there is none.
    operation: what failed, such as "write" or "fi_mr_reg"; empty where there is none.
    fabric_code: libfabric's positive error number; 0 where libfabric is not the cause.
    """

    code: str = "error"

    def __init__(
        self,
        cause: str = "",
        *,
        peer: str = "",
        rail: str = "",
        operation: str = "",
        fabric_code: int = 0,
    ) -> None:
        self.cause = cause
        self.peer = peer
        self.rail = rail
        self.operation = operation
        self.fabric_code = fabric_code
        context = [
            f"{name} {value}"
            for name, value in (
                ("peer", peer),
                ("rail", rail),
                ("operation", operation),
                ("libfabric error", fabric_code),
            )
            if value
        ]
        super().__init__(cause + (f" ({', '.join(context)})" if context else ""))

    def __reduce__(self) -> tuple[Any, ...]:
        context = {
            "peer": self.peer,
            "rail": self.rail,
            "operation": self.operation,
            "fabric_code": self.fabric_code,
        }
        return _again, (type(self), self.cause, context)


def _again(kind: type[Error], cause: str, context: dict[str, Any]) -> Error:
    return kind(cause, **context)


class InvalidArgument(Error, ValueError):
    """The call itself is wrong: a range outside its segment, a bad option."""

    code = "invalid_argument"


class NotFound(Error, LookupError):
    """No such name, model, peer or rail."""

    code = "not_found"


class Unsupported(Error):
    """This build, machine or provider can't do it."""

    code = "unsupported"


class Unavailable(Error):
    """It exists but can't be had now: no device, no rail, a closed port."""

    code = "unavailable"


class PermissionDenied(Error, PermissionError):
    """The grant lacks the right, or the system or a peer refused."""

    code = "permission_denied"


class OutOfMemory(Error, MemoryError):
    """Memory, huge pages or locked memory (memlock) ran out."""

    code = "out_of_memory"


class QueueFull(Error):
    """Too much is queued; wait for some of it and try again."""

    code = "queue_full"


class TimedOut(Error, TimeoutError):
    """The time was over first."""

    code = "timed_out"


class Cancelled(Error):
    """The program cancelled it."""

    code = "cancelled"


class Stale(Error):
    """The grant has ended, or belongs to an earlier life of its engine."""

    code = "stale"


class Disconnected(Error, ConnectionError):
    """The peer is gone or was never up."""

    code = "peer_down"


class ProtocolMismatch(Error):
    """The other side speaks another version, or another protocol."""

    code = "protocol_mismatch"


class FabricFailed(Error):
    """libfabric reported an error: fabric_code."""

    code = "fabric_failed"


class RemoteFailed(Error):
    """The other side reported why it failed."""

    code = "remote_failed"


class Quarantined(Error):
    """Not proven safe to reuse: the memory stays registered and alive; don't use it."""

    code = "quarantined"


class Closed(Error):
    """The engine was closed."""

    code = "closed"


class Forked(Error):
    """The process that opened the engine is a parent of this one."""

    code = "forked"


class Internal(Error):
    """A broken invariant of Weft itself: please report it."""

    code = "internal"


class Corrupt(Error):
    """The bytes at the two ends differ, or a file's block and its sum."""

    code = "corrupt"


class PolicyRefused(Error):
    """A policy does not allow the path of the transfer."""

    code = "policy_refused"


# In the order of weft::Code (weft/error.hpp), which begins with 1.
_KINDS: tuple[type[Error], ...] = (
    InvalidArgument, NotFound, Unsupported, Unavailable, PermissionDenied, OutOfMemory, QueueFull,
    TimedOut, Cancelled, Stale, Disconnected, ProtocolMismatch, FabricFailed, RemoteFailed,
    Quarantined, Closed, Forked, Internal, Corrupt, PolicyRefused,
)  # fmt: skip


def of_code(code: int, cause: str, **context: Any) -> Error:
    """The exception for a number of weft::Code."""
    return _KINDS[code - 1](cause, **context)
