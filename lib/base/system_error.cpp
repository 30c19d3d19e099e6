#include "base/system_error.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace weft::core {

std::string error_text(int number) {
  const std::string text = std::generic_category().message(number);
  rlimit limit{};
  if (number != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) != 0) return text;
  return fmt::format("{} (the process may have {}: RLIMIT_NOFILE, ulimit -n)", text,
                     limit.rlim_cur);
}

Error system_error(std::string_view operation) {
  const int error = errno;
  const Code code = error == ENOMEM ? Code::out_of_memory : Code::unavailable;
  return Error(code, fmt::format("{}: {}", operation, error_text(error)))
      .with_operation(std::string(operation));
}

}  // namespace weft::core
