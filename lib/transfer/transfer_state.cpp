#include "transfer/transfer_state.hpp"

#include <algorithm>
#include <utility>

#include "base/callback.hpp"
#include "base/wait_on.hpp"
#include "device/event.hpp"
#include "peer/peer_state.hpp"
#include "transfer/report.hpp"

namespace weft::core {

void Submission::take(TransferOptions&& options) {
  on_end = std::move(options.on_end);
  cookie = options.cookie;
  after_cuda_event = options.after_cuda_event;
  priority = options.priority;
  event = options.event;
  verify = options.verify;
  if (!options.signal) return;
  signal = options.signal->id;
  signal_bytes.assign(options.signal->bytes.begin(), options.signal->bytes.end());
}

TransferState::TransferState(Submission submission, TransferHost& host)
    : submission_(std::move(submission)),
      host_(host),
      cursor_(submission_.prepared->pieces, submission_.picked()),
      check_(submission_.verify && submission_.bytes > 0 ? Check::owed : Check::passed),
      shares_(submission_.prepared->rail_names->size(), &lists_) {
  visible_ = !host_.hides_arrivals(*this);
}

/// Nobody else knows of it yet.
void TransferState::start(std::span<const std::size_t> rails, Parts parts) {
  parts_ = parts;
  schedulers_.assign(rails.begin(), rails.end());
  rails_.assign(rails.begin(), rails.end());
  self_ = shared_from_this();
  if (submission_.bytes == 0 && !waits()) carry_out(next_step(), std::unique_lock(mutex_));
}

void TransferState::copied_at_once(std::size_t rail, const CopiedAtOnce& copied) {
  if (copied.bytes == 0) return;
  count_copied(prepared().own_copies(copied.bytes));
  std::unique_lock lock(mutex_);
  while (cursor_.walked() < copied.bytes) cursor_.next(copied.bytes - cursor_.walked());
  operations_ = copied.operations;
  bytes_done_ = copied.bytes;
  shares_[rail] = {copied.operations, copied.bytes};
  first_out_ = submission_.submitted;
  last_home_ = Clock::now();
  if (prepared().direction == Direction::read) proofs_planned_ = copied.proven;
  // A proof that it owes is carried by whom it is offered to.
  if (const Next next = next_step(); next != Next::prove) carry_out(next, std::move(lock));
}

/// Without the lock: a driver may block, and others ask after the transfer. But the application may
/// destroy the event as soon as the transfer has ended, so it does not end meanwhile.
bool TransferState::look_at_event() {
  std::unique_lock lock(mutex_);
  if (ended() || cancel_asked_) return true;
  looking_ = true;
  lock.unlock();
  const auto happened = cuda_event_happened(submission_.after_cuda_event);
  lock.lock();
  looking_ = false;
  if (const auto ending = std::exchange(ends_with_, nullptr)) {
    end_locked(ending->state, std::move(ending->error), std::move(lock));
    return true;
  }
  if (happened && !*happened) return false;
  if (!happened) {
    end_locked(State::failed, happened.error(), std::move(lock));
  } else if (submission_.bytes == 0) {
    carry_out(next_step(), std::move(lock));
  } else {
    lock.unlock();
    host_.offer_again(shared_from_this());
  }
  return true;
}

std::size_t TransferState::take(std::span<Chunk> into, std::uint64_t limit, std::uint64_t all,
                                Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (is_over(now)) return 0;
  all = std::min(all, parts_.most);
  std::size_t count = 0;
  while (count < into.size() && all > 0) {
    const auto chunk = next_chunk(std::min(limit, all));
    if (!chunk) break;
    into[count++] = *chunk;
    all -= chunk->length;
  }
  taken(into.first(count), now);
  return count;
}

std::uint64_t TransferState::even_chunk(std::uint64_t limit) const noexcept {
  constexpr std::uint64_t page = 4096;
  const bool two = limit < parts_.most && (parts_.most - 1) / limit == 1;
  if (!parts_.even || !two || ranges() != 1) return limit;
  return std::min(limit, (parts_.most + 2 * page - 1) / (2 * page) * page);
}

std::optional<Chunk> TransferState::take_waiting(std::uint64_t limit) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  if (is_over(now)) return std::nullopt;
  auto chunk = cursor_.next(limit);
  if (!chunk) chunk = next_chunk(limit);
  if (chunk) taken({&*chunk, 1}, now);
  return chunk;
}

