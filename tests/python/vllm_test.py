"""What weft.vllm knows of vLLM without one: its modules are stood in for."""

from __future__ import annotations

import importlib
import sys
import types
from types import SimpleNamespace
from typing import Any

import pytest

from weft.vllm._sleep import refuse_asleep

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


def allocator(monkeypatch: pytest.MonkeyPatch, name: str, instance: object) -> None:
    module = types.ModuleType(name)
    module.CuMemAllocator = SimpleNamespace(instance=instance)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, name, module)


def holding(tag: str, backup: object) -> object:
    return SimpleNamespace(pointer_to_data={1: SimpleNamespace(tag=tag, cpu_backup_tensor=backup)})


@pytest.mark.parametrize("package", ["vllm", "vllm.backends.platform"])
def test_weights_that_are_put_away_are_not_loaded_into(monkeypatch, package):
    name = f"{package}.device_allocator.cumem"
    allocator(monkeypatch, name, holding("weights", b"a copy"))
    with pytest.raises(RuntimeError, match="vLLM sleeps.*/wake_up"):
        refuse_asleep()
    allocator(monkeypatch, name, holding("weights", None))  # Awake.
    refuse_asleep()
    allocator(monkeypatch, name, holding("kv_cache", b"a copy"))  # Woken up for its weights.
    refuse_asleep()


def test_a_vllm_that_can_not_sleep_is_awake(monkeypatch):
    refuse_asleep()
    allocator(monkeypatch, "vllm.device_allocator.cumem", None)
    refuse_asleep()
