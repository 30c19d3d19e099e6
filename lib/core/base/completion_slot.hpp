// Something that completes once, with or without an error, and is waited for.
#pragma once

#include <atomic>
#include <optional>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "base/sync.hpp"

namespace weft::core {

class CompletionSlot {
 public:
  virtual ~CompletionSlot() = default;

  /// Without effect the second time.
  void complete(const std::optional<Error>& error) {
    if (claimed_.exchange(true)) return;
    error_ = error;
    ended(error_ ? &*error_ : nullptr);
    {
      const Lock lock(mutex_);
      done_.store(true, std::memory_order_release);
      changed_.notify_all();
    }
    announce(error_ ? &*error_ : nullptr);
  }
  bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  bool wait(Deadline deadline) const {
    const Lock lock(mutex_);
    return changed_.wait(mutex_, deadline, [&] { return done(); });
  }
  /// Only after done().
  const std::optional<Error>& error() const noexcept { return error_; }

 private:
  /// Called once, before waiters wake, by the thread that completes.
  virtual void ended(const Error*) {}
  /// Called once after that: done() is true by then.
  virtual void announce(const Error*) {}

  mutable Mutex mutex_;
  mutable Condition changed_;
  std::atomic<bool> claimed_{false};
  std::optional<Error> error_;     // written by the thread that claimed it, before done_
  std::atomic<bool> done_{false};  // set with the mutex, so that no waiter misses it
};

}  // namespace weft::core
