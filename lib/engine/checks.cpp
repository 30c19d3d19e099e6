// Engine: the check of a transfer's bytes at both ends.
#include "engine/engine_state.hpp"

namespace weft::core {
namespace {

/// Parts that one peer may have hashed here at a time. It asks for less: Checks::at_a_time.
constexpr std::size_t most_parts = 64;

Error refusal(Code code) {
  return Error(code, "the peer's question can't be answered");
}

}  // namespace

Result<void> EngineState::check_verifiable(const PreparedState& prepared) const {
  const PeerState& peer = *prepared.remote->peer();
  if (!prepared.local->device().hashes())
    return fail(Code::unsupported, "the local memory is of a kind that can't be verified");
  if (!peer.introduction.checks)
    return fail(
        Error(Code::unsupported, "the peer's version of the library does not verify transfers")
            .with_peer(peer.introduction.name));
  return {};
}

void EngineState::verify(const std::shared_ptr<TransferState>& transfer) {
  checks_.start(transfer);
}

void EngineState::handle(PeerState& peer, CheckReply&& notice) {
  checks_.answered(peer.link, notice);
}

/// What the owner of granted memory hashes for a peer. Either right is enough: who writes has to
/// know what has arrived.
Result<Hasher::Job> EngineState::job_for(const std::shared_ptr<PeerState>& peer,
                                         const CheckRequest& notice) {
  if (peer->checked_parts >= most_parts) return fail(refusal(Code::queue_full));
  const auto grant = owned_.find(notice.lease);
  if (!grant) return fail(refusal(Code::stale));
  const SegmentState& segment = grant->segment();
  if (!segment.device().hashes()) return fail(refusal(Code::unsupported));
  std::uint64_t bytes = 0;
  for (const Range& range : notice.ranges) {
    if (!covered_by(grant->description().ranges, range.offset, range.length))
      return fail(refusal(Code::permission_denied));
    if (__builtin_add_overflow(bytes, range.length, &bytes) || bytes > Checks::part)
      return fail(refusal(Code::invalid_argument));
  }
  Hasher::Job job;
  job.device = &segment.device();
  job.base = segment.address();
  job.ranges = notice.ranges;
  // While it holds the memory does too: revoke() waits for a slice under way.
  job.wanted = [this, peer, grant] {
    return peer->up() && owned_.find(grant->description().lease) == grant;
  };
  job.done = [this, peer, request = notice.request](std::optional<std::uint64_t> hash) {
    --peer->checked_parts;
    control_->send(peer->link, CheckReply{request, hash ? Code{} : Code::stale, hash.value_or(0)});
  };
  return job;
}

void EngineState::handle(PeerState& peer, CheckRequest&& notice) {
  const auto added = job_for(peers_.find(peer.link), notice).and_then([&](Hasher::Job&& job) {
    // Before it may be done.
    ++peer.checked_parts;
    auto taken = hasher_.add(std::move(job));
    if (!taken) --peer.checked_parts;
    return taken;
  });
  if (!added) control_->send(peer.link, CheckReply{notice.request, added.error().code(), 0});
}

}  // namespace weft::core
