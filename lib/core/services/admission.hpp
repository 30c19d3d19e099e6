// A limit on how many there may be of something at a time, and a bounded wait for a free one.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>
#include <weft/deadline.hpp>

#include "base/sync.hpp"

namespace weft::core {

/// From any thread. Entering and leaving take no lock while no thread waits.
class Admission {
 public:
  explicit Admission(std::size_t most) : most_(most) {}

  /// False if all are taken.
  bool enter() {
    for (std::size_t taken = taken_; taken < most_;)
      if (taken_.compare_exchange_weak(taken, taken + 1)) return true;
    return false;
  }
  /// False if none was free by the deadline, or after close().
  bool enter(Deadline deadline) {
    if (enter()) return true;
    const Lock lock(mutex_);
    // Before the next look: a leave() after it sees that one waits.
    ++waiting_;
    bool entered = false;
    left_.wait(mutex_, deadline,
               [&]() WEFT_REQUIRES(mutex_) { return (entered = enter()) || closed_; });
    --waiting_;
    return entered;
  }
  void leave() {
    --taken_;
    if (waiting_ == 0) return;
    const Lock lock(mutex_);
    left_.notify_one();
  }
  /// Threads that wait give up.
  void close() {
    const Lock lock(mutex_);
    closed_ = true;
    left_.notify_all();
  }
  std::size_t taken() const noexcept { return taken_; }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> taken_{0}, waiting_{0};
  Mutex mutex_;
  Condition left_;
  bool closed_ WEFT_GUARDED_BY(mutex_) = false;
};

/// Leaves a slot that was entered, unless it is kept.
class AdmissionSlot {
 public:
  explicit AdmissionSlot(Admission& places) : admission_(&places) {}
  ~AdmissionSlot() { leave(); }
  void leave() {
    if (Admission* const admission = std::exchange(admission_, nullptr)) admission->leave();
  }
  AdmissionSlot(const AdmissionSlot&) = delete;
  AdmissionSlot& operator=(const AdmissionSlot&) = delete;
  /// The slot is left by other code, later.
  void keep() noexcept { admission_ = nullptr; }

 private:
  Admission* admission_;
};

}  // namespace weft::core
