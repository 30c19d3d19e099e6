// The contents of the demonstration's caches, and their check on arrival.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "common/pattern.hpp"
#include "demo/page_map.hpp"

namespace weft::tool {

/// Two requests share no byte sequence.
struct PatternKey {
  std::uint64_t seed = 0;
  std::uint64_t request = 0;
};

/// What goes from one rank to another, in terms of one of the two.
struct Shared {
  kv::LayerRange layers;                          ///< That both hold.
  std::vector<std::vector<kv::HeadRange>> heads;  ///< For each field of each group.
  std::vector<std::uint32_t> windows;             ///< For each group; 0: all tokens.

  /// The first of a request's `tokens` tokens that goes in a group.
  std::uint64_t first_token(std::size_t group, std::uint64_t tokens) const noexcept {
    const std::uint32_t window = windows[group];
    return window != 0 && tokens > window ? tokens - window : 0;
  }
};

/// The part of a request's blocks that has to hold the pattern; all else must be canary.
struct Expected {
  PatternKey key;
  std::uint64_t tokens = 0;
  Shared shared = {};
};

// A cache takes seconds: a stop ends each of these early.

/// Writes the pattern of the first `tokens` tokens.
void fill(std::span<std::byte> cache, const PageMap& map, const BlockTable& table,
          const Expected& what, kv::LayerRange layers, const std::stop_token& stop = {});
/// Checks every byte of a request's blocks.
Findings verify(std::span<const std::byte> cache, const PageMap& map, const BlockTable& table,
                const Expected& what, kv::LayerRange layers, const std::stop_token& stop = {});
/// Puts the canary back into blocks.
void clear(std::span<std::byte> cache, const PageMap& map, const BlockTable& table,
           kv::LayerRange layers, const std::stop_token& stop = {});
/// Fills memory with the canary.
void clear(std::span<std::byte> memory, const std::stop_token& stop = {});
/// Checks that memory holds nothing but the canary. `start`: its offset in the cache, for `first`.
Findings verify_canary(std::span<const std::byte> memory, std::uint64_t start,
                       const std::stop_token& stop = {});

}  // namespace weft::tool
