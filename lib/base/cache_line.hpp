// The unit in which cores take memory from each other.
#pragma once

#include <cstddef>

namespace weft::core {

/// Of x86-64 and of the Arm cores of EC2. What several threads write lies apart by as much, so that
/// none waits for the others' writes to what it does not use.
constexpr std::size_t cache_line = 64;

}  // namespace weft::core
