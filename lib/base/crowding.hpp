// Whether others compute on this thread's core.
#pragma once

#include <algorithm>
#include <chrono>
#include <weft/deadline.hpp>

namespace weft::core {

/// A core that is given to somebody who computes comes back when his time slice is over, some
/// milliseconds later. A thread that sleeps until there is something to do has the core at once,
/// for the system prefers it to those that compute: a 4 KiB write beside a busy loop on each core
/// takes 20 us so, and 4 ms if its threads look for what they wait for and give the core away in
/// between (perf/RESULTS.md: "Beside threads that compute"). Of one thread.
class Crowding {
 public:
  // Who shares the core to move bytes has had enough of it sooner, and Linux's slices are longer:
  // 0.7 to 3 ms, rounded up to the timer's next tick (1 to 10 ms).
  static constexpr Nanoseconds slice = std::chrono::milliseconds(1);

  /// The thread was ready and had no core for so long, until `back`.
  void waited(Nanoseconds time, Clock::time_point back) {
    if (time < slice || at(back)) return;
    memory_ = back - until_ < memory_ ? std::min(2 * memory_, longest_memory) : shortest_memory;
    until_ = back + memory_;
  }
  /// Whether to sleep instead of looking.
  bool at(Clock::time_point now) const noexcept { return now < until_; }

 private:
  // To find out whether they still compute costs a slice of theirs: for as long again they are
  // thought to, twice as long each time that they did.
  static constexpr Nanoseconds shortest_memory = std::chrono::milliseconds(16);
  static constexpr Nanoseconds longest_memory = std::chrono::milliseconds(512);

  Clock::time_point until_{};
  Nanoseconds memory_ = shortest_memory;
};

}  // namespace weft::core
