// Predicts from what the application did about the ends of its transfers whether it looks at them,
// and whether it waits for them and does nothing else meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <weft/deadline.hpp>

namespace weft::core {

/// Of all transfers of an engine, which are told apart by when they were submitted: to mistake one
/// for another does no harm. From any thread.
class WaitPredictor {
 public:
  /// Waits are noted of transfers that are larger than `small` bytes.
  explicit WaitPredictor(std::uint64_t small) : small_(small) {}

  /// A transfer that ended inside submit() was not inspected yet.
  /// Of several, the first counts.
  bool any_unseen() const noexcept { return unseen_.load(std::memory_order_relaxed) != none; }
  /// Before the application has the transfer.
  void note_unseen(Clock::time_point submitted) noexcept {
    if (!any_unseen()) unseen_.store(count(submitted), std::memory_order_relaxed);
  }
  /// The application has looked at it, or let go of it.
  void see(Clock::time_point submitted) noexcept {
    if (unseen_.load(std::memory_order_relaxed) == count(submitted))
      unseen_.store(none, std::memory_order_relaxed);
  }

  /// It begins to wait for one of so many bytes that it has had since then.
  void wait(std::uint64_t bytes, Clock::time_point since, Deadline deadline) noexcept {
    if (bytes <= small_) return;
    const auto now = Clock::now();
    const bool prompt = now - since < promptly && deadline.when() - now > patiently;
    trust_.store(prompt ? most_trust : 0, std::memory_order_relaxed);
  }
  /// Whether it began to wait for large ones as soon as it had them, and was ready to wait for all
  /// of them.
  bool prompt() const noexcept { return trust_.load(std::memory_order_relaxed) > 0; }
  /// One was copied because of that. What the application would do is unknown of transfers that are
  /// over by then, so that this is believed for some of them only.
  void believed() noexcept {
    const int trust = trust_.load(std::memory_order_relaxed);
    if (trust > 0) trust_.store(trust - 1, std::memory_order_relaxed);
  }

 private:
  // Work in between that is shorter than this loses little: 2 MiB take about as long.
  static constexpr auto promptly = std::chrono::microseconds(50);
  // A look from time to time does not wait for so long.
  static constexpr auto patiently = std::chrono::milliseconds(5);
  static constexpr int most_trust = 16;
  static constexpr Clock::rep none = 0;
  static Clock::rep count(Clock::time_point when) noexcept {
    return when.time_since_epoch().count();
  }

  const std::uint64_t small_;
  std::atomic<Clock::rep> unseen_{none};
  std::atomic<int> trust_{0};
};

}  // namespace weft::core