/// With the lock. Whose time is over ends with this round, and not by luck.
bool TransferState::is_over(Clock::time_point now) const {
  return ended() || cancel_asked_ || now >= due();
}

/// With the lock.
void TransferState::taken(std::span<Chunk> chunks, Clock::time_point now) {
  if (chunks.empty()) return;
  operations_ += chunks.size();
  // It may have come after the rail looked at the clock.
  if (first_out_ == never) first_out_ = std::max(now, submission_.submitted);
  for (Chunk& chunk : chunks) went_out(chunk);
}

void TransferState::halve() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t half = (submission_.bytes - cursor_.walked()) / 2;
  if (half == 0) return;
  if (const auto chunk = cursor_.next(half)) cut_.push_back(*chunk);
}

bool TransferState::has_more() const {
  const std::lock_guard lock(mutex_);
  return !carried() || !proofs_.empty();
}

bool TransferState::has_chunks() const {
  const std::lock_guard lock(mutex_);
  return !ended() && !cancel_asked_ && !carried();
}

/// What is cut goes first; whoever it was cut for may have taken more at a time.
std::optional<Chunk> TransferState::next_chunk(std::uint64_t limit) {
  if (cut_.empty()) return cursor_.next(limit);
  Chunk& last = cut_.back();
  Chunk chunk = last;
  if (chunk.length <= limit) {
    cut_.pop_back();
    return chunk;
  }
  chunk.length = limit;
  last.local += limit;
  last.remote += limit;
  last.at += limit;
  last.length -= limit;
  return chunk;
}

TransferState::Proofs::const_iterator TransferState::find_proof(std::size_t rail) const {
  return std::find_if(proofs_.begin(), proofs_.end(), [&](const Chunk& each) {
    return each.kind == Chunk::Kind::epoch || each.local == rail;
  });
}

std::optional<Chunk::Kind> TransferState::owed_proof(std::size_t rail) const {
  const std::lock_guard lock(mutex_);
  if (ended() || cancel_asked_) return std::nullopt;
  const auto owed = find_proof(rail);
  return owed == proofs_.end() ? std::nullopt : std::optional(owed->kind);
}

bool TransferState::take_proof(std::size_t rail, Chunk::Kind kind, Chunk& into) {
  const std::lock_guard lock(mutex_);
  if (ended() || cancel_asked_) return false;
  const auto owed = find_proof(rail);
  if (owed == proofs_.end() || owed->kind != kind) return false;
  into = take_proof(owed);
  return true;
}

void TransferState::went_out(Chunk& chunk) {
  ++outstanding_;
  if (chunk.proof()) {
    ++proofs_out_;
    return;
  }
  if (free_slot_ == no_slot) {
    chunk.slot = static_cast<std::uint32_t>(out_.size());
    out_.push_back({chunk.at, chunk.length});
    return;
  }
  chunk.slot = free_slot_;
  free_slot_ = static_cast<std::uint32_t>(out_[chunk.slot].at);
  out_[chunk.slot] = {chunk.at, chunk.length};
}

void TransferState::came_home(const Chunk& chunk) {
  --outstanding_;
  if (chunk.proof()) {
    --proofs_out_;
    return;
  }
  out_[chunk.slot] = {free_slot_, 0};
  free_slot_ = chunk.slot;
}

