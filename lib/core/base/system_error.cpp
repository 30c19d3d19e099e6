#include "base/system_error.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>

namespace weft::core {
namespace {

Code code_of_system_error(int error) {
  return error == ENOMEM ? Code::out_of_memory : Code::unavailable;
}

}  // namespace

Code code_of_path_error(int number) {
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

std::string error_text(int number) {
  std::string text = std::generic_category().message(number);
  rlimit limit{};
  if (number == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
    text += fmt::format(" (the process may have {}: RLIMIT_NOFILE, ulimit -n)", limit.rlim_cur);
  if (number == ENFILE) text += " (fs.file-max)";
  return text;
}

Error system_error(std::string_view operation) {
  const int error = errno;
  return Error(code_of_system_error(error), fmt::format("{}: {}", operation, error_text(error)))
      .with_operation(std::string(operation));
}

Error system_error(const std::system_error& thrown) {
  const int error = thrown.code().value();
  return Error(code_of_system_error(error), fmt::format("a library failed: {}", error_text(error)));
}

}  // namespace weft::core
