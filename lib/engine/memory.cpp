// Engine: segments and grants.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/log.hpp"
#include "base/random.hpp"
#include "engine/engine_state.hpp"
#include "machine.hpp"

namespace weft::core {
namespace {

constexpr std::size_t max_published_name = 255;

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

}  // namespace

std::vector<std::size_t> EngineState::serving(const Place& place) const {
  if (!config_.register_everywhere) return whereabouts_.serving(place);
  std::vector<std::size_t> all(rails_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

/// Where the memory is to be used, if the caller has said so; else where its pages are.
Result<Place> EngineState::place_of(const Memory& memory, const Allocation& allocation) const {
  Place place;
  if (memory.gpu().empty()) {
    place.numa_node = topo::numa_node_of(allocation.address(), allocation.size());
    return place;
  }
  auto gpu = find_gpu(whereabouts_.topology(), memory.gpu());
  if (!gpu) return fail(std::move(gpu.error()));
  place.device = *gpu;
  const int near = whereabouts_.topology().gpus[static_cast<std::size_t>(*gpu)].numa_node;
  if (memory.source() != Memory::Source::adopt)
    topo::prefer_node(allocation.address(), allocation.size(), near);
  place.numa_node = topo::numa_node_of(allocation.address(), allocation.size());
  if (place.numa_node < 0) place.numa_node = near;  // pages that are still to come
  return place;
}

Result<std::shared_ptr<SegmentState>> EngineState::add(const Memory& memory) {
  auto allocation = Allocation::make(memory);
  if (!allocation) return fail(std::move(allocation.error()));
  const auto place = place_of(memory, *allocation);
  if (!place) return fail(place.error());
  auto segment =
      std::make_shared<SegmentState>(next_segment_++, shared_from_this(), std::move(*allocation),
                                     *place, *device_for(place->kind));
  for (const std::size_t index : serving(*place)) {
    const auto& rail = rails_[index];
    std::unique_ptr<providers::Registration> registration;
    if (rail->endpoint().capability().local_registration) {
      auto made = rail->endpoint().register_memory(segment->address(), segment->size(),
                                                   providers::Access::local);
      if (!made) return fail(std::move(made.error().with_rail(rail->name())));
      registration = std::move(*made);
    }
    segment->add_rail(index, std::move(registration));
  }
  const std::lock_guard lock(segments_mutex_);
  std::erase_if(segments_, [](const auto& each) { return each.expired(); });
  segments_.push_back(segment);
  return segment;
}

Result<std::shared_ptr<GrantState>> EngineState::grant(const std::shared_ptr<SegmentState>& segment,
                                                       std::span<const Range> ranges,
                                                       Rights rights) {
  auto merged = normalise(ranges, segment->size());
  if (!merged) return fail(std::move(merged.error()));
  if (static_cast<unsigned>(rights) < 1 || static_cast<unsigned>(rights) > 3)
    return fail(Code::invalid_argument, "a grant needs the right to read, to write, or both");
  if (merged->size() > max_granted_ranges)
    return fail(Code::invalid_argument, fmt::format("a grant may have {} ranges, not {}",
                                                    max_granted_ranges, merged->size()));
  if (segment->users().closed()) return fail(Code::closed, "the segment is being released");
  GrantDescription description;
  description.engine = self_.name;
  description.incarnation = self_.incarnation;
  description.address = address_;
  description.segment = segment->id();
  description.segment_size = segment->size();
  description.place = segment->place();
  description.rights = rights;
  description.lease = random_u64();
  description.ranges = std::move(*merged);

  const std::uint64_t begin = description.ranges.front().offset;
  const std::uint64_t end = description.ranges.back().offset + description.ranges.back().length;
  std::byte* hull = segment->address() + begin;
  std::vector<std::unique_ptr<providers::Registration>> registrations;
  for (const auto& rail : rails_) {
    if (!segment->served_by(rail->index())) continue;
    auto made = rail->endpoint().register_memory(hull, end - begin, access_of(rights));
    if (!made) return fail(std::move(made.error().with_rail(rail->name())));
    const bool pointers = rail->endpoint().capability().virtual_addresses;
    description.keys.push_back(
        {rail->index(), pointers ? reinterpret_cast<std::uintptr_t>(hull) : 0, (*made)->key()});
    registrations.push_back(std::move(*made));
  }
  auto grant =
      std::make_shared<GrantState>(segment, std::move(description), std::move(registrations));
  grants_.add(grant);
  return grant;
}

Result<Revoked> EngineState::revoke(const std::shared_ptr<GrantState>& grant, Deadline deadline) {
  const std::uint64_t lease = grant->description().lease;
  // From here on the relay refuses it, and nobody finds it by name.
  grants_.remove(lease);
  const auto waiting = std::make_shared<RevokeWait>();
  const auto asked = peers_.all_up();
  for (const auto& peer : asked) waiting->open.push_back(peer->link);
  const std::uint64_t request = next_request_++;
  grants_.add_revoke(request, waiting);
  for (const auto& peer : asked) control_->send(peer->link, RevokeRequest{request, lease});
  // Peers that went down before the request was known to the table can't confirm.
  for (const auto& peer : asked)
    if (!peer->up()) grants_.peer_lost(request, peer->link);
  const bool all =
      asked.empty() || wait([&](Deadline until) { return waiting->wait(until); }, deadline);
  grants_.remove_revoke(request);
  // Once nobody has operations under it, only the relay may be copying, and the hasher reading; a
  // step of each worker later, and a slice, they have finished.
  const bool quiescent = all && !waiting->some_went && hasher_.settle(deadline) &&
                         std::all_of(workers_.begin(), workers_.end(), [&](const auto& worker) {
                           return run_on(
                               *worker, [] {}, deadline);
                         });
  if (!quiescent) {
    grants_.quarantine(grant);
    return Revoked::quarantined;
  }
  grant->close();
  return Revoked::quiescent;
}

Result<void> EngineState::release(SegmentState& segment, Deadline deadline) {
  segment.users().close();
  for (const auto& grant : grants_.of_segment(segment)) {
    if (auto revoked = revoke(grant, deadline); !revoked) return fail(std::move(revoked.error()));
  }
  if (grants_.quarantined(segment))
    return fail(Code::quarantined,
                "a peer did not confirm that it stopped using the segment: the memory stays "
                "registered and must not be reused");
  if (!wait([&](Deadline until) { return segment.users().wait_idle(until); }, deadline))
    return fail(Code::timed_out,
                "transfers of this engine still use the segment: the memory must not be reused");
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
  if (auto known = grants_.imported(decoded->lease, *peer)) return confirmed(known);
  auto remote = std::make_shared<RemoteState>(peer, std::move(*decoded));
  const auto& theirs = peer->their_rails;
  if (std::none_of(theirs.begin(), theirs.end(),
                   [&](std::uint32_t rail) { return remote->reachable_on(rail); }))
    return fail(Error(Code::invalid_argument,
                      "the grant has no key for any rail of the peer's that can be reached")
                    .with_peer(peer->introduction.name));
  // Known from here on, so that a revocation that comes before the answer finds it.
  const auto known = grants_.add_import(remote);
  if (known == remote) {
    const std::uint64_t request = next_request_++;
    grants_.add_query(request, remote);
    control_->send(peer->link, GrantQuery{request, remote->description().lease});
    if (!peer->up()) grants_.link_down(peer->link, peer->down_error());
  }
  return confirmed(known);
}

/// Waits until the owner has said that the grant holds.
Result<std::shared_ptr<RemoteState>> EngineState::confirmed(
    const std::shared_ptr<RemoteState>& remote) {
  const std::string& owner = remote->peer()->introduction.name;
  if (!remote->confirmed().wait(Deadline::in(config_.default_timeout)))
    return fail(Error(Code::timed_out, "the owner did not say in time whether the grant holds")
                    .with_peer(owner));
  if (const auto& error = remote->confirmed().error()) {
    grants_.forget_import(*remote);
    return fail(Error(*error).with_peer(owner));
  }
  return remote;
}

Result<void> EngineState::publish(std::string_view name, const std::shared_ptr<GrantState>& grant) {
  if (name.empty() || name.size() > max_published_name)
    return fail(Code::invalid_argument, fmt::format("a published name has 1 to {} bytes, not {}",
                                                    max_published_name, name.size()));
  if (grants_.find(grant->description().lease) != grant)
    return fail(Code::stale, "the grant was revoked, or is another engine's");
  const Blob blob = encode_grant(grant->description());
  for (const auto& asker : grants_.publish(std::string(name), blob, grant->description().lease))
    control_->send(asker.link, LookupReply{asker.request, blob});
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
  grants_.add_lookup(request, lookup);
  control_->send(peer.link, LookupRequest{request, std::string(name)});
  if (!peer.up()) grants_.link_down(peer.link, peer.down_error());
  if (!wait([&](Deadline until) { return lookup->wait(until); }, deadline)) {
    grants_.take_lookup(request);
    control_->send(peer.link, LookupAbandoned{request});
    return fail(Error(Code::timed_out, fmt::format("'{}' was not published in time", name))
                    .with_peer(peer.introduction.name));
  }
  if (lookup->error()) return fail(*lookup->error());
  return import(lookup->grant);
}

// What peers ask in these matters. On the control thread.

void EngineState::handle(PeerState& peer, LookupRequest&& notice) {
  auto found = grants_.ask(notice.name, {peer.link, notice.request});
  if (!found) {
    log(LogLevel::warning, "peer {}: {}", peer.introduction.name, found.error().to_string());
    return;
  }
  if (*found) control_->send(peer.link, LookupReply{notice.request, std::move(**found)});
}

void EngineState::handle(PeerState& peer, LookupAbandoned&& notice) {
  grants_.forget({peer.link, notice.request});
}

void EngineState::handle(PeerState& peer, LookupReply&& notice) {
  const auto lookup = grants_.take_lookup(notice.request);
  if (!lookup || lookup->link != peer.link) return;
  lookup->grant = std::move(notice.grant);
  lookup->complete(std::nullopt);
}

void EngineState::handle(PeerState& peer, RevokeRequest&& notice) {
  const auto confirm = [this, link = peer.link, request = notice.request] {
    control_->send(link, RevokeConfirmed{request});
  };
  const auto remote = grants_.imported(notice.lease, peer);
  if (!remote) return confirm();
  remote->users().close();
  remote->users().when_idle(confirm);
}

void EngineState::handle(PeerState& peer, GrantQuery&& notice) {
  control_->send(peer.link, GrantStatus{notice.request, grants_.find(notice.lease) != nullptr});
}

void EngineState::handle(PeerState& peer, GrantStatus&& notice) {
  const auto remote = grants_.take_query(notice.request);
  if (!remote || remote->peer()->link != peer.link) return;
  if (notice.held) return remote->confirmed().complete(std::nullopt);
  remote->users().close();
  remote->confirmed().complete(Error(Code::stale, "the grant was revoked by its owner"));
}

void EngineState::handle(PeerState& peer, RevokeConfirmed&& notice) {
  grants_.revoke_confirmed(notice.request, peer.link);
}

}  // namespace weft::core
