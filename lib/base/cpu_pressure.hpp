// Whether others compute on this thread's core.
#pragma once

#include <algorithm>
#include <chrono>
#include <weft/deadline.hpp>

namespace weft::core {

/// Detects other threads that compute on this core. A core that is yielded to such a thread comes
/// back when its time slice is over, milliseconds later. A thread that sleeps instead gets the core
/// at once, because the scheduler prefers it: a 4 KiB write beside a busy loop on each core takes
/// 50 us if its threads sleep, and 4 ms if they poll and yield. Used by one thread.
class CpuPressure {
 public:
  // Linux's are 0.7 to 3 ms, rounded up to the timer's next tick (1 to 10 ms).
  static constexpr Nanoseconds slice = std::chrono::milliseconds(1);

  /// The thread was ready and had no core for `time`, until `back`. A peer that shares the core may
  /// take it for a slice too, but not slice after slice.
  void waited(Nanoseconds time, Clock::time_point back) {
    if (time < slice || at(back)) return;
    if (back - since_ > span) {
      since_ = back - time;
      lost_ = {};
    }
    lost_ += time;
    if (lost_ < least_lost || lost_ < (back - since_) / 2) return;
    memory_ = back - until_ < memory_ + 2 * span ? std::min(2 * memory_, longest_memory)
                                                 : shortest_memory;
    until_ = back + memory_;
  }
  /// Whether to sleep instead of looking.
  bool at(Clock::time_point now) const noexcept { return now < until_; }

 private:
  // To find out whether they still compute costs a slice of theirs: for as long again they are
  // thought to, twice as long each time that they did.
  static constexpr Nanoseconds shortest_memory = std::chrono::milliseconds(16);
  static constexpr Nanoseconds longest_memory = std::chrono::milliseconds(512);

  // Half of the time, of two slices at least.
  static constexpr Nanoseconds least_lost = std::chrono::milliseconds(5);
  static constexpr Nanoseconds span = std::chrono::milliseconds(32);

  Clock::time_point since_{}, until_{};
  Nanoseconds lost_{};
  Nanoseconds memory_ = shortest_memory;
};

}  // namespace weft::core
