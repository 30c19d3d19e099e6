// Scripts that a Python runs. Each ends itself after the seconds in its first argument, should
// nobody wait for it any more, and prints a JSON document.
#pragma once

#include <string_view>

namespace weft::tool {

/// Prints {"executable", "version", "nixl": version or null, "wheels": [...]}.
constexpr std::string_view nixl_wheels_script = R"python(
import sys

# Not from the folder that the command is called in.
sys.path[:] = [path for path in sys.path if path]

import importlib.metadata
import json
import os
import platform

def distribution(name):
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None

def wheel(package):
    found = distribution(package)
    if found is None:
        return None
    module = package.replace("-", "_")
    folder = os.path.abspath(found.locate_file(f".{module}.mesonpy.libs/plugins"))
    return {"package": package, "module": module, "version": found.version, "folder": folder,
            "has_folder": os.path.isdir(folder)}

nixl = distribution("nixl")
wheels = [wheel("nixl-cu12"), wheel("nixl-cu13")]
print(json.dumps({"executable": sys.executable or "", "version": platform.python_version(),
                  "nixl": nixl and nixl.version, "wheels": [each for each in wheels if each]}))
)python";

/// Prints {"module": name} or {"problem": sentence}.
constexpr std::string_view nixl_choice_script = R"python(
import sys

# Not from the folder that the command is called in.
sys.path[:] = [path for path in sys.path if path]

import json
import os
import signal

# Should nobody wait for it any more.
signal.alarm(int(sys.argv[1]))
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
try:
    from nixl import _api
    told = {"module": _api.__name__.split(".")[0]}
except Exception as error:
    told = {"problem": f"{type(error).__name__}: {error}"}
print(json.dumps(told), file=answer, flush=True)
)python";

/// Arguments: the module of the wheel, the name of the backend, and a number of seconds. Prints a
/// document before each step ("doing") and after the last, the latest of which is complete:
/// {"plugins", "memory", "loaded", "bytes", "wrong", "doing" or "problem"}.
constexpr std::string_view nixl_opening_script = R"python(
import sys

# Not from the folder that the command is called in.
sys.path[:] = [path for path in sys.path if path]

import ctypes
import importlib
import json
import os
import signal
import time

MODULE, NAME, SECONDS = sys.argv[1], sys.argv[2], int(sys.argv[3])
BYTES = 4096
# Should nobody wait for it any more.
signal.alarm(SECONDS)
# What libraries print to standard output goes to standard error.
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
told = {}

def tell(**more):
    told.update(more)
    print(json.dumps(told), file=answer, flush=True)

def libraries():
    """Files of NIXL, Weft and libfabric that this process has mapped."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = {line.split(None, 5)[5].rstrip("\n") for line in maps if "/" in line}
    wanted = ("libplugin_", "libweft.", "libfabric.", "libnixl.")
    return sorted(path for path in paths if os.path.basename(path).startswith(wanted))

def pattern(at):
    return (at * 167 + (at >> 8) * 31 + 1) % 256

def made_agent():
    api = importlib.import_module(MODULE + "._api")
    return api.nixl_agent(f"weft-status-{os.getpid()}", api.nixl_agent_config(backends=[]))

def opened(agent):
    if NAME not in agent.get_plugin_list():
        raise LookupError(f"NIXL has no plug-in {NAME} in its list")
    agent.create_backend(NAME)

def written(agent, source, target):
    """The state of a write of all of `source` into `target`, once it is over."""
    lists = [agent.get_xfer_descs([(ctypes.addressof(each), BYTES, 0)], "DRAM")
             for each in (source, target)]
    handle = agent.initialize_xfer("WRITE", *lists, agent.name, backends=[NAME])
    state = agent.transfer(handle)
    while state == "PROC":
        time.sleep(0.001)
        state = agent.check_xfer_state(handle)
    agent.release_xfer_handle(handle)
    return state

def write(agent):
    source = (ctypes.c_ubyte * BYTES)(*map(pattern, range(BYTES)))
    # No byte is right before.
    target = (ctypes.c_ubyte * BYTES)(*(255 - byte for byte in source))
    regions = [(ctypes.addressof(each), BYTES, 0, "") for each in (source, target)]
    tell(doing="registering memory")
    registered = agent.register_memory(regions, "DRAM", backends=[NAME])
    tell(doing="writing")
    state = written(agent, source, target)
    if state != "DONE":
        raise RuntimeError(f"the write ended as {state}")
    wrong = sum(byte != pattern(at) for at, byte in enumerate(target))
    tell(doing="deregistering memory", bytes=BYTES, wrong=wrong)
    agent.deregister_memory(registered, backends=[NAME])

def work():
    tell(doing="loading NIXL")
    agent = made_agent()
    tell(doing="opening the backend", plugins=agent.get_plugin_list())
    opened(agent)
    tell(memory=agent.get_backend_mem_types(NAME), loaded=libraries())
    write(agent)
    tell(doing="closing the backend")

# A server that runs has the address already.
if os.environ.get("WEFT_METRICS_LISTEN"):
    os.environ["WEFT_METRICS_LISTEN"] = "127.0.0.1:0"
try:
    work()
    tell(doing="ending")
except Exception as error:
    tell(problem=f"{type(error).__name__}: {error}")
answer.close()
)python";

}  // namespace weft::tool
