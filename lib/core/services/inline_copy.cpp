#include "services/inline_copy.hpp"

#include "base/thread.hpp"

namespace weft::core {

InlineCopy::InlineCopy(const Options& options, const Rails& rails)
    : options_(options),
      small_(waited_inline({.inline_bytes = options.most_bytes, .drives = options.caller_drives})),
      rails_(rails),
      predictor_(std::make_shared<WaitPredictor>(small_)) {}

/// Small ones that are mapped are copied whether they are waited for or not. They leave alone what
/// other threads write.
bool InlineCopy::depends_on_waits(const TransferShape& shape) const {
  return !shape.mapped || shape.bytes > always_inline(Priority::normal, options_.most_bytes);
}

Caller InlineCopy::caller(const TransferShape& shape, const Admission& admission) const {
  const bool asks = depends_on_waits(shape);
  return {.inline_bytes = options_.most_bytes,
          .drives = options_.caller_drives,
          .in_callback = InCallback::now(),
          .idle = asks && admission.taken() == 1 && !predictor_->any_unseen(),
          .prompt = asks && predictor_->prompt()};
}

std::optional<InlineCopy::Done> InlineCopy::submit(const TransferShape& shape, const RailPlan& rail,
                                                   const Caller& caller, const Request& request) {
  const InlineCopies copies = copies_inline(shape, rail, caller);
  if (copies == InlineCopies::none) return std::nullopt;
  if (copies == InlineCopies::on_trust) predictor_->believed();
  const auto by = rail_to_copy_by(request.prepared, request.submitted);
  if (!by) return std::nullopt;
  return Done{*by, rails_[*by]->copy_inline(request.prepared, request.picks, options_.trusts_reads,
                                            request.until)};
}

void InlineCopy::ended_unseen(const TransferShape& shape, Clock::time_point submitted) {
  if (depends_on_waits(shape)) predictor_->note_unseen(submitted);
}

void InlineCopy::at_hand(TransferState& transfer) const {
  if (transfer.submission().bytes > small_) transfer.at_hand();
}

/// Threads begin with different rails, each of which copies for a few threads at a time.
std::optional<std::size_t> InlineCopy::rail_to_copy_by(const PreparedState& prepared,
                                                       Clock::time_point now) const {
  const auto& rails = prepared.path->rails();
  const std::size_t first = rails.size() > 1 ? thread_number() % rails.size() : 0;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    const std::size_t rail = rails[(first + i) % rails.size()];
    if (!prepared.path->of(rail)->route->is_aside(now) && !rails_[rail]->away()) return rail;
  }
  return std::nullopt;
}

/// Copies a chunk that no thread has begun. Returns its bytes; 0: there is none, or it can't.
std::uint64_t InlineCopy::copy_some(TransferState& transfer) {
  const auto index = rail_to_copy_by(transfer.prepared(), Clock::now());
  if (!index) return 0;
  Rail& rail = *rails_[*index];
  const auto chunk = transfer.take_one(*index, rail.plan().chunk);
  if (!chunk) return 0;
  if (!rail.copy_inline(transfer.prepared(), *chunk)) {
    transfer.give_back(*chunk);
    return 0;
  }
  transfer.count_copied(chunk->length);
  // Rails carry proofs.
  if (const auto proof = transfer.completed(*index, *chunk)) transfer.give_back(*proof);
  return chunk->length;
}

/// What this thread can't copy is left to the rail's: each turn copies something, or there is one
/// transfer less.
void InlineCopy::help(TransferState& transfer, Deadline deadline) {
  bool others = false;
  while (!transfer.ended() && !deadline.passed()) {
    if (!others && copy_some(transfer) > 0) continue;
    others = true;
    const auto first = open_.first();
    if (!first) return;
    if (copy_some(*first) == 0) open_.remove(*first);
  }
}

}  // namespace weft::core
