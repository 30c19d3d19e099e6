// Descriptors that another process has open.
#pragma once

#include <cstdint>
#include <string_view>

#include "providers/shm/descriptor.hpp"

namespace weft::providers::shm {

/// Opens another process's descriptor anew, if it is of the kind expected: the number came from
/// outside, and opening a device could have effects. `kind`: what its link in /proc begins with.
/// `mode`: as of open(2).
Result<Descriptor> open_of(std::int32_t pid, std::int32_t descriptor, std::string_view kind,
                           int mode);

}  // namespace weft::providers::shm
