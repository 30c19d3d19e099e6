// Keeps an endpoint's callers out while it is closed and opened again.
#pragma once

#include <cstddef>
#include <weft/deadline.hpp>

#include "base/sync.hpp"

namespace weft::providers {

/// From any thread.
class EndpointGate {
 public:
  /// A caller that has come in, if the gate was open in time.
  class Pass {
   public:
    explicit Pass(EndpointGate& gate) : gate_(gate), in_(gate.enter()) {}
    ~Pass() {
      if (in_) gate_.leave();
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    explicit operator bool() const noexcept { return in_; }

   private:
    EndpointGate& gate_;
    const bool in_;
  };

  /// Waits until no caller is in: calls into a provider, which may block.
  void shut() {
    const core::Lock lock(mutex_);
    open_ = false;
    const auto idle = [&]() WEFT_REQUIRES(mutex_) { return inside_ == 0; };
    while (!changed_.wait(mutex_, Deadline::in(Deadline::furthest), idle)) {
    }
  }
  void open() {
    const core::Lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  bool enter() {
    // To open a NIC again takes milliseconds; a closing that is stuck takes for ever.
    constexpr auto patience = std::chrono::seconds(1);
    const core::Lock lock(mutex_);
    const auto is_open = [&]() WEFT_REQUIRES(mutex_) { return open_; };
    if (!changed_.wait(mutex_, Deadline::in(patience), is_open)) return false;
    ++inside_;
    return true;
  }
  void leave() {
    const core::Lock lock(mutex_);
    if (--inside_ == 0) changed_.notify_all();
  }

  core::Mutex mutex_;
  core::Condition changed_;
  bool open_ WEFT_GUARDED_BY(mutex_) = true;
  std::size_t inside_ WEFT_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft::providers
