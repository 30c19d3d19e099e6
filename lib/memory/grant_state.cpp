#include "memory/grant_state.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weft::core {

bool covered_by(std::span<const Range> ranges, std::uint64_t offset, std::uint64_t length) {
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), offset,
      [](std::uint64_t value, const Range& range) { return value < range.offset; });
  if (after == ranges.begin()) return false;
  const Range& range = *std::prev(after);
  return offset - range.offset <= range.length && length <= range.length - (offset - range.offset);
}

bool GrantState::allows(Rights rights, std::uint64_t offset, std::uint64_t length) const {
  const auto wanted = static_cast<unsigned>(rights);
  if ((static_cast<unsigned>(description_.rights) & wanted) != wanted) return false;
  return covered_by(description_.ranges, offset, length);
}

Result<std::vector<Range>> normalise(std::span<const Range> ranges, std::uint64_t size) {
  if (ranges.empty()) return std::vector<Range>{{0, size}};
  std::vector<Range> sorted(ranges.begin(), ranges.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const Range& a, const Range& b) { return a.offset < b.offset; });
  std::vector<Range> merged;
  for (const Range& range : sorted) {
    if (range.offset > size || range.length > size - range.offset)
      return fail(Code::invalid_argument,
                  fmt::format("{} bytes at {} leave the segment, which has {}", range.length,
                              range.offset, size));
    if (range.length == 0) return fail(Code::invalid_argument, "a granted range is empty");
    if (!merged.empty() && range.offset <= merged.back().offset + merged.back().length) {
      const std::uint64_t end =
          std::max(merged.back().offset + merged.back().length, range.offset + range.length);
      merged.back().length = end - merged.back().offset;
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

}  // namespace weft::core
