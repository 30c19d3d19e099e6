"""What prefill hands to decode, through any proxy: `kv_transfer_params`."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

__all__ = ["Reference", "Refused", "digest_of", "digest_of_tokens"]

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

    def params(self, request: str, engine: str) -> dict[str, Any]:
        """For the answer of prefill. Proxies hand it to decode as it is; what does not begin with
        `weft` is for those that look inside."""
        host, _, port = self.lender.rpartition(":")
        own = {**asdict(self), "format": FORMAT}
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
            "weft_seal": digest_of(own),
        }

    @staticmethod
    def read(params: dict[str, Any]) -> Reference:
        """Refuses what was changed on the way, in the part that is used or in the copy of it that
        others read."""
        own = params.get("weft")
        if not isinstance(own, dict):
            raise Refused("the reference is not one of WeftConnector's")
        if digest_of(own) != params.get("weft_seal"):
            raise Refused("the reference was changed after prefill made it")
        if own.get("format") != FORMAT:
            raise Refused(f"the reference has format {own.get('format')}, and this side {FORMAT}")
        named = {each.name: own[each.name] for each in fields(Reference) if each.name in own}
        try:
            reference = Reference(**named)
        except TypeError as error:
            raise Refused(f"the reference lacks a field: {error}") from None
        seen = params.get("remote_block_ids", reference.blocks)
        if [list(each) for each in seen] != reference.blocks:
            raise Refused("the reference's blocks were changed after prefill made it")
        return reference


def digest_of(value: Any) -> str:
    """Of anything that JSON can say; the order of keys does not matter."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def digest_of_tokens(tokens: Sequence[int]) -> str:
    return hashlib.blake2b(array("q", tokens).tobytes(), digest_size=16).hexdigest()
