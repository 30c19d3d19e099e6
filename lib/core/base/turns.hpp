// How long a thread has a core at a time, where others want it as well.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <weft/deadline.hpp>

namespace weft::core {

/// The kernel's sched_attr, which glibc does not have before 2.41.
struct SchedulingAttributes {
  std::uint32_t size, policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime, deadline, period;
};

constexpr std::uint64_t short_turn = 100'000;  // ns; the shortest that the kernel takes

/// Asks for turns of 0.1 ms for the calling thread, or for those that the system gives. Beside
/// threads that compute it is let in sooner when it wakes, and a yield costs it less: Linux 6.18
/// takes a whole turn for one, 1.4 ms on two cores. Kernels before 6.12 ignore it.
inline void take_short_turns(bool asked = true) noexcept {
  SchedulingAttributes wish{};
  if (syscall(SYS_sched_getattr, 0, &wish, sizeof wish, 0) != 0 || wish.policy != SCHED_OTHER)
    return;
  wish.runtime = asked ? short_turn : 0;
  syscall(SYS_sched_setattr, 0, &wish, 0);
}

/// Short turns for a thread that others keep waiting, and only for that one: in long ones streams
/// of large pieces are up to half as fast again. Used by one thread.
class Turns {
 public:
  Turns() : file_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
  ~Turns() {
    if (file_ >= 0) close(file_);
  }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  void choose(Clock::time_point now) noexcept {
    if (now < next_ || file_ < 0) return;
    const Nanoseconds waited = waited_so_far();
    const bool kept_waiting = waited - waited_ > (now - looked_) / 4;
    waited_ = waited;
    looked_ = now;
    if (kept_waiting != short_) take_short_turns(short_ = kept_waiting);
    next_ = now + (short_ ? kept : interval);
  }

 private:
  static constexpr Nanoseconds interval = std::chrono::milliseconds(10);
  // In short turns it waits less. To find out whether it still needs them costs an interval.
  static constexpr Nanoseconds kept = std::chrono::milliseconds(500);

  /// For how long the thread was ready to run and had no core: the second number in the file.
  Nanoseconds waited_so_far() const noexcept {
    std::array<char, 64> text{};
    if (pread(file_, text.data(), text.size() - 1, 0) <= 0) return waited_;
    char* end = nullptr;
    std::strtoull(text.data(), &end, 10);
    return Nanoseconds(std::strtoll(end, nullptr, 10));
  }

  const int file_;
  bool short_ = false;
  Nanoseconds waited_ = waited_so_far();
  Clock::time_point looked_ = Clock::now(), next_ = looked_ + interval;
};

}  // namespace weft::core
