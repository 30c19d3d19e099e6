#include "services/grants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/log.hpp"
#include "base/random.hpp"
#include "base/thread.hpp"
#include "control/plane.hpp"
#include "services/outside_callbacks.hpp"
#include "services/published_name.hpp"

namespace weft::core {
namespace {

// What a step of the progress threads gets even if the caller's deadline has passed: it takes
// microseconds, and without it nothing can be said of the memory.
constexpr auto shortest_wait = std::chrono::milliseconds(100);

}  // namespace

Grants::Grants(const Around& around, const OwnedGrants::Tell& tell, Reopen reopen)
    : around_(around),
      reopen_(std::move(reopen)),
      owned_(
          tell,
          [this](std::uint64_t lease, GrantEnd why) {
            around_.directory.withdraw(lease);
            if (around_.ledger) around_.ledger->rare().grant_ended(why);
          },
          [this](LinkId link) { return borrower(link); }),
      keys_(around_.rails, around_.workers, around_.peers, around_.arrivals, owned_, tell) {}

void Grants::open() {
  std::vector<LeaseWords::Reader> readers;
  for (const auto& rail : around_.rails)
    readers.push_back(
        {rail->index(), &rail->endpoint(), [each = rail.get()] { return each->closed(); }});
  lease_words_ = std::make_shared<LeaseWords>(std::move(readers));
}

void Grants::close() {
  keys_.clear();
  owned_.clear();
  lease_words_->close();
}

Result<std::shared_ptr<GrantState>> Grants::grant(const std::shared_ptr<SegmentState>& segment,
                                                  std::span<const Range> ranges, Rights rights,
                                                  Nanoseconds ttl, Keys keys) {
  auto merged = normalise(ranges, segment->size());
  if (!merged) return fail(std::move(merged.error()));
  if (static_cast<unsigned>(rights) < 1 || static_cast<unsigned>(rights) > 3)
    return fail(Code::invalid_argument, "a grant needs the right to read, to write, or both");
  if (includes(rights, Rights::write) && segment->read_only())
    return fail(Code::permission_denied, "the memory is read-only: peers may not write it");
  if (merged->size() > max_granted_ranges)
    return fail(Code::invalid_argument, fmt::format("a grant may have {} ranges, not {}",
                                                    max_granted_ranges, merged->size()));
  if (ttl <= Nanoseconds::zero())
    return fail(Code::invalid_argument, "a grant's time must be above zero");
  if (keys != Keys::automatic && keys != Keys::own)
    return fail(Code::invalid_argument, "there are no such keys for a grant");
  // Until the grant is known: release() waits for it, and finds it.
  const Entered user(segment->users());
  if (!user) return fail(Code::closed, "the segment is being released");
  settle_ended();

  GrantState::Parts parts;
  parts.segment = segment;
  GrantDescription& description = parts.description;
  description.engine = around_.self.name;
  description.incarnation = around_.self.incarnation;
  description.address = around_.self.address;
  description.segment = segment->id();
  description.segment_size = segment->size();
  description.place = segment->place();
  description.block_bytes = segment->block_bytes();
  description.rights = rights;
  description.lease = random_u64();
  description.ttl = ttl;
  description.ranges = std::move(*merged);
  const Lock describing(keys_.describing());
  if (auto described = keys_.describe(parts, keys); !described)
    return fail(std::move(described.error()));
  if (auto described = describe_epoch(parts); !described) return fail(std::move(described.error()));
  auto grant = std::make_shared<GrantState>(std::move(parts));
  owned_.add(grant);
  // One that was opened again since its key was asked for did not know of the grant.
  for (const auto& rail : around_.rails)
    if (rail->openings() > 0) grant->rail_opened(rail->index(), !rail->closed());
  return grant;
}

Result<void> Grants::describe_epoch(GrantState::Parts& grant) {
  auto epoch = lease_words_->take();
  if (!epoch) return fail(std::move(epoch.error()));
  grant.description.epoch = (*epoch)->value();
  for (const RailKey& word : (*epoch)->keys())
    if (grant.segment->served_by(word.rail)) grant.description.epoch_keys.push_back(word);
  grant.epoch = std::move(*epoch);
  return {};
}

/// Closing keys may block, so grants that have come to their end by themselves are settled here
/// rather than where the last holder's word arrives.
void Grants::settle_ended() {
  if (InCallback::now()) return;
  keys_.settle();
  const auto ended = owned_.take_settleable();
  const bool copied = ended.empty() || copies_finished(ended, Deadline::now());
  for (const auto& grant : ended)
    if (!copied || settle(grant, Deadline::now()) != Revoked::quiescent)
      owned_.note_if_settleable(grant);
}

/// Until its holders have confirmed, or can't any more. False if the deadline passed first.
bool Grants::wait_stopped(const GrantState& grant, Deadline deadline) {
  return around_.workers.wait([&](Deadline until) { return grant.wait_confirmed(until); },
                              deadline) &&
         around_.workers.wait([&](Deadline until) { return grant.wait_borrowers_ended(until); },
                              deadline);
}

void Grants::take_back_lent(LinkId link, Deadline deadline) {
  for (const auto& grant : owned_.take_back(link))
    around_.workers.wait([&](Deadline until) { return grant->wait_returned(link, until); },
                         deadline);
}

bool Grants::take_back_all_lent(Deadline deadline) {
  bool all = true;
  // Once more, for a peer that had asked just before the engine began to close.
  for (auto lent = owned_.lent(); all && !lent.empty(); lent = owned_.lent()) {
    for (const auto& grant : lent) owned_.end(*grant, GrantEnd::revoked);
    for (const auto& grant : lent) all = wait_stopped(*grant, deadline) && all;
  }
  return all;
}

Result<void> Grants::renew(GrantState& grant, Nanoseconds ttl) {
  if (ttl <= Nanoseconds::zero())
    return fail(Code::invalid_argument, "a grant's time must be above zero");
  if (!owned_.renew(grant, ttl)) return fail(Code::stale, "the grant holds no more");
  return {};
}

Result<Revoked> Grants::revoke(const std::shared_ptr<GrantState>& grant, Deadline deadline) {
  if (auto outside = check_outside_callbacks(); !outside) return fail(std::move(outside.error()));
  // From here on the bounce-buffer transport refuses it, no lookup finds it, and its holders are
  // asked to stop.
  owned_.end(*grant, GrantEnd::revoked);
  if (grant->binding()) wait_stopped(*grant, deadline);
  // What was abandoned in the bounce-buffer transport is as good as a writer that does not answer.
  return copies_finished({&grant, 1}, deadline) ? settle(grant, deadline) : Revoked::quarantined;
}

/// The bounce-buffer transport copies on the progress threads, and the hasher reads: a step of each
/// and a slice later, what had begun has ended, but for what devices copy. And what peers had sent
/// by now has been carried out: no key is closed before.
bool Grants::copies_finished(std::span<const std::shared_ptr<GrantState>> ended, Deadline latest) {
  const auto deadline = Deadline::at(std::max(latest.when(), Clock::now() + shortest_wait));
  for (const auto& grant : ended)
    if (!around_.workers.wait([&](Deadline until) { return grant->copying().wait_idle(until); },
                              deadline))
      return false;
  return around_.hasher.settle(deadline) && around_.workers.take_in_arrivals(deadline);
}

/// How a grant stands that was ended, once copies_finished(). A holder that is gone is kept out, if
/// those of other grants stop using the keys that it had by the deadline.
Revoked Grants::settle(const std::shared_ptr<GrantState>& grant, Deadline deadline) {
  if (!grant->over() && grant->settleable())
    keys_.cut_off(*grant, deadline, PeerKeys::Bystanders::drain);
  const Revoked revoked = grant->settle();
  // A reader's word may have come since: then its keys are still open, and it is settled again.
  if (grant->spent()) owned_.forget(*grant);
  return revoked;
}

Result<Revoked> Grants::fence(const std::shared_ptr<GrantState>& grant, Deadline deadline,
                              FenceScope reach) {
  const auto unfenced = grant->unfenced_rails();
  if (!unfenced.empty() && reach != FenceScope::rail)
    return fail(Code::unsupported,
                "a rail of this grant's can't cut off one grant alone (Capability::fence): its "
                "memory is safe once its holders have confirmed, the rail was closed and opened "
                "again (FenceScope::rail), or the engine is closed");
  if (auto outside = check_outside_callbacks(); !outside) return fail(std::move(outside.error()));
  for (const std::uint32_t rail : unfenced)
    if (!around_.rails[rail]->endpoint().reopens())
      return fail(Error(Code::unsupported, "a rail of this grant's can't be opened again")
                      .with_rail(around_.rails[rail]->name()));
  owned_.end(*grant, GrantEnd::fenced);
  for (const std::uint32_t rail : unfenced)
    if (auto reopened = reopen_(*around_.rails[rail], deadline); !reopened && !grant->keys_fence())
      return fail(std::move(reopened.error()));
  grant->cut_all();
  // False if a peer is within a copy that this did not end: settle() finds it unconfirmed.
  std::ignore = keys_.cut_off(*grant, deadline, PeerKeys::Bystanders::may_lose);
  std::ignore = grant->fence();
  return copies_finished({&grant, 1}, deadline) ? settle(grant, deadline) : Revoked::quarantined;
}

Result<void> Grants::release(SegmentState& segment, Deadline deadline) {
  if (auto outside = check_outside_callbacks(); !outside) return outside;
  segment.users().close();
  for (const auto& grant : owned_.of_segment(segment)) owned_.end(*grant, GrantEnd::released);
  const bool unused = around_.workers.wait(
      [&](Deadline until) { return segment.users().wait_idle(until); }, deadline);
  // With those that were made while the segment was being closed.
  for (const auto& grant : owned_.of_segment(segment)) {
    owned_.end(*grant, GrantEnd::released);
    wait_stopped(*grant, deadline);
  }
  const auto grants = owned_.of_segment(segment);
  const bool copied = copies_finished(grants, deadline);
  if (copied)
    for (const auto& grant : grants) settle(grant, deadline);
  if (!unused)
    return fail(Code::quarantined,
                "operations of this engine's transfers still use the segment: the memory stays "
                "registered and must not be reused");
  if (const auto left = owned_.of_segment(segment); !left.empty())
    return fail(left.front()->why_quarantined());
  if (!copied)
    return fail(Code::quarantined,
                "copies of the segment have not ended in time: the memory stays registered and "
                "must not be reused");
  segment.unregister();
  return {};
}

Result<void> Grants::publish(std::string_view name, const std::shared_ptr<GrantState>& grant) {
  if (auto named = check_published_name(name); !named) return named;
  if (owned_.find(grant->description().lease) != grant)
    return fail(Code::stale, "the grant holds no more, or is another engine's");
  const std::uint64_t lease = grant->description().lease;
  const Blob blob = encode_grant(grant->current());
  for (const auto& asker : around_.directory.publish(std::string(name), blob, lease))
    around_.control->send(asker.link, LookupReply{asker.request, blob});
  // It may have ended just now.
  if (!grant->held()) around_.directory.withdraw(lease);
  return {};
}

/// The process that memory may be lent to over that link.
Result<Process> Grants::borrower(LinkId link) const {
  if (around_.gate.closing()) return fail(Code::unsupported, "the owner is closing");
  if (!around_.config.share_gpu_memory)
    return fail(Code::unsupported, "the owner shares no GPU memory (share_gpu_memory)");
  const auto peer = around_.peers.find(link);
  if (!peer || !peer->same_host) return fail(Code::unsupported, "another host");
  return peer->process ? peer->process->watch() : Process::of(peer->introduction.pid);
}

void Grants::take(const PeerState& peer, LookupRequest&& notice) {
  auto found = around_.directory.ask(notice.name, {peer.link, notice.request});
  if (!found) {
    log(LogLevel::warning, "peer {}: {}", peer.introduction.name, found.error().to_string());
    return;
  }
  if (*found) around_.control->send(peer.link, LookupReply{notice.request, std::move(**found)});
}

void Grants::take(const PeerState& peer, const LookupAbandoned& notice) {
  around_.directory.forget({peer.link, notice.request});
}

void Grants::take(const PeerState& peer, const RevokeConfirmed& notice) {
  owned_.take(peer.link, notice);
}

void Grants::take(const PeerState& peer, const KeysDrained& notice) {
  keys_.take(peer.link, notice);
}

void Grants::link_down(LinkId link) {
  keys_.link_down(link);
  owned_.link_down(link);
}

void Grants::take(const PeerState& peer, const GrantQuery& notice) {
  GrantState::RailNumbers rails;
  for (const auto& route : peer.routes) rails.insert(route->rail->index());
  owned_.take(peer.link, notice, std::move(rails));
}

}  // namespace weft::core
