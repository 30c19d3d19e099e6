// Where operations tell that they are over, and a loop waits for the next that does.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>
#include <weft/deadline.hpp>

namespace weft::perf {

/// An operation is over since then, well or not.
struct End {
  std::uint32_t operation = 0;
  Clock::time_point when{};
};

/// Waited for, and taken, by the thread that has made it.
class Ends {
 public:
  /// From any thread.
  void tell(std::uint32_t operation);
  /// Until some have ended that were not taken yet, or the deadline.
  void wait(Deadline deadline);
  bool any() const noexcept { return count() > 0; }
  /// How many were told and not taken.
  std::size_t count() const noexcept {
    return own_.size() + count_.load(std::memory_order_acquire);
  }
  /// Those that have ended since the last call; those that one thread has told of in that order.
  /// Valid until the next call.
  const std::vector<End>& take();

 private:
  const std::thread::id owner_ = std::this_thread::get_id();
  std::vector<End> own_;  // told by the owner, as of what ends in the call that begins it

  std::mutex mutex_;
  std::condition_variable told_;
  std::vector<End> ended_, taken_;
  std::atomic<std::size_t> count_{0};
};

/// What one operation tells its end with. Its copies keep what is told alive.
struct Ticket {
  std::shared_ptr<Ends> ends;
  std::uint32_t operation = 0;
  Clock::time_point begun{};  ///< When it begins: to read the clock takes as long as small copies.

  void tell() const { ends->tell(operation); }
};

}  // namespace weft::perf
