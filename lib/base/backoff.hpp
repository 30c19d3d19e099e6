// Giving the core away between two looks for something.
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include <utility>
#include <weft/deadline.hpp>

#include "base/cpu_pressure.hpp"
#include "base/poll_cost.hpp"

namespace weft::core {

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

}  // namespace weft::core
