// Whether what a command has printed has gone out.
#pragma once

#include <weft/error.hpp>

namespace weft::tool {

/// Last thing in main: a full disk or a closed pipe is told by nothing else where the system takes
/// what is printed later. `unavailable`, with the system's reason.
Result<void> finish_standard_output();

}  // namespace weft::tool
