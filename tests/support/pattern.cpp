#include "pattern.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tools/common/pattern.hpp"

namespace weft::test {

std::byte pattern_at(std::uint64_t seed, std::uint64_t offset) {
  std::byte found;
  fill({&found, 1}, seed, offset);
  return found;
}

void fill(std::span<std::byte> memory, std::uint64_t seed, std::uint64_t offset) {
  tool::pattern(seed, offset, memory);
}

Blob pattern(std::size_t bytes, std::uint64_t seed, std::uint64_t offset) {
  Blob blob(bytes);
  fill(blob, seed, offset);
  return blob;
}

testing::AssertionResult holds(Bytes memory, std::uint64_t seed, std::uint64_t offset) {
  const tool::Difference wrong = tool::difference(memory, seed, offset);
  if (wrong.count == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "byte " << wrong.first << " of " << memory.size() << " is "
                                     << std::to_integer<int>(wrong.found) << ", not "
                                     << std::to_integer<int>(wrong.wanted) << " of stream " << seed;
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
