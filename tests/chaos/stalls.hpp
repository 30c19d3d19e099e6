// How long this process was kept from running, so that the engine is not blamed for it.
#pragma once

#include <atomic>
#include <weft/deadline.hpp>

namespace weft::chaos {

class Stalls {
 public:
  /// Called at every beat of a thread that means to beat every `interval`.
  void beat(Nanoseconds interval) {
    const auto now = Clock::now();
    // In this order, so that nobody counts it twice meanwhile.
    const Nanoseconds late = now - last_.exchange(now) - interval;
    if (late > std::chrono::milliseconds(10)) total_ = total_.load() + late;
  }
  /// In all so far, with that which may be going on.
  Nanoseconds total() const {
    const Nanoseconds since = Clock::now() - last_.load();
    return total_.load() + (since > std::chrono::milliseconds(100) ? since : Nanoseconds::zero());
  }

 private:
  std::atomic<Clock::time_point> last_{Clock::now()};
  std::atomic<Nanoseconds> total_{Nanoseconds::zero()};
};

}  // namespace weft::chaos
