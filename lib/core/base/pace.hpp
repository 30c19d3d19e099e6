// Waiting by looking: when to pause, yield the core, or sleep.
#pragma once

#include <sched.h>
#include <sys/resource.h>
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

/// Some polls serve a peer without saying so: a peer's write into this process is no completion.
/// Such polls take several times as long as the shortest recent poll. No fixed time would do: polls
/// of sockets are system calls, which take longer on some machines than serving on others.
class PollCost {
 public:
  /// Whether a poll of that duration served something. `found`: it is known that it did.
  bool served(Nanoseconds took, bool found = false) {
    const bool served = found || took > times_an_empty_one * shortest_;
    // The shortest is forgotten in time; slowly by polls that serve, which say little about it.
    shortest_ = std::min(took, shortest_ + shortest_ / (served ? 4096 : 64) + Nanoseconds(1));
    return served;
  }

 private:
  static constexpr int times_an_empty_one = 3;
  Nanoseconds shortest_ = std::chrono::hours(1);
};

/// Yields the core between polls. The awaited thread may share the core. But a yield that no thread
/// uses, and asking whether one did, takes as long as two polls of a socket (1.2 to 1.8 us in a
/// virtual machine). So a thread that has its core to itself yields seldom, best right after a poll
/// that served something, until another thread takes the core. Used by one thread.
class Backoff {
 public:
  /// After each look that found nothing; `began`: when that look did.
  void operator()(Clock::time_point began) {
    const Nanoseconds took = began - std::exchange(looked_at_, began);
    if (took >= CpuPressure::slice) cpu_pressure_.waited(took - (time_run() - run_), began);
    const bool served = poll_cost_.served(took);
    ++looks_;
    const bool ask = looks_ >= looks_between && (shared_ || served || looks_ >= most_looks_between);
    if (shared_ || ask) sched_yield();
    if (!ask) return;
    looks_ = 0;
    const long taken = std::exchange(taken_, times_taken());
    shared_ = taken_ != taken;
    run_ = time_run();
  }
  /// The thread slept after its last look, until now.
  void slept(Clock::time_point now) noexcept { looked_at_ = now; }
  /// Whether it is better to sleep than to look again.
  bool crowded(Clock::time_point now) const noexcept { return cpu_pressure_.at(now); }

 private:
  // After so many polls, 10 to 15 us at sockets, it yields if the moment is good; after the most,
  // 0.1 ms, in any case: so long a thread waits that comes to share the core.
  static constexpr unsigned looks_between = 16;
  static constexpr unsigned most_looks_between = 128;

  /// How often another thread got the core while this one would have gone on.
  static long times_taken() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
  }

  /// For how long this thread had a core.
  static Nanoseconds time_run() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
  }

  CpuPressure cpu_pressure_;
  PollCost poll_cost_;
  Clock::time_point looked_at_ = Clock::now();
  unsigned looks_ = 0;
  bool shared_ = false;
  long taken_ = times_taken();
  Nanoseconds run_ = time_run();
};

inline CpuPressure& cpu_pressure_of_this_thread() {
  thread_local CpuPressure cpu_pressure;
  return cpu_pressure;
}

/// Looks until `done`, or until then, and gives the core away in between; not where others compute.
template <typename Done>
void spin(Done&& done, Clock::time_point until) {
  if (done()) return;
  CpuPressure& cpu_pressure = cpu_pressure_of_this_thread();
  for (auto now = Clock::now(); now < until && !cpu_pressure.at(now);) {
    sched_yield();
    if (done()) return;
    const auto back = Clock::now();
    cpu_pressure.waited(back - now, back);
    now = back;
  }
}

}  // namespace weft::core
