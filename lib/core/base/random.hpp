// Random numbers that others can't guess.
#pragma once

#include <cstdint>

namespace weft::core {

/// 64 bits from the kernel's generator; never zero.
std::uint64_t random_u64();

}  // namespace weft::core
