"""What is taken of vLLM's weight transfer, and whether this vLLM has it."""

from __future__ import annotations

from importlib import metadata

SUPPORTED = "0.32"


def _other() -> ImportError:
    try:
        version = metadata.version("vllm")
    except metadata.PackageNotFoundError:
        version = "of this environment"
    return ImportError(
        f"weft.vllm is made for the weight transfer of vLLM {SUPPORTED}, and that of vLLM {version}"
        f" is another one: install vllm=={SUPPORTED}.*, or choose another weight transfer backend"
    )


try:
    from vllm.distributed.weight_transfer.base import (  # type: ignore[import-not-found]
        ParamMeta,
        TrainerInitInfo,
        TrainerWeightTransferEngine,
        VLLMWeightSyncClient,
        WeightSource,
        WeightTransferEngine,
        WeightTransferInitInfo,
        WeightTransferUpdateInfo,
    )
except ImportError as error:
    raise _other() from error
# vLLM 0.33 has owned_names(rank) in its place, and makes the other a property.
if not all(callable(getattr(WeightSource, each, None)) for each in ("held_names", "metadata")):
    raise _other()

__all__ = [
    "ParamMeta",
    "TrainerInitInfo",
    "TrainerWeightTransferEngine",
    "VLLMWeightSyncClient",
    "WeightSource",
    "WeightTransferEngine",
    "WeightTransferInitInfo",
    "WeightTransferUpdateInfo",
]
