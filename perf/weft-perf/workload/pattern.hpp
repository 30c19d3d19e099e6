// Bytes that tell where they come from, and the search for one that is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace weft::perf {

/// `length` bytes at `at`, which hold those of stream `seed` from its byte `from` on.
struct Stretch {
  std::uint64_t at = 0;
  std::uint64_t length = 0;
  std::uint64_t seed = 0;
  std::uint64_t from = 0;
};

/// What memory that nobody may write to holds.
constexpr std::byte canary{0xc5};

/// The bytes of a stream: each depends on the seed and on its position, which may be any.
void pattern(std::uint64_t seed, std::uint64_t from, std::span<std::byte> bytes);

/// Writes the stretches, and canaries everywhere else. A stop ends it early.
void fill(std::span<std::byte> memory, std::span<const Stretch> stretches,
          const std::stop_token& stop = {});

struct Findings {
  std::uint64_t checked = 0;  ///< Bytes.
  std::uint64_t wrong = 0;
  std::string first;  ///< Where and what the first wrong byte is; empty if none.
};

/// `where`: what is said before what was found first.
void add(const Findings& found, const std::string& where, Findings& sum);

/// Compares every byte of `memory`. The stretches are sorted by `at` and do not overlap.
Findings check(std::span<const std::byte> memory, std::span<const Stretch> stretches);

}  // namespace weft::perf
