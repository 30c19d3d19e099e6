#include "transfer/transfer_state.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/thread.hpp"
#include "device/event.hpp"
#include "peer/health.hpp"
#include "peer/peer_state.hpp"

namespace weft::core {

TransferState::TransferState(Submission submission, TransferHost& host)
    : submission_(std::move(submission)),
      host_(host),
      phase_(waits() ? Phase::waiting : Phase::carrying),
      chunks_(submission_.prepared->pieces, submission_.picked(), submission_.reach(), lists_),
      shares_(submission_.prepared->rail_names->size(), &lists_),
      carriers_(submission_.prepared->rail_names->size(), Part::none, &lists_) {}

/// Without the lock: no other thread knows of it yet.
void TransferState::start(std::span<const std::size_t> rails, Parts parts) {
  parts_ = parts;
  rails_.assign(rails.begin(), rails.end());
  for (const std::size_t rail : rails) carriers_[rail] = Part::carries;
  self_ = shared_from_this();
  if (submission_.bytes > 0) return;
  change([&]() WEFT_REQUIRES(mutex_) {
    const Act act = advance();
    return act == Act::offer ? Act::nothing : act;  // it is offered from here on anyway
  });
}

/// A proof that it owes goes with what it is offered to next.
void TransferState::copied_inline(std::size_t rail, const InlineCopied& copied) {
  if (copied.bytes == 0) return;
  count_copied(prepared().own_copies(copied.bytes));
  change([&]() WEFT_REQUIRES(mutex_) {
    chunks_.skip(copied.bytes);
    operations_ = copied.operations;
    bytes_done_ = copied.bytes;
    shares_[rail] = {copied.operations, copied.bytes};
    first_out_ = submission_.submitted;
    last_home_ = Clock::now();
    if (copied.proven && prepared().direction == Direction::read) enter(Phase::proving);
    const Act act = advance();
    return act == Act::offer ? Act::nothing : act;
  });
}

/// The driver is asked without the lock: it may block, and others ask after the transfer. But the
/// application may destroy the event as soon as the transfer has ended, so it does not end
/// meanwhile.
bool TransferState::look_at_event() {
  {
    const Lock lock(mutex_);
    if (over() || cancel_asked_) return true;
    enter(Phase::looking);
  }
  const auto happened = event_happened(submission_.after_gpu_event);
  bool again = false;
  change([&]() WEFT_REQUIRES(mutex_) {
    enter(Phase::waiting);
    if (const auto ending = std::exchange(ends_with_, nullptr)) return end(std::move(*ending));
    if (cancel_asked_) return advance();
    if (!happened) return end({State::failed, happened.error()});
    again = !*happened;
    if (again) return Act::nothing;
    enter(Phase::carrying);
    return submission_.bytes == 0 ? advance() : Act::offer;
  });
  return !again;
}

TransferState::Act TransferState::advance() {
  if (outstanding_ > 0) return Act::nothing;
  switch (phase()) {
    case Phase::waiting:
      if (!cancel_asked_) return Act::nothing;
      [[fallthrough]];
    case Phase::carrying:
      if (!chunks_.exhausted()) return cancel_asked_ ? end_cancelled() : Act::nothing;
      enter(Phase::proving);
      plan_proofs();
      [[fallthrough]];
    case Phase::proving:
      if (!proofs_.empty()) return cancel_asked_ ? end_cancelled() : Act::offer;
      if (!hides_arrivals()) return begin_check();
      enter(Phase::revealing);
      return Act::reveal;
    case Phase::verifying:
      return cancel_asked_ ? end_cancelled() : Act::nothing;
    case Phase::verified:
      return finish();
    case Phase::ending:
      enter(Phase::closing);
      return Act::nothing;
    case Phase::ended:
      enter(Phase::settled);
      return Act::settle;
    case Phase::looking:
    case Phase::revealing:
    case Phase::signalling:
    case Phase::closing:
    case Phase::settled:
      break;  // These go on when what is under way is over.
  }
  return Act::nothing;
}

/// A device sees the bytes that a NIC has read into its memory only behind a flush.
bool TransferState::hides_arrivals() const {
  return prepared().direction == Direction::read &&
         submission_.transport == TransportKind::one_sided &&
         prepared().local->device().needs_flush();
}

TransferState::Act TransferState::begin_check() {
  if (!submission_.verify || submission_.bytes == 0) return finish();
  if (cancel_asked_) return end_cancelled();
  enter(Phase::verifying);
  return Act::verify;
}

/// A cancel that came when nothing was left to stop stops nothing; but a signal that it caught
/// before it went out stays unsent, and that is a cancelled transfer.
TransferState::Act TransferState::finish() {
  if (!submission_.signal) return end({});
  if (cancel_asked_) return end_cancelled();
  enter(Phase::signalling);
  return Act::signal;
}

TransferState::Act TransferState::end_cancelled() {
  return end({State::cancelled, Error(Code::cancelled, "the transfer was cancelled")});
}

TransferState::Act TransferState::end(Ending ending) {
  if (phase() == Phase::looking) {
    if (!ends_with_) ends_with_ = std::make_unique<Ending>(std::move(ending));
    return Act::nothing;
  }
  const auto now = Clock::now();
  tally_ = {ending.state,   now,     now - submission_.submitted, queued_until(now), bytes_done_,
            chunks_.runs(), retries_};
  if (ending.error) error_ = std::make_unique<const Error>(std::move(*ending.error));
  ended_in_ = phase();
  placed_for_sure_ = !error_ || (!ending.disproven && placed_for_sure());
  enter(outstanding_ > 0 ? Phase::ending : Phase::closing);
  return Act::tell;
}

void TransferState::perform(Act act, const std::shared_ptr<TransferState>& self) {
  switch (act) {
    case Act::nothing:
      return;
    case Act::offer:
      return host_.offer_again(self);
    case Act::reveal:
      return reveal();
    case Act::verify:
      return host_.verify(self);
    case Act::signal:
      submission_.let_go();
      return host_.raise_signal(self);
    case Act::tell:
      return tell();
    case Act::settle:
      return settle();
  }
}

void TransferState::reveal() {
  const auto visible = prepared().local->device().flush();
  change([&]() WEFT_REQUIRES(mutex_) {
    if (over()) return Act::nothing;
    if (!visible) return end({State::failed, visible.error(), true});
    return begin_check();
  });
}

void TransferState::tell() {
  host_.transfer_ends(*this);
  state_.store(tally_.state, std::memory_order_release);
  host_.transfer_ended(*this);
  if (auto on_end = std::exchange(submission_.on_end, nullptr)) {
    const Ended ended{tally_.state, submission_.cookie, error_.get()};
    const InCallback here;
    on_end(ended);
    on_end = nullptr;  // What it holds is destroyed in here too.
  }
  told();
}

/// The last chunk that comes home settles it, or this does. No other thread changes the phase once
/// none is out.
void TransferState::told() {
  if (phase() != Phase::closing) {
    const Lock lock(mutex_);
    if (phase() == Phase::ending) {
      enter(Phase::ended);
      return changed_.notify_all();
    }
  }
  phase_ = Phase::settled;
  settle();
}

/// A transfer that has raised its signal let go of its memory before.
void TransferState::settle() {
  const auto self = std::exchange(self_, nullptr);
  if (ended_in_ < Phase::signalling) submission_.let_go();
  if (waiters_ == 0) return;
  { const Lock lock(mutex_); }  // A thread that has counted itself sleeps by now.
  changed_.notify_all();
}

/// Takes the lock only to sleep: a waiter counts itself and then looks at the phase, and told()
/// changes the phase and then looks for waiters.
bool TransferState::wait(Phase phase, Deadline deadline) const {
  if (phase_ >= phase) return true;
  if (deadline.passed()) return false;
  const Lock lock(mutex_);
  ++waiters_;
  const bool reached = changed_.wait(mutex_, deadline, [&] { return phase_ >= phase; });
  --waiters_;
  return reached;
}

bool TransferState::hold() {
  const Lock lock(mutex_);
  if (over() || cancel_asked_) return false;
  ++outstanding_;
  return true;
}

void TransferState::let_go() {
  change([&]() WEFT_REQUIRES(mutex_) {
    --outstanding_;
    return advance();
  });
}

void TransferState::verified(const std::optional<Error>& error) {
  change([&]() WEFT_REQUIRES(mutex_) {
    if (phase() != Phase::verifying) return Act::nothing;
    if (error) return end({State::failed, error, true});
    enter(Phase::verified);
    return advance();
  });
}

void TransferState::signal_ended(const std::optional<Error>& error) {
  change([&]() WEFT_REQUIRES(mutex_) {
    if (phase() != Phase::signalling) return Act::nothing;
    return end({error ? State::failed : State::done, error});
  });
}

void TransferState::cancel() {
  change([&]() WEFT_REQUIRES(mutex_) {
    if (over() || cancel_asked_) return Act::nothing;
    cancel_asked_ = true;
    return advance();
  });
}

void TransferState::end_early(State state, Error error) {
  change([&]() WEFT_REQUIRES(mutex_) {
    return over() ? Act::nothing : end({state, std::move(error)});
  });
}

std::optional<Clock::time_point> TransferState::end_overdue(Clock::time_point now) {
  if (const auto later = due(); now < later) return later;
  if (now < submission_.deadline) {
    end_with_lease(prepared().remote->expired_error());
    return ended() ? std::nullopt : std::optional(submission_.deadline);
  }
  end_early(State::timed_out,
            Error(Code::timed_out, fmt::format("the transfer's deadline passed{}{}",
                                               excuse_of(peer().health()), why_stuck()))
                .with_peer(peer().introduction.name));
  return std::nullopt;
}

std::string TransferState::why_stuck() const {
  const Lock lock(mutex_);
  if (!stuck_) return {};
  return fmt::format(
      "; {} has had no room for it (does a firewall block the port of the peer's rail, or does the "
      "peer take nothing?)",
      (*prepared().rail_names)[*stuck_]);
}

void TransferState::end_with_lease(Error error) {
  change([&]() WEFT_REQUIRES(mutex_) {
    return phase() >= Phase::signalling ? Act::nothing : end({State::failed, std::move(error)});
  });
}

}  // namespace weft::core
