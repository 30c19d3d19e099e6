"""What a wheel brings besides the library: the demo, and NIXL's plug-in where it was installed.
And how one is refused."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import PROVIDERS, built

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


def test_other_copies_of_its_libraries_are_left_alone(tmp_path: Path) -> None:
    if not (Path(weft.__file__).parent / "lib/libweft.so").exists():
        pytest.skip("the package was not installed from a wheel")
    program = f"""
import ctypes
ctypes.CDLL({built(tmp_path, "another_copy.c")!r}, ctypes.RTLD_GLOBAL)
import weft
with weft.testing.pair(providers=["tcp"]) as both:
    print("met")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, b"met\n"), ended.stderr


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this version has the stable ABI")
def test_a_stable_abi_that_is_not_there_is_refused_before_the_build(tmp_path: Path) -> None:
    meson = shutil.which("meson")
    if meson is None:
        pytest.skip("there is no meson")
    version = subprocess.check_output([meson, "--version"], text=True, timeout=60)
    if tuple(map(int, version.split(".")[:2])) < (1, 3):
        pytest.skip(f"meson {version.strip()} has no python.allow_limited_api")
    if importlib.util.find_spec("nanobind") is None:
        pytest.skip("there is no nanobind")
    source = Path(__file__).parents[2]
    native = tmp_path / "this-python.ini"
    native.write_text(f"[binaries]\npython = '{sys.executable}'\npython3 = '{sys.executable}'\n")
    ended = subprocess.run(
        [meson, "setup", tmp_path / "build", source, "-Dwheel=true", "--native-file", native],
        capture_output=True,
        text=True,
        timeout=80,
    )
    assert ended.returncode != 0
    assert "--config-settings=setup-args=-Dpython.allow_limited_api=false" in ended.stdout
    assert "hwloc" not in ended.stdout  # It did not look for what Weft needs.


def test_vllm_finds_its_plug_in() -> None:
    points = importlib.metadata.entry_points(group="vllm.general_plugins", name="weft")
    if not points:
        pytest.skip("the package was not installed from a wheel")
    (point,) = points
    point.load()()  # Without vLLM it does nothing.
