// Files written as a whole or not at all.
#pragma once

#include <string>
#include <string_view>
#include <weft/error.hpp>

namespace weft::tool {

/// Writes beside `path` and puts the complete file in its place: on an error nothing is left, and
/// what was there before stays. Other files, such as /dev/stdout, are written to in place.
Result<void> replace_file(const std::string& path, std::string_view bytes);

/// Whether replace_file() could do it now, without a trace.
Result<void> check_replaceable(const std::string& path);

}  // namespace weft::tool
