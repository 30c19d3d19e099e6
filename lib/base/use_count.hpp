// Counts the users of something, and lets others wait until there are none.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>
#include <weft/deadline.hpp>

#include "base/sync.hpp"

namespace weft::core {

/// Entering and leaving take no lock until it is closed.
class UseCount {
 public:
  /// False once closed: it may not be used anew.
  bool enter() noexcept {
    for (std::uint64_t users = users_; (users & closed_bit) == 0;)
      if (users_.compare_exchange_weak(users, users + 1)) return true;
    return false;
  }
  void leave() {
    for (std::uint64_t users = users_; (users & closed_bit) == 0;)
      if (users_.compare_exchange_weak(users, users - 1)) return;
    leave_closed();
  }
  void close() noexcept { users_ |= closed_bit; }
  bool closed() const noexcept { return (users_ & closed_bit) != 0; }
  bool idle() const noexcept { return (users_ & ~closed_bit) == 0; }
  /// After close(): calls `then` when the last user has left, at once if there is none.
  void when_idle(std::function<void()> then) {
    {
      const Lock lock(mutex_);
      if (!idle()) {
        when_idle_.push_back(std::move(then));
        return;
      }
    }
    then();
  }
  /// After close().
  bool wait_idle(Deadline deadline) {
    const Lock lock(mutex_);
    return now_idle_.wait(mutex_, deadline, [&] { return idle(); });
  }

 private:
  /// Holds the lock to the last: a waiter may destroy this as soon as no user is left.
  void leave_closed() {
    std::vector<std::function<void()>> last;
    {
      const Lock lock(mutex_);
      --users_;
      if (!idle()) return;
      last = std::exchange(when_idle_, {});
      now_idle_.notify_all();
    }
    for (const auto& then : last) then();
  }

  static constexpr std::uint64_t closed_bit = std::uint64_t{1} << 63;

  std::atomic<std::uint64_t> users_{0};  // how many, and closed_bit
  Mutex mutex_;
  Condition now_idle_;
  std::vector<std::function<void()>> when_idle_ WEFT_GUARDED_BY(mutex_);
};

/// Enters a UseCount, and leaves it again.
class Entered {
 public:
  Entered() noexcept = default;
  explicit Entered(UseCount& count) : count_(count.enter() ? &count : nullptr) {}
  ~Entered() { leave(); }
  Entered(Entered&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  Entered& operator=(Entered&& other) {
    leave();
    count_ = std::exchange(other.count_, nullptr);
    return *this;
  }
  void leave() {
    if (UseCount* const count = std::exchange(count_, nullptr)) count->leave();
  }
  explicit operator bool() const noexcept { return count_ != nullptr; }

 private:
  UseCount* count_ = nullptr;
};

}  // namespace weft::core
