"""The trainer's side."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, ClassVar

import torch  # type: ignore[import-not-found]

import weft
from weft import weights

from ._interface import (
    ParamMeta,
    TrainerInitInfo,
    TrainerWeightTransferEngine,
    VLLMWeightSyncClient,
    WeightSource,
)
from ._staging import Room, Staging

__all__ = ["Trainer", "TrainerInfo"]


@dataclass
class TrainerInfo(TrainerInitInfo):  # type: ignore[misc]
    """Of one rank of the trainer. `rank` is a keyword; number 0 leads and speaks to vLLM."""

    backend: ClassVar[str] = "weft"

    leader: str
    """Where rank 0 listens, "host:port"; all ranks and workers must reach it."""
    trainers: int = 1
    """Ranks of the trainer. Each sends its share of the rows."""
    workers: int = 1
    """Of vLLM, in all: a step waits until so many have joined."""
    timeout: float = 300.0
    """Seconds that a step may take."""
    verify: bool = False
    """Compare the bytes at both ends (XXH3)."""


class _Part:
    """What this rank sends of a tensor: rows of the outermost dimension, or all of it."""

    def __init__(self, meta: ParamMeta, begin: int | None, end: int) -> None:
        self.meta = meta
        self.begin = begin
        self.end = end

    @property
    def room(self) -> Room:
        shape = tuple(self.meta.shape)
        if self.begin is not None:
            shape = (self.end - self.begin, *shape[1:])
        return Room(self.meta.name, self.meta.dtype, shape)

    def held(self, array: Any) -> weights.Slice:
        shape = tuple(self.meta.shape)
        first = () if not shape else (self.begin or 0, *(0 for _ in shape[1:]))
        return weights.Slice(array, shape, first)

    def of(self, tensor: Any) -> Any:
        return tensor if self.begin is None else tensor[self.begin : self.end]


def _parts(source: WeightSource, rank: int, ranks: int) -> dict[str, _Part]:
    """Each byte comes from one rank: all have all tensors, and deal out the rows. Or else the
    source says which ones this rank holds; then those that hold the same share it."""
    held = source.held_names()
    parts = {}
    for meta in source.metadata():
        if held is not None:
            if meta.name in held:
                parts[meta.name] = _Part(meta, None, 0)
            continue
        rows = meta.shape[0] if meta.shape else 1
        share = -(-rows // ranks)
        begin, end = min(rank * share, rows), min((rank + 1) * share, rows)
        if begin < end:
            parts[meta.name] = _Part(meta, begin if meta.shape else None, end)
    return parts


class Trainer(TrainerWeightTransferEngine):  # type: ignore[misc]
    """Brings the source's weights into all workers of vLLM, a step for each send_weights()."""

    init_info_cls = TrainerInfo

    def __init__(
        self, info: TrainerInfo, *, client: VLLMWeightSyncClient, source: WeightSource
    ) -> None:
        super().__init__(client=client, source=source, is_sender=info.is_sender)
        self.step = 0
        """The last one that was tried."""
        self._timeout = info.timeout
        self._parts = _parts(source, info.rank, info.trainers)
        with contextlib.ExitStack() as opened:
            engine = opened.enter_context(
                weft.Engine(listen=info.leader) if info.is_sender else weft.Engine()
            )
            self._staging = Staging(engine, [part.room for part in self._parts.values()])
            tensors = self._staging.tensors
            holds, segments = weights.rank_of(
                engine,
                {each: self._parts[each].held(array) for each, array in tensors.items()},
                name=f"trainer{info.rank}",
                segments=[opened.enter_context(self._staging.segment)],
            )
            self._publisher = opened.enter_context(
                weights.Publisher(
                    engine,
                    holds,
                    segments,
                    rank=info.rank,
                    publishers=info.trainers,
                    leader="" if info.is_sender else info.leader,
                    subscribers=info.workers,
                    verify=info.verify,
                )
            )
            if info.is_sender:
                self._introduce(engine.address)
            self._open = opened.pop_all()

    @classmethod
    def trainer_init(
        cls,
        init_info: TrainerInfo,
        *,
        client: VLLMWeightSyncClient,
        source: WeightSource | None = None,
    ) -> Trainer:
        """On every rank. vLLM's workers begin to join; the first send_weights() waits for them."""
        if source is None:
            raise ValueError("Weft sends what a WeightSource has")
        return cls(init_info, client=client, source=source)

    def _introduce(self, address: str) -> None:
        tensors = self.source.metadata()
        self.client.init_weight_transfer_engine(
            {
                "leader": address,
                "names": [each.name for each in tensors],
                "dtypes": [str(each.dtype).removeprefix("torch.") for each in tensors],
                "shapes": [list(each.shape) for each in tensors],
            }
        )

    def send_weights(self) -> None:
        """A step: all workers load the source's weights, or none does. On every rank.

        Raises weft.Cancelled if the step is void, weft.Unavailable if that is not known: vLLM goes
        on with the weights that it had. Call it again, on every rank.
        """
        self.step += 1
        self._fill()
        self._publisher.publish(self.step, timeout=self._timeout)
        if self.is_sender:
            self._have_it_loaded()

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def _fill(self) -> None:
        missing = set(self._parts)
        for name, tensor in self.source:
            part = self._parts.get(name)
            if part is None or tensor is None:
                continue
            if tuple(tensor.shape) != tuple(part.meta.shape) or tensor.dtype != part.meta.dtype:
                raise ValueError(
                    f"{name} is {tuple(tensor.shape)} of {tensor.dtype}, and was said to be "
                    f"{tuple(part.meta.shape)} of {part.meta.dtype}"
                )
            self._staging.tensors[name].copy_(part.of(tensor))
            missing.discard(name)
        if missing:
            raise ValueError(f"the source has no {', '.join(sorted(missing)[:3])} any more")

    def _have_it_loaded(self) -> None:
        self.client.start_weight_update()
        try:
            self.client.update_weights({"step": self.step})
        except Exception:
            # No model was touched. Workers that were ready let go of the step.
            with contextlib.suppress(Exception):
                self.client.update_weights({"step": 0})
            with contextlib.suppress(Exception):
                self.client.finish_weight_update()
            raise
        self.client.finish_weight_update()

    def shutdown(self) -> None:
        """Leaves the workers with the weights that they have."""
        # What a dead peer may still touch is memory of Weft's own: nothing else will get it.
        with contextlib.suppress(weft.Quarantined):
            self._open.close()
