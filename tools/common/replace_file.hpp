// Files written as a whole or not at all.
#pragma once

#include <string>
#include <string_view>
#include <weft/error.hpp>

namespace weft::tool {

/// Writes beside `path` and puts the complete file in its place: on an error nothing is left, and
/// what was there before stays. What is no ordinary file, such as /dev/stdout, is written to as it
/// is.
Result<void> replace_file(const std::string& path, std::string_view bytes);

/// Whether replace_file() could do it now, without a trace.
Result<void> check_replaceable(const std::string& path);

}  // namespace weft::tool
