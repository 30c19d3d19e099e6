// Engine: transfers that the thread copies which submits them, or waits for them, where memory is
// mapped.
#include <algorithm>
#include <limits>

#include "base/callback.hpp"
#include "base/thread_number.hpp"
#include "engine/transfers.hpp"
#include "transfer/copied_transfer.hpp"

namespace weft::core {
namespace {

std::uint64_t times(std::uint64_t bytes, std::uint64_t factor) {
  return std::min(bytes, std::numeric_limits<std::uint64_t>::max() / factor) * factor;
}

}  // namespace

/// Most bytes that its caller hands over, or copies, whatever else is under way.
std::uint64_t Transfers::always_at_once(Priority priority) const {
  switch (priority) {
    case Priority::latency:
      return config_.inline_copy_bytes;
    case Priority::normal:
      return config_.inline_copy_bytes / 4;
    case Priority::bulk:
      break;
  }
  return 0;
}

/// Of what is mapped: where there is one rail its thread helps the caller, and nobody else would
/// copy either.
std::uint64_t Transfers::always_at_once(const Asked& asked) const {
  const TransferOptions& options = asked.options;
  const bool helped = asked.prepared->path->rails().size() == 1;
  if (helped && options.priority == Priority::normal && !options.event)
    return config_.inline_copy_bytes;
  return always_at_once(options.priority);
}

/// Whether the application has nothing else under way, and has looked at the end of what it had, or
/// let go of it: as far as can be told it waits for this one, and no other thread would get on with
/// anything meanwhile. Who asks for events may never look at a transfer.
bool Transfers::waits_for_each(const TransferOptions& options) const {
  if (options.priority != Priority::normal) return false;
  if (config_.progress == Progress::manual) return true;
  return !options.event && admission_.taken() == 1 && !attention_->any_unseen();
}

/// Whether nothing has to be waited for first, and the rails can do what their caller asks for. A
/// callback must not wait, and may be called by such a transfer itself.
bool Transfers::caller_may_copy(const Asked& asked) const {
  const auto& rails = asked.prepared->path->rails();
  return asked.bytes > 0 && asked.transport == TransportKind::one_sided &&
         asked.options.after_cuda_event == nullptr && asked.begun < asked.deadline &&
         asked.begun < asked.prepared->remote->expires() &&
         rails_[rails.front()]->capability().maps_memory && !InCallback::now();
}

/// Most bytes that the caller copies where it waits for each: with who polls to help it as many as
/// two rails' threads would not carry any faster.
std::uint64_t Transfers::at_once_if_waited_for() const {
  const std::uint64_t bytes = config_.inline_copy_bytes;
  return config_.progress == Progress::manual ? bytes : times(bytes, 4);
}

/// Most where it was also seen to wait as soon as it has submitted something: it loses nothing by a
/// submit() that takes as long as the wait would. With who polls to help it, it is no slower than
/// two rails' threads.
std::uint64_t Transfers::at_once_if_promptly_waited_for(const PreparedState& prepared) const {
  const std::uint64_t bytes = at_once_if_waited_for();
  const bool more = config_.progress == Progress::threads && prepared.path->rails().size() <= 2;
  return more ? times(bytes, 16) : bytes;
}

/// Whether the caller lets the kernel copy all of it, as the rail's thread would: nobody helps
/// either of them, so that it saves no more than handing it over, and that only if nothing follows.
bool Transfers::at_once_by_kernel(const Asked& asked) const {
  const TransferOptions& options = asked.options;
  if (options.signal || options.verify) return false;
  return options.priority == Priority::latency
             ? asked.bytes <= always_at_once(Priority::latency)
             : asked.bytes <= at_once_if_waited_for() && waits_for_each(options);
}

/// Whether the caller copies all of it: not what is in many pieces, whose deadline would pass
/// unseen.
bool Transfers::at_once(const Asked& asked) const {
  constexpr std::size_t most_pieces = 16;
  if (asked.bytes > at_once_if_promptly_waited_for(*asked.prepared) ||
      asked.ranges() > most_pieces || !caller_may_copy(asked))
    return false;
  if (!asked.prepared->mapped) return at_once_by_kernel(asked);
  if (asked.bytes <= always_at_once(asked)) return true;
  return waits_for_each(asked.options) &&
         (asked.bytes <= at_once_if_waited_for() || attention_->waits_promptly());
}

/// Whether all its bytes are in their place, for everybody to see, and nothing follows.
bool Transfers::is_over(const Asked& asked, const AtOnce& done) const {
  const PreparedState& prepared = *asked.prepared;
  if (done.copied.bytes < asked.bytes || asked.options.signal || asked.options.verify) return false;
  if (prepared.direction == Direction::read)
    return done.copied.proven && !prepared.local->device().needs_flush();
  return rails_[done.rail]->capability().proof == CompletionProof::visible;
}

/// By whose endpoint this thread copies: threads begin with different rails, each of which copies
/// for a few of them at a time.
std::optional<std::size_t> Transfers::rail_to_copy_by(const PreparedState& prepared,
                                                      Clock::time_point now) const {
  const auto& rails = prepared.path->rails();
  const std::size_t first = rails.size() > 1 ? thread_number() % rails.size() : 0;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    const std::size_t rail = rails[(first + i) % rails.size()];
    if (!prepared.path->of(rail)->route->is_aside(now) && !rails_[rail]->away()) return rail;
  }
  return std::nullopt;
}

