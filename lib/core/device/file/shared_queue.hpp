// One queue of a drive for the copies that programs begin: no rail carries these.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>
#include <weft/deadline.hpp>

#include "base/sync.hpp"
#include "device/file/file_queue.hpp"

namespace weft::core {

/// Whoever looks at a copy, or waits for it, learns the ends of all: so an unpolled copy does
/// not occupy the queue. From any thread.
class SharedQueue {
 public:
  enum class Until : std::uint8_t { ended, over };
  struct Standing {
    std::optional<Result<void>> result;  // once it has ended
    bool over = false;                   // nothing of it is under way

    bool reached(Until until) const noexcept {
      return until == Until::over ? over : result.has_value();
    }
  };
  /// A copy, from begin() on.
  struct Copying;
  using CopyingPtr = std::shared_ptr<Copying>;

  explicit SharedQueue(const Disk& disk);

  /// `in_use` stays until nothing of it is under way. Does not wait.
  Result<CopyingPtr> begin(std::span<const Copy> copies, std::shared_ptr<void> in_use);
  /// How it is now.
  Standing look(const CopyingPtr& copy);
  /// How it is then, or at the deadline.
  Standing wait(const CopyingPtr& copy, Until until, Deadline deadline);
  /// What of it has not begun never will.
  void give_up(const CopyingPtr& copy);
  /// Learns the ends, unless another thread is just about it.
  void serve();

 private:
  using Finished = std::vector<std::shared_ptr<void>>;
  void take_news(Finished& finished) WEFT_REQUIRES(mutex_);
  /// FileQueue::wait() needs no lock.
  void wait_in_queue(Deadline deadline, Finished& finished)
      WEFT_REQUIRES(mutex_) WEFT_NO_THREAD_SAFETY_ANALYSIS;

  Mutex mutex_;
  Condition changed_;
  FileQueue queue_ WEFT_GUARDED_BY(mutex_);
  std::map<std::uint64_t, CopyingPtr> copies_ WEFT_GUARDED_BY(mutex_);  // under way, by number
  // A thread waits in the queue, and will take the news.
  bool waited_in_ WEFT_GUARDED_BY(mutex_) = false;
};

}  // namespace weft::core
