// What a process has taken of its machine.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <weft/deadline.hpp>

namespace weft::perf {

/// CPU time of all its threads, in the kernel too.
double cpu_seconds();

/// What the process takes from a moment on that has yet to come: a thread sleeps until then.
class CpuMark {
 public:
  explicit CpuMark(Clock::time_point at);

  /// Seconds of CPU time since then; none before.
  double taken();

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  double before_ = 0;
  std::jthread thread_;
};

}  // namespace weft::perf
