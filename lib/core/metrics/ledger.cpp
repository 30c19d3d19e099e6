#include "metrics/ledger.hpp"

#include "peer/peer_state.hpp"
#include "transfer/copied_transfer.hpp"
#include "transfer/transfer_state.hpp"

namespace weft::core {
namespace {

PathKind path_kind_of(const PreparedState& prepared, TransportKind transport) {
  return {prepared.direction, transport, prepared.local->place().kind,
          prepared.remote->description().place.kind, prepared.remote->peer()->same_host};
}

}  // namespace

void Ledger::enter(const TransferState& transfer) {
  const TransferState::Tally& tally = transfer.tally();
  const Submission& submission = transfer.submission();
  EndedTransfer ended;
  ended.state = transfer.state();
  ended.priority = submission.priority;
  ended.path = path_kind_of(transfer.prepared(), submission.transport);
  ended.elapsed = tally.elapsed;
  ended.queued = tally.queued;
  ended.bytes = submission.bytes;
  ended.bytes_done = tally.bytes_done;
  ended.copied = transfer.copied();
  ended.ranges = transfer.ranges();
  ended.runs = tally.runs;
  ended.retries = tally.retries;
  enter(transfer, transfer.rails().front(), ended, tally.ended_at);
  if (ended.state != State::done) rare_.transfer_failed(transfer.error()->code());
}

void Ledger::enter(const CopiedTransfer& transfer) {
  const CopiedTransfer::Facts& facts = transfer.facts();
  EndedTransfer ended;
  ended.priority = facts.priority;
  ended.path = path_kind_of(*facts.prepared, TransportKind::one_sided);
  ended.elapsed = facts.ended - facts.submitted;
  ended.bytes = ended.bytes_done = facts.copied.bytes;
  ended.copied = facts.prepared->own_copies(facts.copied.bytes);
  ended.ranges = facts.ranges;
  ended.runs = facts.copied.runs;
  enter(transfer, facts.rail, ended, facts.ended);
}

template <typename Transfer>
void Ledger::enter(const Transfer& transfer, std::size_t rail, const EndedTransfer& ended,
                   Clock::time_point when) {
  counters_.add(rail, ended);
  const PeerState& peer = *transfer.prepared().remote->peer();
  if (peer.traffic) peer.traffic->add_own(rail, ended.path.direction, ended.bytes_done);
  if (!slowest_.wants(ended.elapsed, when)) return;
  slowest_.add(
      {peer.introduction.name, ended.path.direction, ended.priority, when, transfer.own_report()});
}

}  // namespace weft::core
