// Errors of system calls.
#pragma once

#include <string>
#include <string_view>
#include <system_error>
#include <weft/error.hpp>

namespace weft::core {

/// "Too many open files (ulimit -n)": the system's words, and what to change where that is known.
std::string error_text(int error);
/// The error of a call that failed, from `errno`.
Error system_error(std::string_view operation);
/// What a library has thrown for it.
Error system_error(const std::system_error& thrown);

}  // namespace weft::core
