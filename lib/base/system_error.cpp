#include "base/system_error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace weft::core {

Error system_error(std::string_view operation) {
  const int error = errno;
  const Code code = error == ENOMEM ? Code::out_of_memory : Code::unavailable;
  return Error(code, fmt::format("{}: {}", operation, std::generic_category().message(error)))
      .with_operation(std::string(operation));
}

}  // namespace weft::core
