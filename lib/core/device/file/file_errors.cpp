#include "device/file/file_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/system_error.hpp"
#include "device/file/file_room.hpp"

namespace weft::core {

Error file_error(const std::string& path, int number) {
  return Error(code_of_path_error(number),
               fmt::format("'{}': {} (errno {})", path, error_text(number), number));
}

Error file_io_error(const std::string& path, int number, bool write) {
  return Error(code_of_path_error(number), fmt::format("{} file '{}' failed: {} (errno {})",
                                                       write ? "writing to" : "reading from", path,
                                                       error_text(number), number));
}

Error file_cut_off(const std::string& path, int fd, std::uint64_t at) {
  // Others may have made it longer since.
  const std::uint64_t end = std::min(at, file_length(fd, path).value_or(at));
  return Error(Code::unavailable,
               fmt::format("file '{}' ends at byte {}: it was cut off (errno {})", path, end, EIO));
}

}  // namespace weft::core
