"""The weight transfer of vLLM, where vLLM is another one than it was made for."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

import pytest

BASE = "vllm.distributed.weight_transfer.base"
NAMES = (
    "ParamMeta",
    "TrainerInitInfo",
    "TrainerWeightTransferEngine",
    "VLLMWeightSyncClient",
    "WeightTransferEngine",
    "WeightTransferInitInfo",
    "WeightTransferUpdateInfo",
)


class Source32:
    def held_names(self) -> None: ...
    def metadata(self) -> None: ...


class Source33:
    def owned_names(self, rank: int) -> None: ...
    @property
    def metadata(self) -> None: ...


def stand_in(monkeypatch: pytest.MonkeyPatch, **names: Any) -> None:
    """For vLLM and for torch, of which nothing is called."""
    parts = BASE.split(".")
    for length in range(1, len(parts) + 1):
        name = ".".join(parts[:length])
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    vars(sys.modules[BASE]).update(names)
    torch = types.ModuleType("torch")
    torch.no_grad = lambda: lambda call: call  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    for module in ("_interface", "_staging", "trainer", "worker"):
        monkeypatch.delitem(sys.modules, "weft.vllm." + module, raising=False)


def classes() -> dict[str, type]:
    return {name: type(name, (), {}) for name in NAMES}


@pytest.mark.parametrize("side", ("trainer", "worker"))
@pytest.mark.parametrize("source", (Source33, None))
def test_another_interface_is_told(
    monkeypatch: pytest.MonkeyPatch, side: str, source: type | None
) -> None:
    stand_in(monkeypatch, **classes(), **({"WeightSource": source} if source else {}))
    with pytest.raises(ImportError, match=r"made for the weight transfer of vLLM 0\.32"):
        importlib.import_module("weft.vllm." + side)


@pytest.mark.parametrize("side", ("trainer", "worker"))
def test_its_own_interface_is_taken(monkeypatch: pytest.MonkeyPatch, side: str) -> None:
    stand_in(monkeypatch, **classes(), WeightSource=Source32)
    importlib.import_module("weft.vllm." + side)
