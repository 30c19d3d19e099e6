// Errors of system calls.
#pragma once

#include <string>
#include <string_view>
#include <weft/error.hpp>

namespace weft::core {

/// "Permission denied"; of a limit of the process's, with its value.
std::string error_text(int number);

/// The error of a call that failed, from `errno`.
Error system_error(std::string_view operation);

}  // namespace weft::core
