// Tells polls of the network that found something from empty ones, by their duration.
#pragma once

#include <algorithm>
#include <chrono>
#include <weft/deadline.hpp>

namespace weft::core {

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

}  // namespace weft::core
