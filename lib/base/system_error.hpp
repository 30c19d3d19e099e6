// Errors of system calls.
#pragma once

#include <string_view>
#include <weft/error.hpp>

namespace weft::core {

/// The error of a call that failed, from `errno`.
Error system_error(std::string_view operation);

}  // namespace weft::core
