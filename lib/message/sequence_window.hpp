// Recognises repeats among numbered messages that may arrive in any order.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>

namespace weft::core {

/// Numbers count upwards from `first` and wrap at 2^32. At most `span` numbers may be under way at
/// a time, which the sender's credits see to.
class SequenceWindow {
 public:
  static constexpr std::uint32_t span = 4096;

  explicit SequenceWindow(std::uint32_t first) : base_(first) {}

  /// True the first time that a number is seen; false for a repeat, and for numbers that can't be
  /// under way.
  bool accept(std::uint32_t number) {
    const std::uint32_t ahead = number - base_;  // modulo 2^32, as the numbers are
    if (ahead >= span || seen_[number % span]) return false;
    seen_[number % span] = true;
    while (seen_[base_ % span]) {
      seen_[base_ % span] = false;
      ++base_;
    }
    return true;
  }

 private:
  std::uint32_t base_;  // the lowest number not yet seen
  std::bitset<span> seen_;
};

}  // namespace weft::core
