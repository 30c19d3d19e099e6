"""What a wheel brings besides the library: the demo, and NIXL's plug-in where it was installed."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import PROVIDERS

import weft


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_demo(provider: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "weft.demo"],
        capture_output=True,
        text=True,
        timeout=80,
        env={**os.environ, "WEFT_PROVIDERS": provider},
    )
    assert ended.returncode == 0, ended.stderr
    assert "all 160 MiB of the cache are as they should be" in ended.stdout
    assert f"over {provider}:0" in ended.stdout


def test_the_plug_in_is_opened_by_a_link(tmp_path: Path) -> None:
    plugin = Path(weft.__file__).parent / "lib/weft/libplugin_WEFT.so"
    if not plugin.exists():
        pytest.skip("the package was not installed from a wheel")
    link = tmp_path / "libplugin_UCX.so"
    link.symlink_to(plugin)
    start = ctypes.CDLL(str(link)).nixl_plugin_init
    start.restype = ctypes.c_void_p
    assert start()


def test_vllm_finds_its_plug_in() -> None:
    points = importlib.metadata.entry_points(group="vllm.general_plugins", name="weft")
    if not points:
        pytest.skip("the package was not installed from a wheel")
    (point,) = points
    point.load()()  # Without vLLM it does nothing.