std::optional<Chunk> TransferState::completed(std::size_t rail, const Chunk& chunk) {
  std::unique_lock lock(mutex_);
  came_home(chunk);
  if (!chunk.proof()) {
    bytes_done_ += chunk.length;
    shares_[rail].operations += 1;
    shares_[rail].bytes += chunk.length;
  }
  const Next next = next_step();
  // Where nothing follows, the end is when the last chunk came home.
  if (!chunk.proof() && outstanding_ == 0 && next != Next::end) last_home_ = Clock::now();
  if (next == Next::prove)
    if (const auto owed = find_proof(rail);
        owed != proofs_.end() && owed->kind == Chunk::Kind::epoch)
      return take_proof(owed);
  carry_out(next, std::move(lock));
  return std::nullopt;
}

Chunk TransferState::take_proof(Proofs::const_iterator owed) {
  Chunk proof = *owed;
  proofs_.erase(owed);
  went_out(proof);
  return proof;
}

void TransferState::give_back(std::span<const Chunk> chunks) {
  std::unique_lock lock(mutex_);
  for (const Chunk& chunk : chunks) {
    came_home(chunk);
    if (chunk.proof()) {
      proofs_.push_back(chunk);
    } else {
      --operations_;
      ++retries_;
      cut_.push_back(chunk);
    }
  }
  if (ended() || cancel_asked_) return carry_out(next_step(), std::move(lock));
  lock.unlock();
  host_.offer_again(shared_from_this());
}

void TransferState::failed(const Chunk& chunk, Error error) {
  std::unique_lock lock(mutex_);
  came_home(chunk);
  if (chunk.proof())
    disproven_ = true;
  else
    losses().doubtful.push_back({chunk.at, chunk.length});
  if (ended()) return carry_out(next_step(), std::move(lock));
  end_locked(State::failed, std::move(error), std::move(lock));
}

void TransferState::rail_leaves(std::size_t rail, const Error& why) {
  std::unique_lock lock(mutex_);
  if (hand_on(rail) || ended()) return;
  std::erase(schedulers_, rail);
  end_locked(State::failed, why, std::move(lock));
}

bool TransferState::rail_steps_back(std::size_t rail) {
  const std::lock_guard lock(mutex_);
  return hand_on(rail);
}

TransferState::Losses& TransferState::losses() {
  if (!losses_) losses_ = std::make_unique<Losses>();
  return *losses_;
}

/// To its other rails, or to one of another rail.
bool TransferState::hand_on(std::size_t rail) {
  const auto scheduler = std::find(schedulers_.begin(), schedulers_.end(), rail);
  if (scheduler == schedulers_.end()) return true;
  auto& left = losses().left;
  left.push_back(rail);
  if (schedulers_.size() > 1) {
    schedulers_.erase(scheduler);
  } else if (const auto another = host_.another_rail(*this, left)) {
    *scheduler = static_cast<std::uint32_t>(*another);
  } else {
    left.pop_back();
    return false;
  }
  return true;
}

std::vector<std::size_t> TransferState::schedulers() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> schedulers(schedulers_.begin(), schedulers_.end());
  for (const Chunk& proof : proofs_)
    if (proof.kind == Chunk::Kind::arrival &&
        std::find(schedulers.begin(), schedulers.end(), proof.local) == schedulers.end())
      schedulers.push_back(proof.local);
  return schedulers;
}

void TransferState::end_early(State state, Error error) {
  std::unique_lock lock(mutex_);
  if (!ended()) end_locked(state, std::move(error), std::move(lock));
}

std::optional<Clock::time_point> TransferState::end_overdue(Clock::time_point now) {
  if (now < submission_.deadline) {
    end_with_lease(prepared().remote->expired_error());
    return ended() ? std::nullopt : std::optional(submission_.deadline);
  }
  end_early(
      State::timed_out,
      Error(Code::timed_out, "the transfer's deadline passed").with_peer(peer().introduction.name));
  return std::nullopt;
}

void TransferState::end_with_lease(Error error) {
  std::unique_lock lock(mutex_);
  if (ended() || signal_raised_) return;
  end_locked(State::failed, std::move(error), std::move(lock));
}

