// What the time that a look at the network took says about it.
#pragma once

#include <algorithm>
#include <chrono>
#include <weft/deadline.hpp>

namespace weft::core {

/// Whether looks served somebody, which not all that do say: what a peer writes here is no
/// completion. Those that did take several times as long as the shortest of late. No fixed time
/// tells them apart: looks at sockets are system calls, which take longer on some machines than
/// serving takes on others.
class PollCost {
 public:
  /// `found`: it is known that it did.
  bool served(Nanoseconds took, bool found = false) {
    const bool served = found || took > times_an_empty_one * shortest_;
    // It is forgotten in time; slowly by looks that serve, for these say little about empty ones.
    shortest_ = std::min(took, shortest_ + shortest_ / (served ? 4096 : 64) + Nanoseconds(1));
    return served;
  }

 private:
  static constexpr int times_an_empty_one = 3;
  Nanoseconds shortest_ = std::chrono::hours(1);
};

}  // namespace weft::core
