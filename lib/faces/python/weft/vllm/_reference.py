"""What prefill hands to decode, through any proxy: `kv_transfer_params`."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Reference", "Refused", "digest_of", "digest_of_tokens", "key_of"]

FORMAT = 1


class Refused(Exception):
    """Why a request's KV cache is not loaded."""


@dataclass(frozen=True)
class Reference:
    """The KV cache of one request at prefill, valid while its lease holds."""

    lender: str
    """Address of the engine of prefill's scheduler, which has the lease."""
    workers: list[str]
    """Addresses of the engines of prefill's workers, by rank."""
    slot: int
    """The lease's place in the lender's table."""
    generation: int
    """What stands there for as long as the lease holds."""
    seconds: float
    """How long it holds after decode has last said that it wants it."""
    model: str
    """Digest of what decides the numbers in the cache."""
    weights: int
    """The step of the weights that computed it; 0: those that were loaded first."""
    tokens: int
    """Of the prompt, that are in the cache."""
    prompt: str
    """Digest of these tokens."""
    blocks: list[list[int]]
    """Of prefill's cache, for each group of layers, from the prompt's first token on."""

    def params(self, request: str, engine: str, key: bytes = b"") -> dict[str, Any]:
        """For the answer of prefill. Proxies hand it to decode as it is; what does not begin with
        `weft` is for those that look inside."""
        host, _, port = self.lender.rpartition(":")
        own = {**vars(self), "format": FORMAT}
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_engine_id": engine,
            "remote_request_id": request,
            "remote_host": host,
            "remote_port": int(port),
            "remote_block_ids": self.blocks,
            "tp_size": len(self.workers),
            "weft": own,
            "weft_seal": digest_of(own, key),
        }

    @staticmethod
    def read(params: dict[str, Any], key: bytes = b"") -> Reference:
        """Refuses what was changed on the way, in the part that is used or in the copy of it that
        others read, and what was made without the key."""
        own = params.get("weft")
        if not isinstance(own, dict):
            raise Refused("the reference is not one of WeftConnector's")
        if digest_of(own, key) != params.get("weft_seal"):
            raise Refused("the reference was changed after prefill made it, or both sides have not "
                          "the same secret_file")
        if own.get("format") != FORMAT:
            raise Refused(f"the reference has format {own.get('format')}, and this side {FORMAT}")
        for name, right in FORMS.items():
            if name not in own or not right(own[name]):
                raise Refused(f"the reference's field '{name}' is missing or makes no sense")
        reference = Reference(**{name: own[name] for name in FORMS})
        seen = params.get("remote_block_ids", reference.blocks)
        if seen != reference.blocks:
            raise Refused("the reference's blocks were changed after prefill made it")
        return reference


def _number(most: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and 0 <= value <= most


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _list_of(right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and value != [] and all(map(right, value))


# What makes sense, whoever wrote it: clients of the server can.
FORMS: dict[str, Callable[[Any], bool]] = {
    "lender": _text,
    "workers": _list_of(_text),
    "slot": _number(2**32 - 1),
    "generation": _number(2**64 - 1),
    "seconds": lambda value: type(value) in (int, float) and 0 < value < 1e9,
    "model": _text,
    "weights": _number(2**64 - 1),
    "tokens": _number(2**32 - 1),
    "prompt": _text,
    "blocks": _list_of(lambda group: isinstance(group, list) and all(map(_number(2**32 - 1), group))),
}


def digest_of(value: Any, key: bytes = b"") -> str:
    """Of anything that JSON can say; the order of keys does not matter."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(text.encode(), digest_size=16, key=key).hexdigest()


def key_of(secret: bytes) -> bytes:
    """For seals, of what the engines of a group share."""
    return hashlib.blake2b(secret, digest_size=32, person=b"weft.vllm seal").digest()


def digest_of_tokens(tokens: Sequence[int]) -> str:
    return hashlib.blake2b(array("q", tokens).tobytes(), digest_size=16).hexdigest()
