#include "weights/plan/box.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace weft::weights {

std::uint64_t volume(const Dims& extent) noexcept {
  std::uint64_t elements = 1;
  for (const std::uint64_t each : extent) elements *= each;
  return elements;
}

std::optional<Box> overlap(const Box& a, const Box& b) noexcept {
  Box both = a;
  for (std::size_t d = 0; d < a.begin.size(); ++d) {
    const std::uint64_t begin = std::max(a.begin[d], b.begin[d]);
    const std::uint64_t end = std::min(a.end(d), b.end(d));
    if (begin >= end) return std::nullopt;
    both.begin[d] = begin;
    both.extent[d] = end - begin;
  }
  return both;
}

std::vector<Box> cut(const Box& box, std::uint64_t parts) {
  const auto outermost = std::find_if(box.extent.begin(), box.extent.end(),
                                      [](std::uint64_t extent) { return extent > 1; });
  if (parts <= 1 || outermost == box.extent.end()) return {box};
  const auto d = static_cast<std::size_t>(outermost - box.extent.begin());
  const std::uint64_t rows = *outermost;
  const std::uint64_t each = (rows + parts - 1) / parts;
  std::vector<Box> boxes;
  for (std::uint64_t row = 0; row < rows; row += each) {
    Box part = box;
    part.begin[d] += row;
    part.extent[d] = std::min(each, rows - row);
    boxes.push_back(part);
  }
  return boxes;
}

std::string text_of(const Box& box) {
  std::vector<std::string> ranges;
  for (std::size_t d = 0; d < box.begin.size(); ++d)
    ranges.push_back(fmt::format("{}:{}", box.begin[d], box.end(d)));
  return fmt::format("[{}]", fmt::join(ranges, ", "));
}

}  // namespace weft::weights
