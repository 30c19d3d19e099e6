#include "load/ends.hpp"

namespace weft::perf {
void Ends::tell(std::uint32_t operation) {
  const auto now = Clock::now();
  if (std::this_thread::get_id() == owner_) return own_.push_back({operation, now});
  const std::lock_guard lock(mutex_);
  ended_.push_back({operation, now});
  count_.store(ended_.size(), std::memory_order_release);
  told_.notify_one();
}

void Ends::wait(Deadline deadline) {
  if (any()) return;
  std::unique_lock lock(mutex_);
  told_.wait_until(lock, deadline.when(), [&] { return any(); });
}

const std::vector<End>& Ends::take() {
  taken_.clear();
  std::swap(own_, taken_);
  if (count_.load(std::memory_order_acquire) == 0) return taken_;
  const std::lock_guard lock(mutex_);
  taken_.insert(taken_.end(), ended_.begin(), ended_.end());
  ended_.clear();
  count_.store(0, std::memory_order_relaxed);
  return taken_;
}

}  // namespace weft::perf
