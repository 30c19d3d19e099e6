#include "device/file/shared_queue.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace weft::core {

/// Guarded by the queue's mutex.
struct SharedQueue::Copying {
  std::uint64_t number = 0;
  std::shared_ptr<void> in_use;  // let go once it is over
  Standing standing = {};
};

SharedQueue::SharedQueue(const Disk& disk)
    : queue_(disk, open_io_channel(), FileQueue::Of::programs) {}

Result<SharedQueue::CopyingPtr> SharedQueue::begin(std::span<const Copy> copies,
                                                   std::shared_ptr<void> in_use) {
  const Lock lock(mutex_);
  auto begun = queue_.copy(copies, Priority::normal);
  if (begun.error) return fail(std::move(*begun.error));
  auto copy = std::make_shared<Copying>(Copying{begun.number, std::move(in_use)});
  copies_.emplace(begun.number, copy);
  return copy;
}

SharedQueue::Standing SharedQueue::look(const CopyingPtr& copy) {
  Finished finished;
  const Lock lock(mutex_);
  take_news(finished);
  return copy->standing;
}

SharedQueue::Standing SharedQueue::wait(const CopyingPtr& copy, Until until, Deadline deadline) {
  Finished finished;
  const Lock lock(mutex_);
  const auto done = [&]() WEFT_REQUIRES(mutex_) { return copy->standing.reached(until); };
  while (true) {
    take_news(finished);
    if (done() || deadline.passed()) return copy->standing;
    if (waited_in_)
      changed_.wait(mutex_, deadline,
                    [&]() WEFT_REQUIRES(mutex_) { return done() || !waited_in_; });
    else
      wait_in_queue(deadline, finished);
  }
}

/// The others wait for this thread meanwhile.
void SharedQueue::wait_in_queue(Deadline deadline, Finished& finished) {
  const auto soon = std::min(deadline.when(), queue_.look_again().when());
  waited_in_ = true;
  mutex_.unlock();
  finished.clear();
  queue_.wait(Deadline::at(soon));
  mutex_.lock();
  waited_in_ = false;
  take_news(finished);
  changed_.notify_all();
}

void SharedQueue::give_up(const CopyingPtr& copy) {
  const Lock lock(mutex_);
  queue_.give_up(copy->number);
}

void SharedQueue::serve() {
  Finished finished;
  if (!mutex_.try_lock()) return;
  const Lock lock(mutex_, std::adopt_lock);
  take_news(finished);
}

/// What has finished is let go by the caller, without the lock.
void SharedQueue::take_news(Finished& finished) {
  if (waited_in_) return;
  for (CopyQueue::News& each : queue_.news()) {
    Copying& copy = *copies_.at(each.number);
    if (!copy.standing.result)
      copy.standing.result =
          each.error ? Result<void>(fail(std::move(*each.error))) : Result<void>();
    if (!each.over) continue;
    copy.standing.over = true;
    finished.push_back(std::move(copy.in_use));
    copies_.erase(each.number);
  }
}

}  // namespace weft::core
