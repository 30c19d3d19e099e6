// XXH3 with 64 bits, over memory that comes in parts.
#pragma once

#include <cstddef>
#include <cstdint>

// The state has a known size, so that it needs no allocation.
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

namespace weft::core {

class Xxh3 {
 public:
  Xxh3() noexcept { XXH3_64bits_reset(&state_); }
  void add(const void* memory, std::size_t bytes) noexcept {
    XXH3_64bits_update(&state_, memory, bytes);
  }
  std::uint64_t digest() const noexcept { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

}  // namespace weft::core
