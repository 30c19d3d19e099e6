// A transfer: what it says of itself.
#include "peer/peer_state.hpp"
#include "transfer/report.hpp"
#include "transfer/transfer_state.hpp"

namespace weft::core {

namespace {

/// In the words of each side whose memory is a file.
std::string why_by_file(const PreparedState& prepared) {
  std::string why = "through bounce buffers:";
  const auto& ours = prepared.path->rails();
  if (is_file(prepared.local->place().kind) && !ours.empty())
    why += " the local memory is " + prepared.local->why_staged(ours.front());
  if (!is_file(prepared.remote->description().place.kind)) return why;
  if (is_file(prepared.local->place().kind)) why += ", and";
  const auto& bounced = prepared.remote->description().bounced;
  return why + " the peer's is " + (bounced.empty() ? "a file" : bounced.front().why);
}

std::string why_staged(const PreparedState& prepared) {
  const Place& remote = prepared.remote->description().place;
  if (is_file(prepared.local->place().kind) || is_file(remote.kind)) return why_by_file(prepared);
  const bool devices = prepared.local->place().kind == MemoryKind::device ||
                       prepared.remote->description().place.kind == MemoryKind::device;
  if (!devices)
    return "memory of the peer's that this process can't map is sent as messages: Memory::shared "
           "is mapped";
  std::string why = "GPU memory that no NIC reaches is copied through the hosts' memory";
  if (prepared.remote->peer()->same_host && !prepared.not_lent.empty())
    why += ", not from GPU to GPU: " + prepared.not_lent;
  return why;
}

}  // namespace

bool TransferState::quiescent() const {
  if (phase() == Phase::settled) return true;
  const Lock lock(mutex_);
  return outstanding_ == 0 && (ended() || cancel_asked_);
}

std::optional<Error> TransferState::error() const {
  if (!ended() || !error_) return std::nullopt;
  return *error_;
}

bool TransferState::signal_withheld() const {
  return submission_.signal && ended() && ended_in_ < Phase::signalling;
}

std::vector<Placed> TransferState::placed() const {
  const Lock lock(mutex_);
  ChunkTable::Gaps gaps = chunks_.gaps(submission_.bytes);
  if (!ended() || !placed_for_sure_) gaps.unknown = {{0, submission_.bytes}};
  return outcome_of(prepared().pieces, submission_.picked(), std::move(gaps.unknown),
                    std::move(gaps.untouched));
}

Report TransferState::report() const {
  Report report = own_report();
  enter_copies(prepared(), host_, copied(), report);
  return report;
}

Report TransferState::own_report() const {
  const Lock lock(mutex_);
  Report report;
  report.state = state();
  report.error = error();
  report.bytes = submission_.bytes;
  report.bytes_done = bytes_done_;
  report.ranges = ranges();
  report.runs = chunks_.runs();
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
    report.fallback += why_staged(prepared());
  }
  report.retries = retries_;
  const auto until = end_or_now();
  report.elapsed = until - submission_.submitted;
  report.queued = queued_until(until);
  if (first_out_ != never) report.carried = (last_home_ == never ? until : last_home_) - first_out_;
  return report;
}

}  // namespace weft::core
