// Memory that holds stretches of patterns, and the search for a byte that is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>

#include "common/pattern.hpp"

namespace weft::perf {

using tool::Findings;

/// `length` bytes at `at`, which hold those of stream `seed` from its byte `from` on.
struct Stretch {
  std::uint64_t at = 0;
  std::uint64_t length = 0;
  std::uint64_t seed = 0;
  std::uint64_t from = 0;
};

/// Writes the stretches, and canaries everywhere else. A stop ends it early.
void fill(std::span<std::byte> memory, std::span<const Stretch> stretches,
          const std::stop_token& stop = {});

/// Compares every byte of `memory`. The stretches are sorted by `at` and do not overlap.
Findings check(std::span<const std::byte> memory, std::span<const Stretch> stretches);

}  // namespace weft::perf
