// Files that only their user may read.
#pragma once

#include <string>
#include <weft/error.hpp>

namespace weft::core {

/// The contents of a regular file that others than its owner and group may neither read nor write.
/// `option`: what names it, for errors, which never show any of the contents.
Result<std::string> read_private_file(const std::string& option, const std::string& path);

}  // namespace weft::core
