// Errors of system calls.
#pragma once

#include <string>
#include <string_view>
#include <weft/error.hpp>

namespace weft::core {

/// An error number in words. Where descriptors have run out, with their limit.
std::string reason_of(int error);

/// The error of a call that failed, from `errno`.
Error system_error(std::string_view operation);

}  // namespace weft::core
