#include "device/file/file_errors.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "base/system_error.hpp"

namespace weft::core {
namespace {

Code code_of(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      return Code::not_found;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::permission_denied;
    case EISDIR:
    case EINVAL:
      return Code::invalid_argument;
    case ENOMEM:
      return Code::out_of_memory;
    case ETIMEDOUT:
      return Code::timed_out;
    default:
      return Code::unavailable;
  }
}

}  // namespace

Error file_error(const std::string& path, int number) {
  return Error(code_of(number),
               fmt::format("'{}': {} (errno {})", path, reason_of(number), number));
}

Error file_io_error(const std::string& path, int number, bool write) {
  return Error(code_of(number), fmt::format("{} file '{}' failed: {} (errno {})",
                                            write ? "writing to" : "reading from", path,
                                            std::strerror(number), number));
}

Error file_cut_off(const std::string& path, std::uint64_t at) {
  return Error(Code::unavailable,
               fmt::format("file '{}' ends at byte {}: it was cut off (errno {})", path, at, EIO));
}

}  // namespace weft::core
