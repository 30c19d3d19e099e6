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
