/// @file
/// Points in time by which a call must have ended.
#pragma once

#include <algorithm>
#include <chrono>

namespace weft {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::nanoseconds;

/// A time to live without end: for grants, never for a wait.
inline constexpr Nanoseconds unlimited = Nanoseconds::max();

/// The time at which a call gives up. There is no "never": every wait in Weft is bounded, and the
/// furthest deadline is a day away.
class Deadline {
 public:
  /// `timeout` from now, cut to the range from zero to one day.
  static Deadline in(Nanoseconds timeout, Clock::time_point now = Clock::now()) {
    return Deadline(now + std::clamp(timeout, Nanoseconds::zero(), Nanoseconds(furthest)));
  }
  static Deadline at(Clock::time_point when) { return Deadline(when); }
  /// Already passed: the call looks once and does not wait.
  static Deadline now() { return Deadline(Clock::now()); }

  Clock::time_point when() const noexcept { return when_; }
  bool passed() const noexcept { return Clock::now() >= when_; }
  /// Time left; zero if passed.
  Nanoseconds left() const noexcept {
    return std::max(Nanoseconds::zero(), Nanoseconds(when_ - Clock::now()));
  }

  static constexpr std::chrono::hours furthest{24};

 private:
  explicit Deadline(Clock::time_point when) : when_(when) {}
  Clock::time_point when_;
};

}  // namespace weft
