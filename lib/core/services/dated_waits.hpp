// Expectations and receives that end by themselves if nothing comes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/sync.hpp"
#include "peer/awaited.hpp"

namespace weft::core {

/// From any thread.
class DatedWaits {
 public:
  void add(Clock::time_point when, const std::shared_ptr<AwaitedSlot>& slot) {
    const Lock lock(mutex_);
    waits_.push_back({when, slot});
    next_ = std::min(next_, when);
  }
  /// Costs nothing while none is due, but forgets those that have ended now and then.
  void end_overdue(Clock::time_point now) {
    for (const auto& slot : take_overdue(now))
      if (slot->give_up()) slot->complete(slot->overdue());
  }

 private:
  struct Wait {
    Clock::time_point when;
    std::weak_ptr<AwaitedSlot> slot;
  };
  using Slots = std::vector<std::shared_ptr<AwaitedSlot>>;

  Slots take_overdue(Clock::time_point now) {
    Slots overdue, others;  // let go of without the lock
    const Lock lock(mutex_);
    if (now < next_ && waits_.size() < sweep_at_) return overdue;
    next_ = Clock::time_point::max();
    std::erase_if(waits_, [&](const Wait& wait) WEFT_REQUIRES(mutex_) {
      auto slot = wait.slot.lock();
      if (!slot || slot->done() || wait.when <= now) {
        if (slot) (slot->done() ? others : overdue).push_back(std::move(slot));
        return true;
      }
      next_ = std::min(next_, wait.when);
      others.push_back(std::move(slot));
      return false;
    });
    sweep_at_ = std::max<std::size_t>(64, 2 * waits_.size());
    return overdue;
  }

  Mutex mutex_;
  std::vector<Wait> waits_ WEFT_GUARDED_BY(mutex_);
  Clock::time_point next_ WEFT_GUARDED_BY(mutex_) = Clock::time_point::max();
  std::size_t sweep_at_ WEFT_GUARDED_BY(mutex_) = 64;
};

}  // namespace weft::core
