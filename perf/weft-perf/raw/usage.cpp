#include "raw/usage.hpp"

#include <sys/resource.h>

namespace weft::perf {

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](timeval time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

CpuMark::CpuMark(Clock::time_point at)
    : thread_([this, at](const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        ended_.wait_until(lock, stop, at, [] { return false; });
        before_ = cpu_seconds();
      }) {}

double CpuMark::taken() {
  thread_.request_stop();
  thread_.join();
  return cpu_seconds() - before_;
}

}  // namespace weft::perf