void TransferState::verified(const std::optional<Error>& error) {
  std::unique_lock lock(mutex_);
  if (ended()) return;
  check_ = Check::passed;
  disproven_ = error.has_value();
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

/// Over the bounce-buffer transport it is the peer that says what it has done, and while the grant
/// held. A read by RMA is worth something only if the lease still held when all its bytes had come.
void TransferState::plan_proofs() {
  proofs_planned_ = true;
  if (submission_.transport == TransportKind::bounce || submission_.bytes == 0) return;
  if (prepared().direction == Direction::read) {
    if (!submission_.trusted) proofs_.push_back({.kind = Chunk::Kind::epoch});
    return;
  }
  for (std::size_t rail = 0; rail < shares_.size(); ++rail) {
    if (shares_[rail].operations == 0) continue;
    const std::size_t wanted = host_.proofs_of(*this, rail);
    for (std::size_t target = 0; target < wanted; ++target)
      proofs_.push_back({.local = rail, .remote = target, .kind = Chunk::Kind::arrival});
  }
}

TransferState::Next TransferState::next_step() {
  if (outstanding_ > 0 || signalling_) return Next::nothing;
  if (ended()) return Next::end;
  if (!carried()) return cancel_asked_ ? Next::end : Next::nothing;
  if (!proofs_planned_) plan_proofs();
  if (!proven()) return cancel_asked_ ? Next::end : Next::prove;
  if (check_ != Check::passed && cancel_asked_) return Next::end;
  if (!visible_) return revealing_ ? Next::nothing : Next::make_visible;
  if (check_ == Check::owed) return Next::verify;
  if (check_ == Check::under_way) return Next::nothing;
  if (submission_.signal && !cancel_asked_) return Next::raise_signal;
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
    case Next::make_visible:
      return reveal(std::move(lock));
    case Next::verify: {
      check_ = Check::under_way;
      const auto self = shared_from_this();
      lock.unlock();
      return host_.verify(self);
    }
    case Next::raise_signal: {
      signalling_ = signal_raised_ = let_go_ = true;
      const auto self = shared_from_this();
      lock.unlock();
      host_.memory_let_go(*this);
      return host_.raise_signal(self);
    }
    case Next::end:
      break;
  }
  if (ended()) return settle(std::move(lock));
  // A cancel that came when nothing was left to stop stops nothing; but a signal that it caught
  // before it went out stays unsent, and that is a cancelled transfer.
  const bool all_done = carried() && proven() && check_ == Check::passed;
  const bool stopped = cancel_asked_ && (!all_done || submission_.signal.has_value());
  if (!stopped) return end_locked(State::done, std::nullopt, std::move(lock));
  end_locked(State::cancelled, Error(Code::cancelled, "the transfer was cancelled"),
             std::move(lock));
}

/// Without the lock: it is a call of a driver's.
void TransferState::reveal(std::unique_lock<std::mutex> lock) {
  const auto alive = shared_from_this();
  revealing_ = true;
  lock.unlock();
  auto visible = host_.make_visible(*this);
  lock.lock();
  revealing_ = false;
  visible_ = true;
  if (ended()) return;
  if (visible) return carry_out(next_step(), std::move(lock));
  disproven_ = true;
  end_locked(State::failed, std::move(visible.error()), std::move(lock));
}

