// A slice of a tensor, as a box of indices.
#pragma once

#include <optional>
#include <vector>
#include <weft/weights_plan.hpp>

namespace weft::weights {

struct Box {
  Dims begin;
  Dims extent;

  std::uint64_t end(std::size_t dimension) const noexcept {
    return begin[dimension] + extent[dimension];
  }
  auto operator<=>(const Box&) const = default;
};

/// Elements.
std::uint64_t volume(const Dims& extent) noexcept;

/// What both have; nothing if they have no element in common. Both have as many dimensions.
std::optional<Box> overlap(const Box& a, const Box& b) noexcept;

/// The box in at most `parts` parts, cut across its outermost dimension that can be cut.
std::vector<Box> cut(const Box& box, std::uint64_t parts);

/// "[0:8, 16:32]".
std::string text_of(const Box& box);

}  // namespace weft::weights
