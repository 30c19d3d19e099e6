// How long a file is, and room for it on its drive.
#pragma once

#include <cstdint>
#include <string>
#include <weft/error.hpp>
#include <weft/place.hpp>

namespace weft::core {

/// Bytes of a file or a block device. `invalid_argument`: it is neither.
Result<std::uint64_t> file_length(int fd, const std::string& path);

/// The file system has room for these bytes of a file from now on; the file ends behind them at the
/// earliest. `unavailable`, with what is free, if there is not as much; `unsupported` if it can't
/// be reserved. May block.
Result<void> reserve_room(int fd, const std::string& path, const Range& bytes);

}  // namespace weft::core