/// It keeps itself alive until it is settled, which it can't be before it is announced.
void TransferState::end_locked(State state, std::optional<Error> error,
                               std::unique_lock<std::mutex> lock) {
  if (looking_) {
    if (!ends_with_) ends_with_ = std::make_unique<Ending>(Ending{state, std::move(error)});
    return;
  }
  if (error) error_ = std::make_unique<const Error>(std::move(*error));
  const auto now = Clock::now();
  tally_ = {now,     now - submission_.submitted, queued_until(now), bytes_done_, cursor_.runs(),
            retries_};
  arrived_is_placed_ = needs_no_proof();
  host_.transfer_ends(*this);
  state_.store(state, std::memory_order_release);
  lock.unlock();
  host_.transfer_ended(*this);
  if (auto on_end = std::exchange(submission_.on_end, nullptr)) {
    const Ended ended{state, submission_.cookie, error_.get()};
    const InCallback here;
    on_end(ended);
    on_end = nullptr;  // What it holds is destroyed in here too.
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
  const bool lets_go = !std::exchange(let_go_, true);
  const auto self = std::exchange(self_, nullptr);
  lock.unlock();
  if (lets_go) host_.memory_let_go(*this);
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
  if (!submission_.signal) return false;
  const std::lock_guard lock(mutex_);
  return ended() && !signal_raised_;
}

std::optional<Error> TransferState::error() const {
  if (state() == State::done) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return error_ ? std::optional(*error_) : std::nullopt;
}

bool TransferState::wait_ended(Deadline deadline) const {
  if (announced_) return true;
  std::unique_lock lock(mutex_);
  return wait_on(changed_, lock, deadline, [&] { return announced_.load(); });
}

bool TransferState::wait_quiescent(Deadline deadline) const {
  std::unique_lock lock(mutex_);
  return wait_on(changed_, lock, deadline, [&] { return announced_ && outstanding_ == 0; });
}

/// Whether chunks that have come home are placed for sure.
bool TransferState::needs_no_proof() const {
  if (disproven_) return false;
  if (proven() || submission_.transport == TransportKind::bounce) return true;
  if (prepared().direction == Direction::read) return false;
  for (std::size_t rail = 0; rail < shares_.size(); ++rail)
    if (shares_[rail].operations > 0 && host_.proofs_of(*this, rail) > 0) return false;
  return true;
}

std::vector<Placed> TransferState::placed() const {
  const std::lock_guard lock(mutex_);
  std::vector<Span> untouched{{cursor_.walked(), submission_.bytes - cursor_.walked()}};
  std::vector<Span> unknown = losses_ ? losses_->doubtful : std::vector<Span>();
  for (const Chunk& chunk : cut_)
    (chunk.touched ? unknown : untouched).push_back({chunk.at, chunk.length});
  for (const Span& out : out_)
    if (out.length > 0) unknown.push_back(out);
  if (!arrived_is_placed_) unknown = {{0, submission_.bytes}};
  return outcome_of(prepared().pieces, submission_.picked(), std::move(unknown),
                    std::move(untouched));
}

Report TransferState::report() const {
  Report report = own_report();
  enter_copies(prepared(), host_, copied(), report);
  return report;
}

Nanoseconds TransferState::elapsed() const {
  const std::lock_guard lock(mutex_);
  return end_or_now() - submission_.submitted;
}

Report TransferState::own_report() const {
  const std::lock_guard lock(mutex_);
  Report report;
  report.state = state();
  if (error_) report.error = *error_;
  report.bytes = submission_.bytes;
  report.bytes_done = bytes_done_;
  report.ranges = ranges();
  report.runs = cursor_.runs();
  report.operations = operations_;
  report.transport = submission_.transport;
  for (std::size_t rail = 0; rail < shares_.size(); ++rail) {
    if (shares_[rail].operations == 0) continue;
    report.rails.push_back(
        {(*prepared().rail_names)[rail], shares_[rail].operations, shares_[rail].bytes});
  }
  report.fallback = peer().fallback;
  if (prepared().staged && submission_.transport == TransportKind::bounce) {
    if (!report.fallback.empty()) report.fallback += "; ";
    report.fallback += "GPU memory that no NIC reaches is copied through the hosts' memory";
  }
  report.retries = retries_;
  const auto until = end_or_now();
  report.elapsed = until - submission_.submitted;
  report.queued = queued_until(until);
  if (first_out_ != never) report.carried = (last_home_ == never ? until : last_home_) - first_out_;
  return report;
}

}  // namespace weft::core
