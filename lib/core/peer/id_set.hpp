// A set of ids that takes little memory: ranges that merge, and a bound.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>

namespace weft::core {

/// Neighbours make one range. Of more than `most` ranges the one that was not added to for the
/// longest time is let go of. Not safe for several threads.
class IdSet {
 public:
  explicit IdSet(std::size_t most) : most_(most) {}

  bool empty() const noexcept { return ranges_.empty(); }
  std::size_t ranges() const noexcept { return ranges_.size(); }
  /// How many ids are in it; 0 for all there are.
  std::uint64_t size() const noexcept { return size_; }
  bool contains(std::uint64_t id) const {
    const auto after = ranges_.upper_bound(id);
    return after != ranges_.begin() && std::prev(after)->second.last >= id;
  }
  /// From `first` to `last`, both included. Returns how many ids were let go of.
  std::uint64_t insert(std::uint64_t first, std::uint64_t last) {
    auto at = first_from(first == 0 ? first : first - 1);
    while (at != ranges_.end() && (at->first <= last || at->first - 1 == last)) {
      first = std::min(first, at->first);
      last = std::max(last, at->second.last);
      at = take_out(at);
    }
    put(first, last, ages_.end());
    return trim();
  }
  /// Returns how many of them were in it.
  std::uint64_t erase(std::uint64_t first, std::uint64_t last) {
    const std::uint64_t before = size_;
    auto at = first_from(first);
    while (at != ranges_.end() && at->first <= last) {
      const std::uint64_t begin = at->first, end = at->second.last;
      const auto younger = std::next(at->second.age);
      at = take_out(at);
      // What stays is as old as it was.
      if (begin < first) put(begin, first - 1, younger);
      if (end > last) put(last + 1, end, younger);
    }
    const std::uint64_t erased = before - size_;
    trim();  // what was cut in two may be one too many
    return erased;
  }

 private:
  using Ages = std::list<std::uint64_t>;  // the first ids of the ranges, the oldest first
  struct Range {
    std::uint64_t last;
    Ages::iterator age;
  };
  using Ranges = std::map<std::uint64_t, Range>;  // by their first ids

  /// The first range that ends at `id` or later.
  Ranges::iterator first_from(std::uint64_t id) {
    const auto after = ranges_.upper_bound(id);
    if (after == ranges_.begin() || std::prev(after)->second.last < id) return after;
    return std::prev(after);
  }
  void put(std::uint64_t first, std::uint64_t last, Ages::iterator before) {
    size_ += last - first + 1;
    ranges_.emplace(first, Range{last, ages_.insert(before, first)});
  }
  Ranges::iterator take_out(Ranges::iterator at) {
    size_ -= at->second.last - at->first + 1;
    ages_.erase(at->second.age);
    return ranges_.erase(at);
  }
  std::uint64_t trim() {
    const std::uint64_t before = size_;
    while (ranges_.size() > most_) take_out(ranges_.find(ages_.front()));
    return before - size_;
  }

  const std::size_t most_;
  Ranges ranges_;
  Ages ages_;
  std::uint64_t size_ = 0;
};

}  // namespace weft::core
