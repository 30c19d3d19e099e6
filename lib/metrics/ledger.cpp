#include "metrics/ledger.hpp"

#include "peer/peer_state.hpp"
#include "transfer/transfer_state.hpp"

namespace weft::core {
namespace {

PathKind path_kind_of(const TransferState& transfer) {
  const PreparedState& prepared = transfer.prepared();
  return {prepared.direction, transfer.submission().transport,
          prepared.local->place().kind == MemoryKind::device,
          prepared.remote->description().place.kind == MemoryKind::device,
          transfer.peer().same_host};
}

}  // namespace

void Ledger::enter(const TransferState& transfer) {
  const TransferState::Tally& tally = transfer.tally();
  const Submission& submission = transfer.submission();
  EndedTransfer ended;
  ended.state = transfer.state();
  ended.priority = submission.priority;
  ended.path = path_kind_of(transfer);
  ended.elapsed = tally.elapsed;
  ended.queued = tally.queued;
  ended.bytes = submission.bytes;
  ended.bytes_done = tally.bytes_done;
  ended.copied = transfer.copied();
  ended.ranges = transfer.ranges();
  ended.runs = tally.runs;
  ended.retries = tally.retries;
  counters_.add(transfer.rails().front(), ended);
  if (!slowest_.wants(tally.elapsed, tally.ended_at)) return;
  slowest_.add({transfer.peer().introduction.name, ended.path.direction, ended.priority,
                tally.ended_at, transfer.own_report()});
}

}  // namespace weft::core
