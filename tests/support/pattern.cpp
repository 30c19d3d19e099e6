#include "pattern.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace weft::test {
namespace {

constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);

/// The finaliser of SplitMix64: every bit of the place changes every bit of the word.
std::uint64_t word_at(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t word = seed * 0xd1342543de82ef95 + index * 0x9e3779b97f4a7c15;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

/// Calls `each(position, bytes)` for pieces of the pattern that cover `size` bytes, until it
/// returns false. Sanitizers look at a piece once, and would look at each word.
template <typename Each>
void for_pieces(std::size_t size, std::uint64_t seed, std::uint64_t offset, Each&& each) {
  std::array<std::uint64_t, 512> words;
  for (std::size_t position = 0; position < size;) {
    const std::uint64_t place = offset + position;
    const std::size_t skip = place % word_bytes;
    const std::size_t bytes = std::min<std::size_t>(sizeof words - skip, size - position);
    const std::size_t count = (skip + bytes + word_bytes - 1) / word_bytes;
    for (std::size_t i = 0; i < count; ++i) words[i] = word_at(seed, place / word_bytes + i);
    if (!each(position, std::as_bytes(std::span(words)).subspan(skip, bytes))) return;
    position += bytes;
  }
}

}  // namespace

std::byte pattern_at(std::uint64_t seed, std::uint64_t offset) {
  const std::uint64_t word = word_at(seed, offset / word_bytes);
  std::byte bytes[word_bytes];
  std::memcpy(bytes, &word, sizeof word);
  return bytes[offset % word_bytes];
}

void fill(std::span<std::byte> memory, std::uint64_t seed, std::uint64_t offset) {
  for_pieces(memory.size(), seed, offset, [&](std::size_t position, Bytes piece) {
    std::memcpy(memory.data() + position, piece.data(), piece.size());
    return true;
  });
}

Blob pattern(std::size_t bytes, std::uint64_t seed, std::uint64_t offset) {
  Blob blob(bytes);
  fill(blob, seed, offset);
  return blob;
}

testing::AssertionResult holds(Bytes memory, std::uint64_t seed, std::uint64_t offset) {
  std::size_t wrong = memory.size();
  for_pieces(memory.size(), seed, offset, [&](std::size_t position, Bytes piece) {
    if (std::memcmp(memory.data() + position, piece.data(), piece.size()) == 0) return true;
    wrong = position;
    while (memory[wrong] == piece[wrong - position]) ++wrong;
    return false;
  });
  if (wrong == memory.size()) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "byte " << wrong << " of " << memory.size() << " is "
         << std::to_integer<int>(memory[wrong]) << ", not "
         << std::to_integer<int>(pattern_at(seed, offset + wrong)) << " of stream " << seed;
}

testing::AssertionResult same_bytes(Bytes actual, Bytes expected) {
  if (actual.size() != expected.size())
    return testing::AssertionFailure() << actual.size() << " bytes instead of " << expected.size();
  // One call: the thread sanitizer looks at each byte that is compared by itself.
  if (actual.empty() || std::memcmp(actual.data(), expected.data(), actual.size()) == 0)
    return testing::AssertionSuccess();
  const auto wrong = std::mismatch(actual.begin(), actual.end(), expected.begin());
  std::size_t count = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) count += actual[i] != expected[i] ? 1 : 0;
  return testing::AssertionFailure()
         << count << " of " << actual.size() << " bytes differ, the first at "
         << wrong.first - actual.begin() << ": " << std::to_integer<int>(*wrong.first)
         << " instead of " << std::to_integer<int>(*wrong.second);
}

Blob expected_after(Bytes before, Bytes source, Direction direction, std::span<const Pair> pairs) {
  Blob expected(before.begin(), before.end());
  for (const Pair& pair : pairs) {
    const bool write = direction == Direction::write;
    const std::uint64_t to = write ? pair.remote : pair.local;
    const std::uint64_t from = write ? pair.local : pair.remote;
    if (pair.length > 0) std::memcpy(expected.data() + to, source.data() + from, pair.length);
  }
  return expected;
}

bool long_forms() {
  const char* asked = std::getenv("WEFT_LONG");
  return asked != nullptr && std::string_view(asked) == "1";
}

}  // namespace weft::test
