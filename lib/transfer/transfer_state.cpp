#include "transfer/transfer_state.hpp"

#include <algorithm>
#include <utility>

#include "base/callback.hpp"
#include "peer/peer_state.hpp"

namespace weft::core {

TransferState::TransferState(Submission submission, TransferHost& host)
    : submission_(std::move(submission)),
      host_(host),
      started_(Clock::now()),
      cursor_(submission_.prepared->pieces, submission_.picks ? &*submission_.picks : nullptr),
      check_(submission_.options.verify && submission_.bytes > 0 ? Check::owed : Check::passed),
      shares_(submission_.rail_names->size()) {}

void TransferState::start(std::vector<std::size_t> rails) {
  std::unique_lock lock(mutex_);
  lanes_ = rails;
  rails_ = std::move(rails);
  self_ = shared_from_this();
  if (submission_.bytes == 0) carry_out(next_step(), std::move(lock));
}

std::size_t TransferState::take(std::span<Chunk> into, std::uint64_t limit) {
  const std::lock_guard lock(mutex_);
  if (ended() || cancel_asked_) return 0;
  std::size_t count = 0;
  while (count < into.size() && !returned_.empty()) {
    into[count++] = returned_.back();
    returned_.pop_back();
  }
  while (count < into.size()) {
    const auto chunk = cursor_.next(limit);
    if (!chunk) break;
    into[count++] = *chunk;
  }
  outstanding_ += count;
  operations_ += count;
  return count;
}

bool TransferState::take_proof(std::size_t rail, Chunk& into) {
  const std::lock_guard lock(mutex_);
  if (ended() || cancel_asked_) return false;
  const auto owed = std::find_if(proofs_.begin(), proofs_.end(),
                                 [&](const Chunk& each) { return each.local == rail; });
  if (owed == proofs_.end()) return false;
  into = *owed;
  proofs_.erase(owed);
  ++outstanding_;
  return true;
}

void TransferState::completed(std::size_t rail, const Chunk& chunk) {
  std::unique_lock lock(mutex_);
  --outstanding_;
  if (chunk.proof) return carry_out(next_step(), std::move(lock));
  bytes_done_ += chunk.length;
  shares_[rail].operations += 1;
  shares_[rail].bytes += chunk.length;
  carry_out(next_step(), std::move(lock));
}

void TransferState::give_back(const Chunk& chunk) {
  std::unique_lock lock(mutex_);
  --outstanding_;
  if (chunk.proof) {
    proofs_.push_back(chunk);
  } else {
    --operations_;
    returned_.push_back(chunk);
  }
  if (ended() || cancel_asked_) return carry_out(next_step(), std::move(lock));
  lock.unlock();
  host_.offer_again(shared_from_this());
}

void TransferState::failed(const Chunk&, Error error) {
  std::unique_lock lock(mutex_);
  --outstanding_;
  if (ended()) return carry_out(next_step(), std::move(lock));
  end_locked(State::failed, std::move(error), std::move(lock));
}

void TransferState::lane_leaves(std::size_t rail, const Error& why) {
  std::unique_lock lock(mutex_);
  if (std::erase(lanes_, rail) == 0) return;
  left_.push_back(rail);
  if (!lanes_.empty() || ended()) return;
  if (const auto another = host_.another_rail(*this, left_)) return lanes_.push_back(*another);
  end_locked(State::failed, why, std::move(lock));
}

std::vector<std::size_t> TransferState::lanes() const {
  const std::lock_guard lock(mutex_);
  return lanes_;
}

void TransferState::end_early(State state, Error error) {
  std::unique_lock lock(mutex_);
  if (!ended()) end_locked(state, std::move(error), std::move(lock));
}

void TransferState::verified(const std::optional<Error>& error) {
  std::unique_lock lock(mutex_);
  if (ended()) return;
  check_ = Check::passed;
  if (error) return end_locked(State::failed, error, std::move(lock));
  carry_out(next_step(), std::move(lock));
}

bool TransferState::hold() {
  const std::lock_guard lock(mutex_);
  if (ended() || cancel_asked_) return false;
  ++outstanding_;
  return true;
}

void TransferState::let_go() {
  std::unique_lock lock(mutex_);
  --outstanding_;
  carry_out(next_step(), std::move(lock));
}

void TransferState::signal_ended(const std::optional<Error>& error) {
  std::unique_lock lock(mutex_);
  signalling_ = false;
  if (ended()) return settle(std::move(lock));
  end_locked(error ? State::failed : State::done, error, std::move(lock));
}

void TransferState::cancel() {
  std::unique_lock lock(mutex_);
  if (ended() || cancel_asked_) return;
  cancel_asked_ = true;
  carry_out(next_step(), std::move(lock));
}

/// Reads bring their own proof, and over the relay it is the peer that says so.
void TransferState::plan_proofs() {
  proofs_planned_ = true;
  if (prepared().direction == Direction::read || submission_.transport == TransportKind::relay)
    return;
  for (std::size_t rail = 0; rail < shares_.size(); ++rail) {
    if (shares_[rail].operations == 0) continue;
    const std::size_t wanted = host_.proofs_of(*this, rail);
    for (std::size_t target = 0; target < wanted; ++target)
      proofs_.push_back({.local = rail, .remote = target, .proof = true});
  }
}

TransferState::Next TransferState::next_step() {
  if (outstanding_ > 0 || signalling_) return Next::nothing;
  if (ended()) return Next::end;
  if (!carried()) return cancel_asked_ ? Next::end : Next::nothing;
  if (!proofs_planned_) plan_proofs();
  if (!proven()) return cancel_asked_ ? Next::end : Next::prove;
  if (check_ != Check::passed && cancel_asked_) return Next::end;
  if (check_ == Check::owed) return Next::verify;
  if (check_ == Check::under_way) return Next::nothing;
  if (submission_.options.signal && !cancel_asked_) return Next::raise_signal;
  return Next::end;
}

void TransferState::carry_out(Next next, std::unique_lock<std::mutex> lock) {
  switch (next) {
    case Next::nothing:
      return;
    case Next::prove: {
      const auto self = shared_from_this();
      lock.unlock();
      return host_.offer_again(self);
    }
    case Next::verify: {
      check_ = Check::under_way;
      const auto self = shared_from_this();
      lock.unlock();
      return host_.verify(self);
    }
    case Next::raise_signal: {
      signalling_ = signal_raised_ = true;
      const auto self = shared_from_this();
      lock.unlock();
      return host_.raise_signal(self);
    }
    case Next::end:
      break;
  }
  if (ended()) return settle(std::move(lock));
  // A cancel that came when nothing was left to stop stops nothing; but a signal that it caught
  // before it went out stays unsent, and that is a cancelled transfer.
  const bool all_done = carried() && proven() && check_ == Check::passed;
  const bool stopped = cancel_asked_ && (!all_done || submission_.options.signal.has_value());
  if (!stopped) return end_locked(State::done, std::nullopt, std::move(lock));
  end_locked(State::cancelled, Error(Code::cancelled, "the transfer was cancelled"),
             std::move(lock));
}

void TransferState::end_locked(State state, std::optional<Error> error,
                               std::unique_lock<std::mutex> lock) {
  const auto alive = shared_from_this();
  error_ = std::move(error);
  ended_at_ = Clock::now();
  state_.store(state, std::memory_order_release);
  lock.unlock();
  host_.transfer_ended(*this);
  if (submission_.options.on_end) {
    const Ended ended{state, submission_.options.cookie, error_ ? &*error_ : nullptr};
    const InCallback here;
    submission_.options.on_end(ended);
  }
  lock.lock();
  announced_ = true;
  settle(std::move(lock));
}

/// Lets go of everything once the transfer has been announced and is quiescent.
void TransferState::settle(std::unique_lock<std::mutex> lock) {
  changed_.notify_all();
  if (!announced_ || outstanding_ > 0 || signalling_ || settled_) return;
  settled_ = true;
  const auto self = std::exchange(self_, nullptr);
  lock.unlock();
  host_.transfer_quiescent(*this);
}

bool TransferState::quiescent() const {
  const std::lock_guard lock(mutex_);
  return outstanding_ == 0 && (ended() || cancel_asked_);
}

bool TransferState::stopped() const {
  const std::lock_guard lock(mutex_);
  return ended() || cancel_asked_;
}

bool TransferState::signal_withheld() const {
  const std::lock_guard lock(mutex_);
  return ended() && submission_.options.signal.has_value() && !signal_raised_;
}

std::optional<Error> TransferState::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

bool TransferState::wait_ended(Deadline deadline) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline.when(), [&] { return announced_; });
}

bool TransferState::wait_quiescent(Deadline deadline) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline.when(),
                             [&] { return announced_ && outstanding_ == 0; });
}

Report TransferState::report() const {
  const std::lock_guard lock(mutex_);
  Report report;
  report.state = state();
  report.error = error_;
  report.bytes = submission_.bytes;
  report.bytes_done = bytes_done_;
  report.ranges = submission_.picks ? submission_.picks->size() : prepared().pieces.size();
  report.runs = cursor_.runs();
  report.operations = operations_;
  report.transport = submission_.transport;
  for (std::size_t rail = 0; rail < shares_.size(); ++rail) {
    if (shares_[rail].operations == 0) continue;
    report.rails.push_back(shares_[rail]);
    report.rails.back().rail = (*submission_.rail_names)[rail];
  }
  report.fallback = peer().fallback;
  report.elapsed = (ended() ? ended_at_ : Clock::now()) - started_;
  return report;
}

}  // namespace weft::core
