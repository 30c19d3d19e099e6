// Where memory lies, as the command line says it: "host", "node:1", "gpu:3".
#pragma once

#include <string>
#include <string_view>
#include <weft/memory.hpp>

namespace weft::tool {

/// `invalid_argument` for anything else.
Result<Place> parse_place(std::string_view text);

}  // namespace weft::tool
