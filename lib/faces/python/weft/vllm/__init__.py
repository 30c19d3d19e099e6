"""New weights for a running vLLM, over Weft: the backend "weft" of vLLM's weight transfer.

vLLM finds it by itself (entry point `vllm.general_plugins`). It has the routes that a trainer asks
only in its development mode, which nobody but the trainer should reach:

    VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --weight-transfer-config '{"backend": "weft"}'

Each rank of the trainer, with the same model and the same number of calls of send_weights():

    from vllm.distributed.weight_transfer import HTTPVLLMWeightSyncClient, ModuleSource
    from weft.vllm.trainer import Trainer, TrainerInfo

    trainer = Trainer.trainer_init(
        TrainerInfo("10.0.0.1:7000", rank=0, trainers=4, workers=8),
        client=HTTPVLLMWeightSyncClient("http://10.0.0.2:8000"),
        source=ModuleSource(model),
    )
    trainer.send_weights()    # as often as there are new weights

A step goes into memory of the workers that is not the model's, while they serve. When all of them
have all of it, they load it. If a trainer dies, or a rank, or a NIC, before that, vLLM goes on with
the weights that it had; send_weights() raises why.

Needs vLLM 0.32, which this package does not install; another one is refused by name.
"""

from __future__ import annotations

__all__ = ["register"]

_registered = False


def register() -> None:
    """Makes the backend "weft" known to vLLM. vLLM calls it in each of its processes; a trainer
    that goes through WeightTransferTrainerFactory calls it itself. May be called again."""
    global _registered
    if _registered:
        return
    try:
        from vllm.distributed.weight_transfer.factory import (  # type: ignore[import-not-found]
            WeightTransferEngineFactory,
            WeightTransferTrainerFactory,
        )
    except ImportError:
        return  # An old vLLM, whose start must not fail for what it can't have.
    WeightTransferEngineFactory.register_engine("weft", "weft.vllm.worker", "Worker")
    WeightTransferTrainerFactory.register_engine("weft", "weft.vllm.trainer", "Trainer")
    _registered = True
