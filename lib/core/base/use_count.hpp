// Counts the users of something, and lets others wait until there are none.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
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

/// Entering takes no lock. From any thread.
class UseEras {
 public:
  /// Empty once closed.
  Entered enter() {
    for (;;) {
      const bool closed = closed_;
      Entered entered(*current_.load());
      if (entered || closed) return entered;
    }
  }
  /// Calls `then` when all that use it now have left, at once if nobody does. A user that comes
  /// later sees what the caller has written before.
  void when_left(std::function<void()> then) { then_before(end_era(), std::move(then)); }

  void close() {
    const Lock lock(mutex_);
    closed_ = true;
    current_.load()->close();
  }
  bool closed() const noexcept { return closed_; }
  bool idle() {
    const Lock lock(mutex_);
    return first_used(eras_.size()) == eras_.size();
  }
  // After close().
  /// Calls `then` when the last user has left, at once if there is none.
  void when_idle(std::function<void()> then) { then_before(count(), std::move(then)); }
  bool wait_idle(Deadline deadline) {
    while (UseCount* used = used_before(count()))
      if (!used->wait_idle(deadline)) return false;
    return true;
  }

 private:
  /// Returns how many have ended.
  std::size_t end_era() {
    const Lock lock(mutex_);
    if (closed_) return eras_.size();
    UseCount& last = *current_.load();
    if (last.idle()) return eras_.size() - 1;
    current_ = &eras_.emplace_back();
    last.close();
    return eras_.size() - 1;
  }
  std::size_t count() {
    const Lock lock(mutex_);
    return eras_.size();
  }
  /// The first of `eras` that has users; `eras` if none has. Those that have ended get none again.
  std::size_t first_used(std::size_t eras) WEFT_REQUIRES(mutex_) {
    const std::size_t ended = closed_ ? eras_.size() : eras_.size() - 1;
    while (idle_ < std::min(eras, ended) && eras_[idle_].idle()) ++idle_;
    std::size_t first = idle_;
    while (first < eras && eras_[first].idle()) ++first;
    return first;
  }
  UseCount* used_before(std::size_t eras) {
    const Lock lock(mutex_);
    const std::size_t first = first_used(eras);
    return first < eras ? &eras_[first] : nullptr;
  }
  /// The first `eras`, which have ended, have no users any more.
  void then_before(std::size_t eras, std::function<void()> then) {
    UseCount* const used = used_before(eras);
    if (used == nullptr) return then();
    used->when_idle(
        [this, eras, then = std::move(then)]() mutable { then_before(eras, std::move(then)); });
  }

  Mutex mutex_;
  // Never fewer: a user may be about to enter one that it has just looked up.
  std::deque<UseCount> eras_ WEFT_GUARDED_BY(mutex_) = std::deque<UseCount>(1);
  std::size_t idle_ WEFT_GUARDED_BY(mutex_) = 0;  // so many of the first have no users any more
  std::atomic<UseCount*> current_{&eras_.front()};
  std::atomic<bool> closed_{false};
};

}  // namespace weft::core
