"""Virtual environments that have a version of NIXL's wheel, and what the tests take besides."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys

OLDEST, NEWEST = (3, 10), (3, 14)  # Pythons for which there are wheels.
NEEDED = ("numpy", "pytest", "pytest-timeout")
INSTALLED = "weft-tests"  # A file that is there when all of it is.
LIMIT = 300  # Seconds to fetch 70 MB in.
REACH = ("--timeout", "10", "--retries", "1")
LAST_LINES = 4
LOOK = """
import importlib.metadata as metadata, importlib.util as util, json
print(json.dumps({"nixl": metadata.version("nixl"), "torch": util.find_spec("torch") is not None,
                  "tests": all(util.find_spec(each) for each in ("pytest", "pytest_timeout"))}))
"""


class Missing(Exception):
    """It can't be run here; says why."""


def python_of(folder):
    return os.path.join(folder, "bin", "python")


def usual_folder(version):
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(caches, "weft", f"nixl-{version}")


def look(folder):
    """The version of NIXL in it, whether torch is there, and what the tests take."""
    try:
        said = subprocess.run([python_of(folder), "-c", LOOK], capture_output=True, text=True,
                              timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        raise Missing(f"there is no NIXL in {folder}") from None
    found = json.loads(said)
    if not found["tests"]:
        raise Missing(f"{folder} lacks pytest or pytest-timeout")
    return found


def environment_of(version, install):
    """Its folder. It is made once; others that make the same one wait for it."""
    folder = usual_folder(version)
    installed = os.path.join(folder, INSTALLED)
    if not install and not os.path.exists(installed):
        raise Missing(f"NIXL {version} is not in {folder} (--install fetches it from PyPI)")
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with alone(folder + ".lock"):
        if not os.path.exists(installed):
            make(folder, version)
            with open(installed, "w", encoding="ascii"):
                pass
    return folder


@contextlib.contextmanager
def alone(path):
    with open(path, "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make(folder, version):
    shutil.rmtree(folder, ignore_errors=True)
    call("make a virtual environment", suitable_python(), "-m", "venv", folder)
    pip = [python_of(folder), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
           *REACH]
    # NIXL asks for torch, which is larger by far and not needed here.
    call("fetch NIXL", *pip, "--no-deps", f"nixl=={version}", f"nixl-cu12=={version}")
    call("fetch what the tests take", *pip, *NEEDED)


def suitable_python():
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return sys.executable
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found:
            return found
    raise Missing("NIXL's wheels are for Python 3.10 to 3.14, of which there is none here")


def call(what, *command):
    try:
        subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    except subprocess.TimeoutExpired:
        raise Missing(f"can't {what}: it took more than {LIMIT} s") from None
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        raise Missing(f"can't {what}: " + " / ".join(said.split("\n")[-LAST_LINES:])) from None
