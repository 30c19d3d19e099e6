// Counts who still uses something, and lets others wait until nobody does.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>
#include <weft/deadline.hpp>

#include "base/wait_on.hpp"

namespace weft::core {

class UseCount {
 public:
  /// False once closed: nobody new may use it.
  bool enter() {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    ++count_;
    return true;
  }
  void leave() {
    std::vector<std::function<void()>> last;
    {
      const std::lock_guard lock(mutex_);
      if (--count_ > 0 || !closed_) return;
      last = std::exchange(when_idle_, {});
      idle_.notify_all();
    }
    for (const auto& then : last) then();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  bool idle() const {
    const std::lock_guard lock(mutex_);
    return count_ == 0;
  }
  /// After close(): calls `then` when the last user has left, at once if there is none.
  void when_idle(std::function<void()> then) {
    {
      const std::lock_guard lock(mutex_);
      if (count_ > 0) {
        when_idle_.push_back(std::move(then));
        return;
      }
    }
    then();
  }
  bool wait_idle(Deadline deadline) {
    std::unique_lock lock(mutex_);
    return wait_on(idle_, lock, deadline, [&] { return count_ == 0; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::uint64_t count_ = 0;
  bool closed_ = false;
  std::vector<std::function<void()>> when_idle_;
};

/// Enters a UseCount, and leaves it again unless it is kept.
class Entered {
 public:
  explicit Entered(UseCount& count) : count_(count.enter() ? &count : nullptr) {}
  ~Entered() {
    if (count_ != nullptr) count_->leave();
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  explicit operator bool() const noexcept { return count_ != nullptr; }
  /// Somebody else leaves in its stead.
  void keep() noexcept { count_ = nullptr; }

 private:
  UseCount* count_;
};

}  // namespace weft::core
