#include "base/system_error.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace weft::core {

std::string reason_of(int error) {
  std::string reason = std::generic_category().message(error);
  rlimit limit{};
  if (error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
    reason += fmt::format(", the limit of this process is {} (ulimit -n)", limit.rlim_cur);
  return reason;
}

Error system_error(std::string_view operation) {
  const int error = errno;
  const Code code = error == ENOMEM ? Code::out_of_memory : Code::unavailable;
  return Error(code, fmt::format("{}: {}", operation, reason_of(error)))
      .with_operation(std::string(operation));
}

}  // namespace weft::core
