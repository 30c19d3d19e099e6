// Giving the core away between two looks for something.
#pragma once

#include <sched.h>
#include <sys/resource.h>

#include <utility>

namespace weft::core {

/// Whoever shares the core may be the one that is waited for. But to give it to nobody takes as
/// long as a look at a socket (0.6 to 0.9 us in a virtual machine), in which what is waited for may
/// come: a thread that has its core to itself does so seldom, until somebody takes it. Of one
/// thread.
class Yielding {
 public:
  /// After each look that found nothing.
  void operator()() {
    const bool last = ++looks_ == looks_alone;
    if (shared_ || last) sched_yield();
    if (!last) return;
    looks_ = 0;
    const long taken = std::exchange(taken_, times_taken());
    shared_ = taken_ != taken;
  }

 private:
  // As long as 16 looks at sockets, 10 to 15 us, somebody waits who comes to share the core. To ask
  // whether he has it is a system call as well, and as rare.
  static constexpr unsigned looks_alone = 16;

  /// How often the core was given to somebody while this thread would have gone on.
  static long times_taken() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
  }

  unsigned looks_ = 0;
  bool shared_ = false;
  long taken_ = times_taken();
};

}  // namespace weft::core
