// Giving the core away between two looks for something.
#pragma once

#include <sched.h>

#include <chrono>
#include <weft/deadline.hpp>

namespace weft::core {

/// Whoever shares the core may be the one that is waited for. But to give it to nobody takes as
/// long as a look at a socket, in which what is waited for may come: a thread that has its core to
/// itself does so seldom, until somebody takes it.
class Yielding {
 public:
  /// After each look that found nothing.
  void operator()() {
    if (++looks_ < looks_a_yield_) return;
    looks_ = 0;
    const auto before = Clock::now();
    sched_yield();
    looks_a_yield_ = Clock::now() - before > taken ? 1 : looks_alone;
  }

 private:
  static constexpr unsigned looks_alone = 16;
  // Measured: 0.6 to 0.9 us where nobody else is to run, 3.3 and more where somebody does (a
  // virtual machine, Linux 6.18).
  static constexpr auto taken = std::chrono::microseconds(2);

  unsigned looks_ = 0;
  unsigned looks_a_yield_ = looks_alone;
};

}  // namespace weft::core
