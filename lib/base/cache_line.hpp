// The unit in which cores take memory from each other.
#pragma once

#include <cstddef>

namespace weft::core {

/// Of x86-64 and of the Arm cores of EC2.
/// Keeps data of different threads apart (false sharing).
constexpr std::size_t cache_line = 64;

}  // namespace weft::core
