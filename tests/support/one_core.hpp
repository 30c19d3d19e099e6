// Threads that share a core, and others that compute on it.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <weft/deadline.hpp>

namespace weft::test {

/// Keeps the calling thread, and those that it starts, on the core that it runs on.
class OneCore {
 public:
  OneCore() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
    kept_ = sched_getaffinity(0, sizeof before_, &before_) == 0 &&
            sched_setaffinity(0, sizeof one, &one) == 0;
  }
  ~OneCore() {
    if (kept_) sched_setaffinity(0, sizeof before_, &before_);
  }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;
  bool kept() const { return kept_; }

 private:
  cpu_set_t before_;
  bool kept_ = false;
};

/// Somebody who computes, on the cores of the thread that has made it, while it lives.
class Computing {
 public:
  Computing() = default;

 private:
  std::jthread thread_{[](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
    }
  }};
};

/// For how long others have the core once it is given to them, at most: at once only if this thread
/// has had its share.
inline Nanoseconds longest_away() {
  Nanoseconds longest{};
  const Deadline deadline = Deadline::in(std::chrono::milliseconds(100));
  for (auto now = Clock::now(); now < deadline.when();) {
    sched_yield();
    const auto back = Clock::now();
    longest = std::max<Nanoseconds>(longest, back - now);
    now = back;
  }
  return longest;
}

}  // namespace weft::test
