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


def imported(folder: Path) -> str:
    """What an import of the package in a folder says."""
    ended = subprocess.run(
        [sys.executable, "-c", "import weft; print(weft.__version__)"],
        capture_output=True,
        text=True,
        timeout=80,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
    return ended.stdout if ended.returncode == 0 else ended.stderr


def test_an_install_that_is_mixed_with_another(tmp_path: Path) -> None:
    package = tmp_path / "weft"
    package.mkdir()
    for file in Path(weft.__file__).parent.iterdir():
        (package / file.name).symlink_to(file)
    (tmp_path / "weft_transfer-1.0.dist-info").mkdir()
    assert imported(tmp_path).strip() == weft.__version__
    other = tmp_path / "weft-0.4.dist-info"
    other.mkdir()
    text = imported(tmp_path)
    assert "ImportError" in text and "weft-0.4.dist-info" in text and "uninstall both" in text
    other.rmdir()
    for extension in package.glob("_weft.*"):
        extension.unlink()
    text = imported(tmp_path)
    assert "ImportError" in text and "lacks its extension module" in text


def test_vllm_finds_its_plug_in() -> None:
    points = importlib.metadata.entry_points(group="vllm.general_plugins", name="weft")
    if not points:
        pytest.skip("the package was not installed from a wheel")
    (point,) = points
    point.load()()  # Without vLLM it does nothing.
