#include "services/verification.hpp"

#include <utility>

#include "base/log.hpp"
#include "control/plane.hpp"

namespace weft::core {
namespace {

/// Parts that one peer may have hashed here at a time. A peer asks for less: Checks::at_a_time.
constexpr std::size_t most_parts = 64;

}  // namespace

Verification::Verification(Hasher& hasher, const Rails& rails, const Grants& grants,
                           const PeerTable& peers, const std::shared_ptr<ControlPlane>& control)
    : hasher_(hasher),
      grants_(grants),
      peers_(peers),
      control_(control),
      checks_(
          hasher,
          [&control](LinkId link, CheckRequest request) {
            control->send(link, std::move(request));
          },
          [&rails](const TransferState& transfer, std::function<void()> task) {
            rails[transfer.rails().front()]->worker().post(std::move(task));
          }) {}

/// What the owner of granted memory hashes for a peer.
Result<Hasher::Job> Verification::job_for(const std::shared_ptr<PeerState>& peer,
                                          const CheckRequest& notice) {
  if (peer->checked_parts >= most_parts)
    return fail(Code::queue_full, "too many hash requests under way");
  const auto grant = grants_.find(notice.lease);
  if (!grant) return fail(Code::stale, "the grant was revoked");
  const SegmentState& segment = grant->segment();
  if (auto may = answerable(notice, grant->description().ranges); !may)
    return fail(std::move(may.error()));
  Hasher::Job job;
  job.device = &segment.device();
  job.base = segment.address();
  job.ranges = notice.ranges;
  // While it holds the memory does too: revoke() waits for a slice under way.
  job.wanted = [peer, grant] { return peer->up() && grant->held(); };
  job.done = [this, peer, request = notice.request](const Result<std::uint64_t>& hash) {
    --peer->checked_parts;
    control_->send(peer->link,
                   CheckReply{request, hash ? Code{} : hash.error().code(), hash.value_or(0)});
  };
  return job;
}

void Verification::take(PeerState& peer, const CheckRequest& notice) {
  const auto added = job_for(peers_.find(peer.link), notice).and_then([&](Hasher::Job&& job) {
    // Before it may be done.
    ++peer.checked_parts;
    auto taken = hasher_.add(std::move(job));
    if (!taken) --peer.checked_parts;
    return taken;
  });
  if (added) return;
  log(LogLevel::debug, "peer {} asks to check a transfer: {}", peer.introduction.name,
      added.error().to_string());
  control_->send(peer.link, CheckReply{notice.request, added.error().code(), 0});
}

}  // namespace weft::core
