// Whether help with copies is worth having.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <weft/deadline.hpp>

namespace weft::providers::shm {

/// What a helper has saved of late, against the time for which it was waited for in vain: where
/// cores are few it loses its own in the middle of a slice, for milliseconds. By one thread at a
/// time.
class HelpBalance {
 public:
  void helped(std::size_t bytes) noexcept {
    // At 128 GB/s, as fast as any core copies within its caches: at least so much was saved.
    balance_ = std::min(balance_ + Nanoseconds(bytes / 128), most);
    if (balance_ == most) peace_ = shortest_peace;
  }
  /// For how long it should be left in peace now: longer and longer where it never pays.
  Nanoseconds held_up(Nanoseconds time) noexcept {
    balance_ -= time;
    if (balance_ >= Nanoseconds::zero()) return {};
    balance_ = {};
    return std::exchange(peace_, std::min(2 * peace_, longest_peace));
  }

  static constexpr Nanoseconds shortest_peace = std::chrono::milliseconds(1),
                               longest_peace = std::chrono::seconds(1);
  /// More does not count: what was long ago says little. Hypervisors take a core away for up to
  /// half of it.
  static constexpr Nanoseconds most = std::chrono::milliseconds(1);

 private:
  Nanoseconds balance_ = std::chrono::microseconds(100), peace_ = shortest_peace;
};

}  // namespace weft::providers::shm
