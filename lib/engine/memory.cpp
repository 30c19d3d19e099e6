// Engine: segments and grants.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/callback.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "engine/engine_state.hpp"
#include "topo/machine.hpp"

namespace weft::core {
namespace {

constexpr std::size_t max_published_name = 255;

// What a step of the progress threads gets even if the caller's deadline has passed: it takes
// microseconds, and without it nothing can be said of the memory.
constexpr auto shortest_wait = std::chrono::milliseconds(100);

// Of the rails of one progress thread, while peers never stop sending.
constexpr auto longest_take_in = std::chrono::milliseconds(10);

// For pinning a rail's bounce buffers, some megabytes: far more than any driver takes.
constexpr auto longest_pinning = std::chrono::seconds(10);

providers::Access access_of(Rights rights) {
  switch (rights) {
    case Rights::read:
      return providers::Access::remote_read;
    case Rights::write:
      return providers::Access::remote_write;
    case Rights::read_write:
      break;
  }
  return providers::Access::remote_read_write;
}

/// What waits for progress threads would wait for itself there.
Result<void> check_outside_callbacks() {
  if (!InCallback::now()) return {};
  return fail(Code::invalid_argument, "this can't be called from a callback: it waits");
}

}  // namespace

std::vector<std::size_t> EngineState::serving(const Place& place) const {
  if (!config_.register_everywhere) return locality_.serving(place);
  std::vector<std::size_t> all(rails_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

/// Where the memory is to be used, if the caller has said so; else where its pages are.
Result<Place> EngineState::place_of(const Memory& memory, const Allocation& allocation,
                                    const Device& device) const {
  if (device.kind() == MemoryKind::device) return place_on(device, memory);
  Place place;
  if (memory.gpu().empty()) {
    place.numa_node = topo::numa_node_of(allocation.address(), allocation.size());
    return place;
  }
  auto gpu = find_gpu(locality_.topology(), memory.gpu());
  if (!gpu) return fail(std::move(gpu.error()));
  place.device = *gpu;
  const int near = locality_.topology().gpus[static_cast<std::size_t>(*gpu)].numa_node;
  if (memory.source() != Memory::Source::adopt)
    topo::prefer_node(allocation.address(), allocation.size(), near);
  place.numa_node = topo::numa_node_of(allocation.address(), allocation.size());
  if (place.numa_node < 0) place.numa_node = near;  // pages that are still to come
  return place;
}

Result<Place> EngineState::place_on(const Device& gpu, const Memory& memory) const {
  if (!memory.gpu().empty() && memory.gpu() != gpu.pci())
    return fail(Code::invalid_argument,
                fmt::format("the memory is of the GPU {}, not of {}", gpu.pci(), memory.gpu()));
  Place place;
  place.kind = MemoryKind::device;
  // A virtual machine may hide where a GPU is plugged in.
  const auto known = find_gpu(locality_.topology(), gpu.pci());
  if (!known) return place;
  place.device = *known;
  place.numa_node = locality_.topology().gpus[static_cast<std::size_t>(*known)].numa_node;
  return place;
}

/// Memory that no NIC reaches goes through the bounce-buffer transport of those rails that would
/// reach it.
Result<void> EngineState::prepare_staging(const Device& device, Rail& rail) {
  if (auto outside = check_outside_callbacks(); !outside) return outside;
  const auto served = std::make_shared<Result<void>>();  // a call that hangs may come back
  const auto serve = [served, &rail, &device] { *served = rail.serve(device); };
  if (!run_on(rail.worker(), serve, Deadline::in(longest_pinning)))
    return fail(Error(Code::timed_out, "the buffers were not pinned in time"));
  return *served;
}

/// What a NIC does not reach goes through the bounce-buffer transport; and so may what it reaches,
/// where the peer's does not.
Result<void> EngineState::let_serve(Rail& rail, SegmentState& segment) {
  const Device& device = segment.device();
  const Capability& record = rail.capability();
  if (!device.direct())
    if (auto ready = prepare_staging(device, rail); !ready) return ready;
  if (device.direct() && !record.local_registration) {
    segment.add_rail(rail.index(), nullptr);
    return {};
  }
  segment.nics().prepare(record);
  auto made = segment.nics().open(rail.endpoint(), 0, segment.size(), providers::Access::local);
  if (made)
    segment.add_rail(rail.index(), std::move(*made));
  else if (device.direct())
    return fail(std::move(made.error()));
  else
    segment.add_staging_rail(rail.index(), made.error().message());
  return {};
}

Result<std::shared_ptr<SegmentState>> EngineState::add(const Memory& memory) {
  auto allocation = Allocation::make(memory);
  if (!allocation) return fail(std::move(allocation.error()));
  const auto device = memory.source() == Memory::Source::adopt
                          ? device_of(allocation->address(), allocation->size())
                          : &host_device();
  if (!device) return fail(device.error());
  const auto place = place_of(memory, *allocation, **device);
  if (!place) return fail(place.error());
  auto segment = std::make_shared<SegmentState>(next_segment_++, shared_from_this(),
                                                std::move(*allocation), *place, **device);
  for (const std::size_t index : serving(*place)) {
    Rail& rail = *rails_[index];
    if (rail.closed()) continue;  // its NIC is gone
    if (auto serves = let_serve(rail, *segment); !serves)
      return fail(std::move(serves.error().with_rail(rail.name())));
  }
  if (!(*device)->direct()) segment->set_lent((*device)->lend(segment->address(), segment->size()));
  const std::lock_guard lock(segments_mutex_);
  if (segments_.size() >= sweep_segments_at_) {
    std::erase_if(segments_, [](const auto& keys) { return keys->closed(); });
    sweep_segments_at_ = std::max<std::size_t>(64, 2 * segments_.size());
  }
  segments_.push_back(segment->keys());
  // One that was opened again since it was asked to serve did not know of the segment.
  for (const auto& rail : rails_)
    if (rail->openings() > 0) segment->keys()->rail_opened(rail->index());
  return segment;
}

Result<std::shared_ptr<GrantState>> EngineState::grant(const std::shared_ptr<SegmentState>& segment,
                                                       std::span<const Range> ranges, Rights rights,
                                                       Nanoseconds ttl) {
  auto merged = normalise(ranges, segment->size());
  if (!merged) return fail(std::move(merged.error()));
  if (static_cast<unsigned>(rights) < 1 || static_cast<unsigned>(rights) > 3)
    return fail(Code::invalid_argument, "a grant needs the right to read, to write, or both");
  if (merged->size() > max_granted_ranges)
    return fail(Code::invalid_argument, fmt::format("a grant may have {} ranges, not {}",
                                                    max_granted_ranges, merged->size()));
  if (ttl <= Nanoseconds::zero())
    return fail(Code::invalid_argument, "a grant's time must be above zero");
  // Until the grant is known: whoever releases the segment waits for it, and finds it.
  const Entered user(segment->users());
  if (!user) return fail(Code::closed, "the segment is being released");
  settle_ended();

  GrantState::Parts parts;
  parts.segment = segment;
  GrantDescription& description = parts.description;
  description.engine = self_.name;
  description.incarnation = self_.incarnation;
  description.address = address_;
  description.segment = segment->id();
  description.segment_size = segment->size();
  description.place = segment->place();
  description.rights = rights;
  description.lease = random_u64();
  description.ttl = ttl;
  description.ranges = std::move(*merged);
  if (auto described = describe_keys(parts, rights).and_then([&] { return describe_epoch(parts); });
      !described)
    return fail(std::move(described.error()));
  auto grant = std::make_shared<GrantState>(std::move(parts));
  owned_.add(grant);
  // One that was opened again since its key was asked for did not know of the grant.
  for (const auto& rail : rails_)
    if (rail->openings() > 0) grant->rail_opened(rail->index(), !rail->closed());
  return grant;
}

/// Registers the hull of the ranges anew, with exactly these rights.
Result<void> EngineState::describe_keys(GrantState::Parts& grant, Rights rights) {
  const SegmentState& segment = *grant.segment;
  const std::vector<Range>& ranges = grant.description.ranges;
  const std::uint64_t begin = ranges.front().offset;
  const Range hull{begin, ranges.back().offset + ranges.back().length - begin};
  for (const auto& rail : rails_) {
    if (!segment.served_by(rail->index())) continue;
    if (!segment.reached_by(rail->index())) {
      grant.description.bounced.push_back({rail->index(), segment.why_staged(rail->index())});
      continue;
    }
    if (rail->closed()) continue;
    auto made = key_for_peers(segment, hull, *rail, rights);
    if (!made && segment.device().direct())
      return fail(std::move(made.error().with_rail(rail->name())));
    if (!made) {
      log(LogLevel::warning, "rail {}: a grant of a GPU's memory is staged: {}", rail->name(),
          made.error().message());
      grant.description.bounced.push_back({rail->index(), made.error().message()});
      continue;
    }
    grant.description.keys.push_back(made->key);
    grant.registrations.push_back(std::move(made->registration));
    if (rail->capability().fence != FenceScope::grant) grant.unfenced.insert(rail->index());
  }
  return {};
}

Result<PeerKey> EngineState::key_for_peers(const SegmentState& segment, const Range& hull,
                                           Rail& rail, Rights rights) {
  if (includes(rights, Rights::write)) arrivals_.add(segment.device());
  return segment.nics()
      .open(rail.endpoint(), hull.offset, hull.length, access_of(rights))
      .map([&](std::unique_ptr<providers::Registration>&& made) {
        return peer_key(rail.endpoint(), rail.index(), segment.address() + hull.offset,
                        std::move(made));
      });
}

Result<void> EngineState::describe_epoch(GrantState::Parts& grant) {
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
void EngineState::settle_ended() {
  if (InCallback::now()) return;
  const auto ended = owned_.take_settleable();
  const bool copied = ended.empty() || copies_finished(ended, Deadline::now());
  for (const auto& grant : ended)
    if (!copied || settle(grant) != Revoked::quiescent) owned_.note_if_settleable(grant);
}

/// Until its holders have confirmed, or can't any more. False if the deadline passed first.
bool EngineState::wait_stopped(const GrantState& grant, Deadline deadline) {
  return wait([&](Deadline until) { return grant.wait_confirmed(until); }, deadline) &&
         wait([&](Deadline until) { return grant.wait_borrowers_ended(until); }, deadline);
}

/// What was lent to other processes is not closed with the rails.
bool EngineState::take_back_what_was_lent(Deadline deadline) {
  bool all = true;
  // Once more, for who had asked just before the engine began to close.
  for (auto lent = owned_.lent(); all && !lent.empty(); lent = owned_.lent()) {
    for (const auto& grant : lent) owned_.end(*grant);
    for (const auto& grant : lent) all = wait_stopped(*grant, deadline) && all;
  }
  return all;
}

Result<Revoked> EngineState::revoke(const std::shared_ptr<GrantState>& grant, Deadline deadline) {
  if (auto outside = check_outside_callbacks(); !outside) return fail(std::move(outside.error()));
  // From here on the bounce-buffer transport refuses it, nobody finds it by name, and who holds it
  // is asked to stop.
  owned_.end(*grant);
  if (grant->binding()) wait_stopped(*grant, deadline);
  // What was abandoned in the bounce-buffer transport is as good as a writer who does not answer.
  return copies_finished({&grant, 1}, deadline) ? settle(grant) : Revoked::quarantined;
}

/// The bounce-buffer transport copies on the progress threads, and the hasher reads: a step of each
/// and a slice later, what had begun has ended, but for what devices copy. And what peers had sent
/// by now has been carried out: no key is closed before.
bool EngineState::copies_finished(std::span<const std::shared_ptr<GrantState>> ended,
                                  Deadline latest) {
  const auto deadline = Deadline::at(std::max(latest.when(), Clock::now() + shortest_wait));
  for (const auto& grant : ended)
    if (!wait([&](Deadline until) { return grant->copying().wait_idle(until); }, deadline))
      return false;
  return hasher_.settle(deadline) &&
         std::all_of(workers_.begin(), workers_.end(), [&](const auto& worker) {
           const auto take_in = [&rails = worker->rails()] {
             const Deadline until = Deadline::in(longest_take_in);
             for (Rail* rail : rails) rail->endpoint().take_in_arrivals(until);
           };
           return run_on(*worker, take_in, deadline);
         });
}

/// How a grant stands that was ended, once copies_finished().
Revoked EngineState::settle(const std::shared_ptr<GrantState>& grant) {
  const Revoked revoked = grant->settle();
  // A reader's word may have come since: then its keys are still open, and it is settled again.
  if (grant->spent()) owned_.forget(*grant);
  return revoked;
}

Result<Revoked> EngineState::fence(const std::shared_ptr<GrantState>& grant, Deadline deadline,
                                   FenceScope reach) {
  const auto unfenced = grant->unfenced_rails();
  if (!unfenced.empty() && reach != FenceScope::rail)
    return fail(Code::unsupported,
                "a rail of this grant's can't cut off one grant alone (Capability::fence): its "
                "memory is safe once its holders have confirmed, the rail was closed and opened "
                "again (FenceScope::rail), or the engine is closed");
  if (auto outside = check_outside_callbacks(); !outside) return fail(std::move(outside.error()));
  for (const std::uint32_t rail : unfenced)
    if (!rails_[rail]->endpoint().reopens())
      return fail(Error(Code::unsupported, "a rail of this grant's can't be opened again")
                      .with_rail(rails_[rail]->name()));
  owned_.end(*grant);
  for (const std::uint32_t rail : unfenced)
    if (auto reopened = close_and_open(*rails_[rail], deadline); !reopened && !grant->keys_fence())
      return fail(std::move(reopened.error()));
  // False if a peer is within a copy that this did not end: settle() finds it unconfirmed.
  std::ignore = grant->fence();
  return copies_finished({&grant, 1}, deadline) ? settle(grant) : Revoked::quarantined;
}

Result<void> EngineState::release(SegmentState& segment, Deadline deadline) {
  if (auto outside = check_outside_callbacks(); !outside) return outside;
  segment.users().close();
  for (const auto& grant : owned_.of_segment(segment)) owned_.end(*grant);
  const bool unused =
      wait([&](Deadline until) { return segment.users().wait_idle(until); }, deadline);
  // With those that were made while the segment was being closed.
  for (const auto& grant : owned_.of_segment(segment)) {
    owned_.end(*grant);
    wait_stopped(*grant, deadline);
  }
  const auto grants = owned_.of_segment(segment);
  const bool copied = copies_finished(grants, deadline);
  if (copied)
    for (const auto& grant : grants) settle(grant);
  if (!unused)
    return fail(Code::quarantined,
                "operations of this engine's transfers still use the segment: the memory stays "
                "registered and must not be reused");
  if (!copied || !owned_.of_segment(segment).empty())
    return fail(Code::quarantined,
                "a peer did not confirm that it stopped using the segment: the memory stays "
                "registered and must not be reused");
  segment.unregister();
  return {};
}

Result<std::shared_ptr<RemoteState>> EngineState::import(Bytes blob) {
  auto decoded = decode_grant(blob);
  if (!decoded) return fail(std::move(decoded.error()));
  const auto peer = peers_.find_up(decoded->engine);
  if (!peer)
    return fail(
        Error(Code::peer_down,
              fmt::format("the grant is of an engine that is not connected; it listens at {}",
                          decoded->address.empty() ? "no address" : decoded->address))
            .with_peer(decoded->engine));
  if (peer->introduction.incarnation != decoded->incarnation)
    return fail(Error(Code::stale, "the grant is of an earlier incarnation of that engine")
                    .with_peer(decoded->engine));
  auto remote = std::make_shared<RemoteState>(peer, std::move(*decoded));
  const auto& theirs = peer->their_rails;
  if (std::none_of(theirs.begin(), theirs.end(),
                   [&](std::uint32_t rail) { return remote->carried_by(rail); }))
    return fail(Error(Code::invalid_argument,
                      "the grant has no key for any rail of the peer's that can be reached")
                    .with_peer(peer->introduction.name));
  return confirmed(imported_.add(remote));
}

/// Waits until the owner has said that the grant holds.
Result<std::shared_ptr<RemoteState>> EngineState::confirmed(const ImportedGrants::Added& added) {
  const std::string& owner = added.remote->peer()->introduction.name;
  const auto answered = [&](Deadline until) { return added.answer->wait(until); };
  if (!wait(answered, Deadline::in(config_.default_timeout)))
    return fail(Error(Code::timed_out, "the owner did not say in time whether the grant holds")
                    .with_peer(owner));
  if (const auto& error = added.answer->error()) return fail(Error(*error).with_peer(owner));
  if (added.remote->users().closed()) return fail(added.remote->ended_error());
  return added.remote;
}

Result<void> EngineState::publish(std::string_view name, const std::shared_ptr<GrantState>& grant) {
  if (name.empty() || name.size() > max_published_name)
    return fail(Code::invalid_argument, fmt::format("a published name has 1 to {} bytes, not {}",
                                                    max_published_name, name.size()));
  if (owned_.find(grant->description().lease) != grant)
    return fail(Code::stale, "the grant holds no more, or is another engine's");
  const std::uint64_t lease = grant->description().lease;
  const Blob blob = encode_grant(grant->current());
  for (const auto& asker : directory_.publish(std::string(name), blob, lease))
    control_->send(asker.link, LookupReply{asker.request, blob});
  // It may have ended just now.
  if (!grant->held()) directory_.withdraw(lease);
  return {};
}

Result<std::shared_ptr<RemoteState>> EngineState::lookup(PeerState& peer, std::string_view name,
                                                         Deadline deadline) {
  if (name.empty() || name.size() > max_published_name)
    return fail(Code::invalid_argument, "a published name has 1 to 255 bytes");
  if (auto own = check_own(peer); !own) return fail(std::move(own.error()));
  if (!peer.up()) return fail(peer.down_error());
  const auto lookup = std::make_shared<LookupState>();
  lookup->link = peer.link;
  const std::uint64_t request = next_request_++;
  directory_.add_lookup(request, lookup);
  control_->send(peer.link, LookupRequest{request, std::string(name)});
  if (!peer.up()) directory_.link_down(peer.link, peer.down_error());
  if (!wait([&](Deadline until) { return lookup->wait(until); }, deadline)) {
    directory_.take_lookup(request);
    control_->send(peer.link, LookupAbandoned{request});
    return fail(Error(Code::timed_out, fmt::format("'{}' was not published in time", name))
                    .with_peer(peer.introduction.name));
  }
  if (lookup->error()) return fail(*lookup->error());
  return import(lookup->grant);
}

// What peers ask in these matters. On the control thread.

void EngineState::handle(PeerState& peer, LookupRequest&& notice) {
  auto found = directory_.ask(notice.name, {peer.link, notice.request});
  if (!found) {
    log(LogLevel::warning, "peer {}: {}", peer.introduction.name, found.error().to_string());
    return;
  }
  if (*found) control_->send(peer.link, LookupReply{notice.request, std::move(**found)});
}

void EngineState::handle(PeerState& peer, LookupAbandoned&& notice) {
  directory_.forget({peer.link, notice.request});
}

void EngineState::handle(PeerState& peer, LookupReply&& notice) {
  const auto lookup = directory_.take_lookup(notice.request);
  if (!lookup || lookup->link != peer.link) return;
  lookup->grant = std::move(notice.grant);
  lookup->complete(std::nullopt);
}

void EngineState::handle(PeerState& peer, RevokeRequest&& notice) {
  imported_.take(peer, notice);
}

void EngineState::handle(PeerState& peer, RevokeConfirmed&& notice) {
  owned_.take(peer.link, notice);
}

void EngineState::handle(PeerState& peer, GrantQuery&& notice) {
  owned_.take(peer.link, notice);
}

void EngineState::handle(PeerState& peer, GrantStatus&& notice) {
  imported_.take(peer, notice);
}

/// Their unposted chunks never go out; those that are posted drain.
void EngineState::stop_transfers(RemoteState& remote, const Error& why) {
  for (const auto& worker : workers_) worker->end_those_under(remote, why);
}

}  // namespace weft::core
