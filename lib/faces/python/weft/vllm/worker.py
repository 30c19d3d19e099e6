"""The side of vLLM's workers."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import torch  # type: ignore[import-not-found]

import weft
from weft import weights

from ._interface import WeightTransferEngine, WeightTransferInitInfo, WeightTransferUpdateInfo
from ._sleep import refuse_asleep
from ._staging import Room, Staging
from ._step import note_step

__all__ = ["InitInfo", "UpdateInfo", "Worker"]


@dataclass
class InitInfo(WeightTransferInitInfo):  # type: ignore[misc]
    """What the trainer says to all workers: where it is, and which tensors come."""

    leader: str
    names: list[str]
    dtypes: list[str]
    """As torch names them: "bfloat16"."""
    shapes: list[list[int]]


@dataclass
class UpdateInfo(WeightTransferUpdateInfo):  # type: ignore[misc]
    """The step to load; 0: none after all."""

    step: int


class Worker(WeightTransferEngine):  # type: ignore[misc]
    """Receives steps beside the model, and loads one when all workers have it.

    update_weights() touches no model: it fails on a worker that lacks the step, before any other
    has loaded it. finish_weight_update() loads, at once: requests that run meanwhile go on with the
    new weights.
    """

    init_info_cls = InitInfo
    update_info_cls = UpdateInfo
    supports_draft_weight_update = False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._open = contextlib.ExitStack()
        self._subscriber: weights.Subscriber | None = None
        self._staging: Staging | None = None
        self._reading: weights.Reading | None = None

    def init_transfer_engine(self, init_info: InitInfo) -> None:
        """Joins the trainer; leaves the one before."""
        self.shutdown()
        ranks = self.parallel_config
        number = ranks.data_parallel_index * ranks.world_size + ranks.rank
        tensors = zip(init_info.names, init_info.dtypes, init_info.shapes, strict=True)
        with contextlib.ExitStack() as opened:
            engine = opened.enter_context(weft.Engine())
            self._staging = Staging(
                engine,
                [Room(name, getattr(torch, dtype), tuple(shape)) for name, dtype, shape in tensors],
            )
            segments = [opened.enter_context(self._staging.segment)]
            holds, segments = weights.rank_of(
                engine, self._staging.tensors, name=f"worker{number}", segments=segments
            )
            self._subscriber = opened.enter_context(
                weights.Subscriber(engine, holds, [segments], rank=number, leader=init_info.leader)
            )
            self._open = opened.pop_all()

    def start_weight_update(self) -> None:
        """Refuses while vLLM sleeps. The model is left alone until finish_weight_update()."""
        refuse_asleep()

    def update_weights(self, update_info: dict[str, Any]) -> None:
        self.receive_weights(self.parse_update_info(update_info))

    def receive_weights(self, update_info: UpdateInfo) -> None:
        """Makes sure that the step is here, and holds on to it."""
        self._let_go()
        if update_info.step == 0:
            return
        if self._subscriber is None:
            raise RuntimeError("no trainer has called init_weight_transfer_engine")
        reading = self._subscriber.read()
        if reading.step != update_info.step:
            reading.close()
            raise RuntimeError(f"this worker has step {reading.step}, not {update_info.step}")
        self._reading = reading

    def finish_weight_update(self) -> None:
        """Loads the step."""
        if self._reading is None or self._staging is None:
            return
        # Not before it is needed: vLLM's loaders take their time to import.
        from vllm.model_executor.model_loader.reload import (  # type: ignore[import-not-found]
            finalize_layerwise_reload,
            initialize_layerwise_reload,
        )

        try:
            refuse_asleep()
            initialize_layerwise_reload(self.model)
            self.model.load_weights(iter(self._staging.tensors.items()))
            finalize_layerwise_reload(self.model, self.model_config)
            note_step(self._reading.step)
            if self.device.type != "cpu":
                torch.accelerator.synchronize()  # Copies read the memory that is let go of next.
        finally:
            self._let_go()

    def shutdown(self) -> None:
        self._let_go()
        self._subscriber = self._staging = None
        # What a dead peer may still touch is memory of Weft's own: nothing else will get it.
        with contextlib.suppress(weft.Quarantined):
            self._open.close()

    def _let_go(self) -> None:
        if self._reading is not None:
            self._reading.close()
        self._reading = None
