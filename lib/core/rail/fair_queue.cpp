#include "rail/fair_queue.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "transfer/transfer_state.hpp"

namespace weft::core {

bool FairQueue::empty() const noexcept {
  return std::all_of(classes_.begin(), classes_.end(),
                     [](const Class& each) { return each.waiting.empty(); });
}

void FairQueue::add(std::shared_ptr<TransferState> transfer) {
  sweep();
  Class& its = of(transfer->submission().priority);
  const Clock::time_point deadline = transfer->due();
  Waiting waiting{std::move(transfer), deadline, turn_++};
  if (spare_.empty()) {
    its.waiting.push_back(std::move(waiting));
    its.by_deadline.insert(its.by_deadline.end(), std::prev(its.waiting.end()));
    return;
  }
  Turn spare = std::move(spare_.back());
  spare_.pop_back();
  spare.entry_.front() = std::move(waiting);
  its.waiting.splice(its.waiting.end(), spare.entry_);
  its.by_deadline.insert(its.by_deadline.end(), std::move(spare.place_));
}

FairQueue::Turn FairQueue::next() {
  const auto highest = std::find_if(classes_.begin(), classes_.end(),
                                    [](const Class& each) { return !each.waiting.empty(); });
  // The lowest first: it waits longest.
  for (auto lower = std::prev(classes_.end()); lower != highest; --lower) {
    if (lower->waiting.empty() || lower->owed <= 0) continue;
    Turn turn = lower->take();
    turn.before_its_time_ = turn.for_its_share_ = true;
    return turn;
  }
  return highest->take();
}

FairQueue::Turn FairQueue::next_urgent() {
  Turn turn = of(Priority::latency).take();
  turn.spare_ = true;
  return turn;
}

FairQueue::Turn FairQueue::Class::take() {
  Turn turn;
  auto which = by_deadline.begin();
  if (++in_order >= patience) {
    in_order = 0;
    turn.before_its_time_ = waiting.begin() != *which;
    if (turn.before_its_time_) which = by_deadline.find(waiting.begin());
  }
  turn.entry_.splice(turn.entry_.begin(), waiting, *which);
  turn.place_ = by_deadline.extract(which);
  return turn;
}

void FairQueue::end(Turn&& turn, bool more) {
  Class& its = of(turn.transfer().submission().priority);
  for (Class& each : classes_)
    if (&each != &its && !each.waiting.empty() && !turn.spare_) each.owed += turn.cost_;
  if (turn.for_its_share_) its.owed -= (share - 1) * turn.cost_;
  if (!more) {
    turn.entry_.front().transfer.reset();
    if (spare_.size() < most_spare) spare_.push_back(std::move(turn));
    return;
  }
  turn.entry_.front().since = turn_++;
  its.waiting.splice(its.waiting.end(), turn.entry_);
  // Most often it is still the earliest.
  its.by_deadline.insert(its.by_deadline.begin(), std::move(turn.place_));
}

void FairQueue::Class::erase(List::iterator which) {
  by_deadline.erase(which);
  waiting.erase(which);
}

void FairQueue::erase(const TransferState& transfer) {
  Class& its = of(transfer.submission().priority);
  for (auto each = its.waiting.begin(); each != its.waiting.end();) {
    const auto which = each++;
    if (which->transfer.get() == &transfer) its.erase(which);
  }
}

void FairQueue::drop_ended() {
  for (Class& each : classes_)
    while (!each.waiting.empty() && (*each.by_deadline.begin())->transfer->ended())
      each.erase(*each.by_deadline.begin());
}

/// While a peer takes nothing, transfers to it end without a look at the queue.
void FairQueue::sweep() {
  std::size_t count = 0;
  for (const Class& each : classes_) count += each.waiting.size();
  if (count < sweep_at_) return;
  for (Class& its : classes_)
    for (auto each = its.waiting.begin(); each != its.waiting.end();) {
      const auto which = each++;
      if (which->transfer->ended()) its.erase(which);
    }
  count = 0;
  for (const Class& each : classes_) count += each.waiting.size();
  sweep_at_ = std::max<std::size_t>(64, 2 * count);
}

}  // namespace weft::core
