// File descriptors, and the errors of calls that make them.
#pragma once

#include "base/descriptor.hpp"
#include "base/system_error.hpp"

namespace weft::providers::shm {

using core::Descriptor;
using core::system_error;

}  // namespace weft::providers::shm
