// Bytes that tell where they belong: no two places of a stream, and no two streams, look alike.
// A header alone, for the tests do not link the library of what is common.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace weft::tool {

/// What memory that nobody may write to holds.
constexpr std::byte canary{0xc5};

/// Calls `each(position, bytes)` for pieces of a stream that cover `size` bytes from its byte
/// `from` on. Sanitizers look at a piece once, and would look at each word.
template <typename Each>
void for_pattern(std::uint64_t seed, std::uint64_t from, std::size_t size, Each&& each) {
  constexpr std::size_t word_bytes = sizeof(std::uint64_t);
  std::array<std::uint64_t, 512> words;
  for (std::size_t position = 0; position < size;) {
    const std::uint64_t place = from + position, index = place / word_bytes;
    const std::size_t skip = place % word_bytes;
    const std::size_t bytes = std::min(sizeof words - skip, size - position);
    for (std::size_t i = 0; i * word_bytes < skip + bytes; ++i) {
      // The finaliser of SplitMix64: every bit of the place changes every bit of the word.
      std::uint64_t word = seed * 0xd1342543de82ef95 + (index + i + 1) * 0x9e3779b97f4a7c15;
      word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
      word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
      words[i] = word ^ (word >> 31);
    }
    each(position, std::as_bytes(std::span(words)).subspan(skip, bytes));
    position += bytes;
  }
}

/// The bytes of stream `seed` from its byte `from` on.
inline void pattern(std::uint64_t seed, std::uint64_t from, std::span<std::byte> bytes) {
  for_pattern(seed, from, bytes.size(), [&](std::size_t at, std::span<const std::byte> piece) {
    std::memcpy(bytes.data() + at, piece.data(), piece.size());
  });
}

/// Bytes that are not what they should be.
struct Difference {
  std::uint64_t count = 0;
  std::size_t first = 0;  ///< Of them, and what is there.
  std::byte found{}, wanted{};

  void look(std::size_t at, std::span<const std::byte> there, std::span<const std::byte> right) {
    if (std::memcmp(there.data(), right.data(), there.size()) == 0) return;
    for (std::size_t i = 0; i < there.size(); ++i)
      if (there[i] != right[i] && count++ == 0) first = at + i, found = there[i], wanted = right[i];
  }
};

inline Difference difference(std::span<const std::byte> bytes, std::uint64_t seed,
                             std::uint64_t from) {
  Difference wrong;
  for_pattern(seed, from, bytes.size(), [&](std::size_t at, std::span<const std::byte> piece) {
    wrong.look(at, bytes.subspan(at, piece.size()), piece);
  });
  return wrong;
}

inline Difference difference_from_canary(std::span<const std::byte> bytes) {
  constexpr static auto canaries = [] {
    std::array<std::byte, 4096> all{};
    all.fill(canary);
    return all;
  }();
  Difference wrong;
  for (std::size_t at = 0; at < bytes.size(); at += canaries.size()) {
    const auto piece = bytes.subspan(at, std::min(canaries.size(), bytes.size() - at));
    wrong.look(at, piece, std::span(canaries).first(piece.size()));
  }
  return wrong;
}

/// The result of a check.
struct Findings {
  std::uint64_t checked = 0;  ///< Bytes.
  std::uint64_t wrong = 0;
  std::string first = {};  ///< Where and what the first wrong byte is; empty if none.

  bool right() const noexcept { return wrong == 0; }
  /// `say(difference)`: where and what its first byte is.
  template <typename Say>
  void add(std::uint64_t bytes, const Difference& difference, Say&& say) {
    checked += bytes;
    wrong += difference.count;
    if (difference.count > 0 && first.empty()) first = say(difference);
  }
  /// `where`: what is said before what was found first.
  void add(const Findings& other, const std::string& where = {}) {
    checked += other.checked;
    wrong += other.wrong;
    if (first.empty() && !other.first.empty()) first = where + other.first;
  }
};

}  // namespace weft::tool
