// File descriptors, and the errors of calls that make them.
#pragma once

#include <string_view>
#include <weft/error.hpp>

#include "base/descriptor.hpp"

namespace weft::providers::shm {

using core::Descriptor;

/// The error of a call that failed, from `errno`.
Error system_error(std::string_view operation);

}  // namespace weft::providers::shm
