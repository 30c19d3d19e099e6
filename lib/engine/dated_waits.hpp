// Expectations and receives that end by themselves if nothing comes.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "peer/mailbox.hpp"

namespace weft::core {

/// From any thread.
class DatedWaits {
 public:
  void add(Clock::time_point when, const std::shared_ptr<AwaitedSlot>& slot) {
    const std::lock_guard lock(mutex_);
    waits_.push_back({when, slot});
  }
  void end_overdue(Clock::time_point now) {
    std::vector<Wait> overdue;
    std::vector<std::shared_ptr<AwaitedSlot>> seen;  // until the lock is gone
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(waits_, [&](Wait& wait) {
        const auto& slot = seen.emplace_back(wait.slot.lock());
        if (slot && !slot->done() && wait.when > now) return false;
        overdue.push_back(std::move(wait));
        return true;
      });
    }
    for (const Wait& wait : overdue)
      if (const auto slot = wait.slot.lock(); slot && slot->give_up())
        slot->complete(Error(Code::timed_out, "what was waited for has not come in time"));
  }

 private:
  struct Wait {
    Clock::time_point when;
    std::weak_ptr<AwaitedSlot> slot;
  };
  std::mutex mutex_;
  std::vector<Wait> waits_;
};

}  // namespace weft::core
