// Files that a command was told to read.
#pragma once

#include <string>
#include <weft/error.hpp>

namespace weft::tool {

/// All of it. An error names the file and the system's reason.
Result<std::string> read_input(const std::string& path);

}  // namespace weft::tool
