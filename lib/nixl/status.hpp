// Weft's errors in the words of NIXL's users.
#pragma once

#include <weft/error.hpp>

#include "nixl/abi.hpp"

namespace weft::nixl {

abi::Status status_of(Code code) noexcept;

/// Writes what failed to the log, and returns the status for it.
abi::Status refuse(const char* what, const Error& error);

}  // namespace weft::nixl
