// Keeps an endpoint's callers out while it is closed and opened again.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <weft/deadline.hpp>

namespace weft::providers {

/// From any thread.
class EndpointGate {
 public:
  /// Somebody who has come in, if it was open in time.
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

  /// Waits until nobody is in: calls into a provider, which may block.
  void shut() {
    std::unique_lock lock(mutex_);
    open_ = false;
    changed_.wait(lock, [&] { return inside_ == 0; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  bool enter() {
    // To open a NIC again takes milliseconds; a closing that is stuck takes for ever.
    constexpr auto patience = std::chrono::seconds(1);
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, Clock::now() + patience, [&] { return open_; })) return false;
    ++inside_;
    return true;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0) changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  std::size_t inside_ = 0;
};

}  // namespace weft::providers
