// Waiting by looking: when to look again, and when to sleep.
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <weft/deadline.hpp>

namespace weft::core {

/// Leaves the core's resources to its other thread for some ten nanoseconds.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Whether other threads want this core. One that looks again and again without sleeping loses it
/// to them for a time slice, and takes it from them for one. So a thread that lost its core sleeps
/// between looks for a while: the scheduler gives a core back at once to a thread that slept. It
/// never yields: a thread that yields in a loop can keep threads of another control group from the
/// core for half a minute (Linux 6.18). Used by one thread.
class CpuPressure {
 public:
  // Linux's are 0.7 to 3 ms, rounded up to the timer's next tick (1 to 10 ms).
  static constexpr Nanoseconds slice = std::chrono::milliseconds(1);

  /// The thread was ready and had no core for `time`, until `back`.
  void waited(Nanoseconds time, Clock::time_point back) noexcept {
    if (time < slice || at(back)) return;
    memory_ = back - until_ < 2 * memory_ ? std::min(2 * memory_, longest_memory) : shortest_memory;
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

/// Between the looks of one thread.
class Backoff {
 public:
  /// After each look that found nothing; `began`: when that look did.
  void operator()(Clock::time_point began) noexcept {
    const bool long_ago = began - std::exchange(looked_at_, began) >= CpuPressure::slice;
    if (long_ago) pressure_.waited((began - since_) - (time_run() - ran_), began);
    if (long_ago || ++looks_ >= looks_between) slept(began);
    relax();
  }
  /// The thread did something else after its last look, until now.
  void slept(Clock::time_point now) noexcept {
    looks_ = 0;
    looked_at_ = since_ = now;
    ran_ = time_run();
  }
  /// Whether it is better to sleep than to look again.
  bool crowded(Clock::time_point now) const noexcept { return pressure_.at(now); }

 private:
  // To ask for the time that the thread has run takes as long as some looks.
  static constexpr unsigned looks_between = 128;

  /// For how long this thread had a core.
  static Nanoseconds time_run() noexcept {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
  }

  CpuPressure pressure_;
  unsigned looks_ = 0;
  Clock::time_point looked_at_ = Clock::now(), since_ = looked_at_;
  Nanoseconds ran_ = time_run();  // at since_
};

/// Looks until `done`, or until then; at least once. Ends early where others want the core.
template <typename Done>
void spin(Done&& done, Clock::time_point until) {
  if (done()) return;
  thread_local Backoff backoff;
  auto now = Clock::now();
  if (now >= until) return;
  for (backoff.slept(now); now < until && !backoff.crowded(now); now = Clock::now()) {
    if (done()) return;
    backoff(now);
  }
}

}  // namespace weft::core
