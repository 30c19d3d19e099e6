// Something that completes once, with or without an error, and is waited for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "base/wait_on.hpp"

namespace weft::core {

class CompletionSlot {
 public:
  virtual ~CompletionSlot() = default;

  /// Without effect the second time.
  void complete(const std::optional<Error>& error) {
    {
      const std::lock_guard lock(mutex_);
      if (claimed_) return;
      claimed_ = true;
      error_ = error;
    }
    ended(error_ ? &*error_ : nullptr);
    {
      const std::lock_guard lock(mutex_);
      done_.store(true, std::memory_order_release);
      changed_.notify_all();
    }
    announce(error_ ? &*error_ : nullptr);
  }
  bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  bool wait(Deadline deadline) const {
    std::unique_lock lock(mutex_);
    return wait_on(changed_, lock, deadline, [&] { return done(); });
  }
  /// Only after done().
  const std::optional<Error>& error() const noexcept { return error_; }

 private:
  /// Called once, before waiters wake, by the thread that completes.
  virtual void ended(const Error*) {}
  /// Called once after that: whoever hears of it finds it done.
  virtual void announce(const Error*) {}

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool claimed_ = false;
  std::atomic<bool> done_{false};
  std::optional<Error> error_;
};

}  // namespace weft::core