Transfers::AtOnce Transfers::copy_at_once(const Asked& asked) {
  const PreparedState& prepared = *asked.prepared;
  const auto rail = rail_to_copy_by(prepared, asked.submitted);
  if (!rail) return {};
  const auto until = std::min(asked.deadline, prepared.remote->expires());
  return {*rail, rails_[*rail]->copy_at_once(prepared, asked.picks, hooks_.trusts_reads, until)};
}

/// Whether threads that wait may copy of it, beside the one that owns its only rail: several of
/// those need the memory's whole bandwidth. Of those in small pieces two threads would often wait
/// for each other.
bool Transfers::waiter_may_copy(const Asked& asked, std::span<const std::size_t> rails) const {
  constexpr std::uint64_t least_pieces = std::uint64_t{64} << 10;
  return rails.size() == 1 && config_.progress == Progress::threads && asked.prepared->mapped &&
         config_.inline_copy_bytes > 0 && asked.bytes > least_open_to_waiters(*asked.prepared) &&
         asked.bytes / asked.ranges() >= least_pieces && caller_may_copy(asked);
}

/// Of smaller ones too little is left once somebody waits for them, but for those that wait in a
/// row for the only rail.
std::uint64_t Transfers::least_open_to_waiters(const PreparedState& prepared) const {
  return prepared.path->rails().size() == 1 ? always_at_once(Priority::normal)
                                            : at_once_if_waited_for();
}

/// Of what nobody has begun to copy yet. Returns its bytes; 0: there is none, or it can't.
std::uint64_t Transfers::copy_some(TransferState& transfer) {
  const auto index = rail_to_copy_by(transfer.prepared(), Clock::now());
  if (!index) return 0;
  Rail& rail = *rails_[*index];
  const auto chunk = transfer.take_waiting(rail.chunk_limit());
  if (!chunk) return 0;
  if (!rail.copy_at_once(transfer.prepared(), *chunk)) {
    transfer.give_back(*chunk);
    return 0;
  }
  transfer.count_copied(chunk->length);
  // A proof is for those who have turns.
  if (const auto proof = transfer.completed(*index, *chunk)) transfer.give_back(*proof);
  return chunk->length;
}

/// A call of the application's, for which closing waits. Once nothing of it is left to copy, others
/// get on. What this thread can't copy is left to the rail's: each turn copies something, or there
/// is one less.
void Transfers::take_part(TransferState& transfer, Deadline deadline) {
  if (!transfer.submission().waiter_takes_part || InCallback::now()) return;
  const CallGate::Call call(gate_);
  if (call.refused()) return;
  bool others = false;
  while (!transfer.ended() && !deadline.passed()) {
    if (!others && copy_some(transfer) > 0) continue;
    others = true;
    const auto first = open_to_waiters_.first();
    if (!first) return;
    if (copy_some(*first) == 0) open_to_waiters_.remove(*first);
  }
}

/// One that is over. It leaves its slot before anybody is told.
std::shared_ptr<Submitted> Transfers::ended_at_once(const Asked& asked, const AtOnce& done,
                                                    AdmissionSlot& slot) {
  const TransferOptions& options = asked.options;
  auto transfer = std::make_shared<CopiedTransfer>(
      CopiedTransfer::Facts{asked.prepared, asked.ranges(), options.priority, asked.submitted,
                            Clock::now(), done.rail, done.copied},
      *this);
  if (ledger_) ledger_->enter(*transfer);
  slot.leave();
  ended_unseen(asked);
  if (options.event)
    events_.push({Event::Kind::transfer_ended, options.cookie, State::done,
                  transfer->prepared().remote->peer()->introduction.name, std::nullopt});
  if (options.on_end) {
    const InCallback here;
    options.on_end({State::done, options.cookie, nullptr});
  }
  return transfer;
}

/// It has ended before the application has it. Small ones that are mapped ask nobody whether they
/// are waited for.
void Transfers::ended_unseen(const Asked& asked) {
  if (!asked.prepared->mapped || asked.bytes > always_at_once(Priority::normal))
    attention_->note_unseen(asked.submitted);
}

}  // namespace weft::core
