// Classes of transfers as indices.
#pragma once

#include <cstddef>
#include <weft/transfer.hpp>

namespace weft::core {

/// From 0, the most urgent first.
constexpr std::size_t index_of(Priority priority) {
  return static_cast<std::size_t>(static_cast<int>(priority) - static_cast<int>(Priority::latency));
}
inline constexpr std::size_t priorities = index_of(Priority::bulk) + 1;

}  // namespace weft::core
