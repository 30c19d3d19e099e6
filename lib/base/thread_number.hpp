// Numbers threads, so that they can be spread over shards.
#pragma once

#include <atomic>
#include <cstddef>

namespace weft::core {

/// From 0 on, in the order in which threads ask first.
inline std::size_t thread_number() noexcept {
  static std::atomic<std::size_t> threads{0};
  static thread_local const std::size_t mine = threads++;
  return mine;
}

}  // namespace weft::core
