// The transfers that took longest lately.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <vector>
#include <weft/metrics.hpp>

#include "base/sync.hpp"

namespace weft::core {

/// Of those that ended in the last one to two periods: each period has its own list, and that of
/// the one before is kept, so that one slow minute does not stay for ever. From any thread.
class SlowestTransfers {
 public:
  static constexpr std::size_t most = 16;
  static constexpr std::chrono::minutes period{1};

  /// Whether one that took so long belongs here; costs two loads for those that don't.
  bool wants(Nanoseconds elapsed, Clock::time_point ended) const noexcept {
    return elapsed.count() > threshold_.load(std::memory_order_relaxed) ||
           ended.time_since_epoch().count() >= period_end_.load(std::memory_order_relaxed);
  }
  void add(SlowTransfer transfer);
  /// At most `most`, the slowest first.
  std::vector<SlowTransfer> list(Clock::time_point now) const;

 private:
  void begin_period(Clock::time_point now) WEFT_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::vector<SlowTransfer> now_, before_ WEFT_GUARDED_BY(mutex_);  // heaps, the fastest first
  // Written with the mutex.
  std::atomic<Nanoseconds::rep> threshold_{-1};  // of now_, where that is full
  std::atomic<Clock::rep> period_end_{Clock::time_point::min().time_since_epoch().count()};
};

}  // namespace weft::core
