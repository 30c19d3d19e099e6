// Counts the users of something like UseCount, and tells when those that were there at a time have
// left, while others come.
#pragma once

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
  bool idle() const {
    const Lock lock(mutex_);
    for (const UseCount& era : eras_)
      if (!era.idle()) return false;
    return true;
  }
  // After close().
  /// Calls `then` when the last user has left, at once if there is none.
  void when_idle(std::function<void()> then) { then_before(count(), std::move(then)); }
  bool wait_idle(Deadline deadline) {
    for (std::size_t era = 0; era < count(); ++era)
      if (!at(era).wait_idle(deadline)) return false;
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
  std::size_t count() const {
    const Lock lock(mutex_);
    return eras_.size();
  }
  UseCount& at(std::size_t era) {
    const Lock lock(mutex_);
    return eras_[era];
  }
  /// The first `eras`, which are closed, have no users any more.
  void then_before(std::size_t eras, std::function<void()> then) {
    if (eras == 0) return then();
    at(eras - 1).when_idle(
        [this, eras, then = std::move(then)]() mutable { then_before(eras - 1, std::move(then)); });
  }

  mutable Mutex mutex_;
  // Never fewer: a user may be about to enter one that it has just looked up.
  std::deque<UseCount> eras_ WEFT_GUARDED_BY(mutex_) = std::deque<UseCount>(1);
  std::atomic<UseCount*> current_{&eras_.front()};
  std::atomic<bool> closed_{false};
};

}  // namespace weft::core
