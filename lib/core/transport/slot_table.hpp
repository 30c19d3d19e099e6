// Slots that are used again, found by numbers that are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace weft::core {

/// `Slot` has a member `std::uint64_t number`: 0 while it is free. Slots stay where they are.
/// Allocates only when more are in use than ever before.
template <typename Slot>
class SlotTable {
 public:
  /// A free one, as it was left, under a new number.
  Slot& take() {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    if (++uses_ == 0) ++uses_;  // it wraps, long after the last word about a number
    slots_[index].number = std::uint64_t{uses_} << 32 | index;
    return slots_[index];
  }
  /// Null if it was released.
  Slot* find(std::uint64_t number) noexcept {
    const auto index = static_cast<std::uint32_t>(number);
    if (number == 0 || index >= slots_.size() || slots_[index].number != number) return nullptr;
    return &slots_[index];
  }
  void release(Slot& slot) {
    free_.push_back(static_cast<std::uint32_t>(slot.number));
    slot.number = 0;
  }
  std::size_t in_use() const noexcept { return slots_.size() - free_.size(); }
  /// The numbers of those for which `matches(const Slot&)`.
  template <typename Matches>
  std::vector<std::uint64_t> select(Matches&& matches) const {
    std::vector<std::uint64_t> numbers;
    for (const Slot& slot : slots_)
      if (slot.number != 0 && matches(slot)) numbers.push_back(slot.number);
    return numbers;
  }

 private:
  std::deque<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::uint32_t uses_ = 0;
};

}  // namespace weft::core
