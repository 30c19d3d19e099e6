"""What weft.vllm knows of vLLM without one: its modules are stood in for."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from weft.vllm._sleep import refuse_asleep


def allocator(monkeypatch: pytest.MonkeyPatch, name: str, instance: object) -> None:
    module = ModuleType(name)
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
