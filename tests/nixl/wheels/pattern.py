"""Bytes that can be told from those around them: of memory by position, of notes by number."""

import functools

import numpy

TILE_BYTES = 1_048_573  # A prime: bytes that land a power of two too far differ.
NUMBER_BYTES = 8


@functools.lru_cache(maxsize=4)
def pattern(seed, length):
    tile = numpy.random.default_rng(seed).bytes(min(length, TILE_BYTES))
    whole = numpy.resize(numpy.frombuffer(tile, numpy.uint8), length)
    whole.flags.writeable = False
    return whole


def note(number, length):
    """A notification: its number as far as there is room, then bytes that depend on it."""
    head = number.to_bytes(NUMBER_BYTES, "little")[:length]
    return head + pattern(number, length - len(head)).tobytes()


def number_of(message):
    """The number of a note whose every byte is right."""
    number = int.from_bytes(message[:NUMBER_BYTES], "little")
    if message != note(number, len(message)):
        raise ValueError(f"a notification of {len(message)} bytes, number {number}, is damaged")
    return number
