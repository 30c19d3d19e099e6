// Which of many slices of a tensor overlap a box.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "weights/plan/catalog.hpp"

namespace weft::weights {

/// Looks at few of the slices: they are ordered along the first dimension in which they differ.
class Sweep {
 public:
  /// `slices` are ordered by box, and live as long.
  explicit Sweep(std::span<const Slice> slices) : slices_(slices) {
    if (slices.empty()) return;
    const Dims& first = slices.front().box.begin;
    const Dims& last = slices.back().box.begin;
    while (axis_ < first.size() && first[axis_] == last[axis_]) ++axis_;
    if (axis_ == first.size()) return;
    std::uint64_t reach = 0;
    for (const Slice& slice : slices) {
      reach = std::max(reach, slice.box.end(axis_));
      reaches_.push_back(reach);
    }
  }

  /// Calls `visit(index, common)` for each slice that has something in common with `box`.
  template <typename Visit>
  void visit(const Box& box, Visit visit) const {
    // Without an order all are looked at: then all begin alike, and are few.
    const bool ordered = !reaches_.empty();
    std::size_t i = 0;
    if (ordered)
      i = static_cast<std::size_t>(
          std::upper_bound(reaches_.begin(), reaches_.end(), box.begin[axis_]) - reaches_.begin());
    for (; i < slices_.size(); ++i) {
      if (ordered && slices_[i].box.begin[axis_] >= box.end(axis_)) return;
      if (const auto common = overlap(slices_[i].box, box)) visit(i, *common);
    }
  }

 private:
  std::span<const Slice> slices_;
  std::size_t axis_ = 0;
  std::vector<std::uint64_t> reaches_;  // the greatest end of a slice and those before it
};

}  // namespace weft::weights
