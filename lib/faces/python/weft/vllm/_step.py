"""Which weights this process's model has: a trainer's step, as weft.vllm's worker has loaded it."""

from __future__ import annotations

__all__ = ["loaded_step", "note_step"]

_step = 0


def loaded_step() -> int:
    """0: those that it began with."""
    return _step


def note_step(step: int) -> None:
    global _step
    _step = step
