#include "metrics/slowest.hpp"

#include <algorithm>
#include <utility>

#include "base/sync.hpp"

namespace weft::core {
namespace {

bool took_longer(const SlowTransfer& a, const SlowTransfer& b) {
  return a.report.elapsed > b.report.elapsed;
}

}  // namespace

void SlowestTransfers::begin_period(Clock::time_point now) {
  const Clock::time_point end{Clock::duration(period_end_.load(std::memory_order_relaxed))};
  const bool just_ended = now - period < end;
  before_ = just_ended ? std::exchange(now_, {}) : std::vector<SlowTransfer>();
  now_.clear();
  threshold_.store(-1, std::memory_order_relaxed);
  period_end_.store((now + period).time_since_epoch().count(), std::memory_order_relaxed);
}

void SlowestTransfers::add(SlowTransfer transfer) {
  const Lock lock(mutex_);
  if (transfer.ended.time_since_epoch().count() >= period_end_.load(std::memory_order_relaxed))
    begin_period(transfer.ended);
  now_.push_back(std::move(transfer));
  std::push_heap(now_.begin(), now_.end(), took_longer);
  if (now_.size() > most) {
    std::pop_heap(now_.begin(), now_.end(), took_longer);
    now_.pop_back();
  }
  if (now_.size() == most)
    threshold_.store(now_.front().report.elapsed.count(), std::memory_order_relaxed);
}

std::vector<SlowTransfer> SlowestTransfers::list(Clock::time_point now) const {
  std::vector<SlowTransfer> all;
  {
    const Lock lock(mutex_);
    all = now_;
    all.insert(all.end(), before_.begin(), before_.end());
  }
  std::erase_if(all, [&](const SlowTransfer& each) { return now - each.ended > 2 * period; });
  std::sort(all.begin(), all.end(), took_longer);
  if (all.size() > most) all.resize(most);
  return all;
}

}  // namespace weft::core
