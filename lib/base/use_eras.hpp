// A UseCount with grace periods:
// waits for present users while new ones enter.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <utility>
#include <weft/deadline.hpp>

#include "base/sync.hpp"
#include "base/use_count.hpp"

namespace weft::core {

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
