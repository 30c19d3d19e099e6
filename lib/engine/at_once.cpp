// Engine: transfers that the thread copies which submits them, where memory is mapped.
#include <atomic>

#include "base/callback.hpp"
#include "engine/engine_state.hpp"
#include "transfer/copied_transfer.hpp"

namespace weft::core {
namespace {

/// Threads begin with different rails, each of which copies for one of them at a time.
std::size_t number_of_this_thread() {
  static std::atomic<std::size_t> threads{0};
  static thread_local const std::size_t mine = threads++;
  return mine;
}

}  // namespace

/// Most bytes that its caller copies, whatever else is under way.
std::uint64_t EngineState::always_at_once(Priority priority) const {
  switch (priority) {
    case Priority::latency:
      return config_.copy_at_once_bytes;
    case Priority::normal:
      return config_.copy_at_once_bytes / 4;
    case Priority::bulk:
      break;
  }
  return 0;
}

/// Whether the application has nothing else under way, and has looked at the end of what it had, or
/// let go of it: as far as can be told it waits for this one, and no other thread would get on with
/// anything meanwhile. Who asks for events may never look at a transfer.
bool EngineState::waits_for_each(const TransferOptions& options) const {
  if (options.priority != Priority::normal) return false;
  if (config_.progress == Progress::manual) return true;
  return !options.event && transfer_seats_.taken() == 1 && !unseen_->any();
}

/// Whether the caller copies it, if that is how it is moved: not what is in many pieces, whose
/// deadline would pass unseen. A callback must not wait, and may be called by such a transfer
/// itself.
bool EngineState::at_once(const Asked& asked) const {
  constexpr std::size_t most_pieces = 16;
  const auto& rails = asked.prepared->path->rails();
  return asked.bytes > 0 && asked.bytes <= config_.copy_at_once_bytes &&
         asked.ranges() <= most_pieces && asked.transport == TransportKind::one_sided &&
         asked.options.after_cuda_event == nullptr && asked.begun < asked.deadline &&
         asked.begun < asked.prepared->remote->expires() &&
         rails_[rails.front()]->endpoint().capability().maps_memory && !InCallback::now() &&
         (asked.bytes <= always_at_once(asked.options.priority) || waits_for_each(asked.options));
}

/// Whether all its bytes are in their place, for everybody to see, and nothing follows.
bool EngineState::is_over(const Asked& asked, const AtOnce& done) const {
  const PreparedState& prepared = *asked.prepared;
  if (done.copied.bytes < asked.bytes || asked.options.signal || asked.options.verify) return false;
  if (prepared.direction == Direction::read)
    return done.copied.proven && !prepared.local->device().needs_flush();
  return rails_[done.rail]->endpoint().capability().proof == CompletionProof::visible;
}

EngineState::AtOnce EngineState::copy_at_once(const Asked& asked) {
  const PreparedState& prepared = *asked.prepared;
  const auto& rails = prepared.path->rails();
  for (std::size_t i = 0; i < rails.size(); ++i) {
    const std::size_t rail = rails[(number_of_this_thread() + i) % rails.size()];
    if (prepared.path->of(rail)->route->is_aside(asked.submitted) || rails_[rail]->away()) continue;
    return {rail, rails_[rail]->copy_at_once(prepared, asked.picks, hooks_.trusts_reads)};
  }
  return {};
}

/// One that is over. It leaves its seat before anybody is told.
std::shared_ptr<Submitted> EngineState::ended_at_once(const Asked& asked, const AtOnce& done,
                                                      Seat& seat) {
  const TransferOptions& options = asked.options;
  auto transfer = std::make_shared<CopiedTransfer>(
      CopiedTransfer::Facts{asked.prepared, asked.ranges(), options.priority, asked.submitted,
                            Clock::now(), done.rail, done.copied},
      *this);
  if (ledger_) ledger_->enter(*transfer);
  seat.leave();
  ended_unseen(asked.submitted, asked.bytes);
  if (options.event)
    events_.push({Event::Kind::transfer_ended, options.cookie, State::done,
                  transfer->prepared().remote->peer()->introduction.name, std::nullopt});
  if (options.on_end) {
    const InCallback here;
    options.on_end({State::done, options.cookie, nullptr});
  }
  return transfer;
}

/// It has ended before the application has it. Small ones ask nobody whether they are waited for.
void EngineState::ended_unseen(Clock::time_point submitted, std::uint64_t bytes) {
  if (bytes > always_at_once(Priority::normal)) unseen_->note(submitted);
}

}  // namespace weft::core
