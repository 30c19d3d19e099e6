// Run by a Python that is asked which of its wheels the package nixl takes.
#pragma once

#include <string_view>

namespace weft::tool {

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

}  // namespace weft::tool
