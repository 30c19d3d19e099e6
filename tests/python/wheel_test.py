"""What a wheel brings besides the library: the demo, and NIXL's plug-in where it was installed."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import runpy
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


def test_an_install_that_is_mixed_with_another(tmp_path: Path) -> None:
    package = tmp_path / "weft"
    package.mkdir()
    for file in Path(weft.__file__).parent.glob("*.py"):
        (package / file.name).symlink_to(file)
    install = runpy.run_path(str(package / "_install.py"))
    (tmp_path / "weft_transfer-1.0.dist-info").mkdir()
    install["check"]()
    other = tmp_path / "weft-0.4.dist-info"
    other.mkdir()
    with pytest.raises(ImportError, match="weft-0.4.dist-info.*uninstall both"):
        install["check"]()
    other.rmdir()
    # Now one without its extension, as the end of the other one leaves it.
    ended = subprocess.run(
        [sys.executable, "-c", "import weft"],
        capture_output=True,
        text=True,
        timeout=80,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert "ImportError" in ended.stderr and "lacks its extension module" in ended.stderr


def test_vllm_finds_its_plug_in() -> None:
    points = importlib.metadata.entry_points(group="vllm.general_plugins", name="weft")
    if not points:
        pytest.skip("the package was not installed from a wheel")
    (point,) = points
    point.load()()  # Without vLLM it does nothing.
