// The end that the application has not looked at yet, of a transfer that was over before the
// application had it.
#pragma once

#include <atomic>
#include <weft/deadline.hpp>

namespace weft::core {

/// Of all transfers of an engine, which are told apart by when they were submitted: mistaking one
/// for another does no harm. Of several, the first counts. From any thread.
class UnseenEnd {
 public:
  bool any() const noexcept { return submitted_.load(std::memory_order_relaxed) != none; }
  /// Before the application has the transfer.
  void note(Clock::time_point submitted) noexcept {
    if (!any()) submitted_.store(count(submitted), std::memory_order_relaxed);
  }
  /// The application has looked at it, or let go of it.
  void see(Clock::time_point submitted) noexcept {
    if (submitted_.load(std::memory_order_relaxed) == count(submitted))
      submitted_.store(none, std::memory_order_relaxed);
  }

 private:
  static constexpr Clock::rep none = 0;
  static Clock::rep count(Clock::time_point when) noexcept {
    return when.time_since_epoch().count();
  }

  std::atomic<Clock::rep> submitted_{none};
};

}  // namespace weft::core
