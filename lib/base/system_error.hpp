// Errors of system calls.
#pragma once

#include <string>
#include <string_view>
#include <system_error>
#include <weft/error.hpp>

namespace weft::core {

/// "Permission denied"; of a limit of the process's, with its value and its name.
std::string error_text(int number);
/// Of a call that names a file.
Code code_of_path_error(int number);
/// The error of a call that failed, from `errno`.
Error system_error(std::string_view operation);
/// What a library has thrown for it.
Error system_error(const std::system_error& thrown);

}  // namespace weft::core
