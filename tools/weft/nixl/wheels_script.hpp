// Run by a Python that is asked for its wheels of NIXL. It imports nothing of NIXL.
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

}  // namespace weft::tool
