#include "services/paths.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "path/judge.hpp"

namespace weft::core {
namespace {

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 4;
  if (names.size() <= most) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + most - 1, ", "),
                     names.size() - (most - 1));
}

/// The provider's name in a rail's: "tcp" of "tcp:0".
std::string provider_of(const std::string& rail) {
  return rail.substr(0, rail.find(':'));
}

/// The peer's NICs as far as it tells: the speeds of its rails.
double gbps_of(const Introduction& peer, const RailSets::Rails& rails, bool share_nic) {
  double sum = 0, fastest = 0;
  for (const std::uint32_t rail : rails) {
    const double gbps = peer.rails[rail].mbps / 1000.0;
    if (gbps <= 0) return 0;
    sum += gbps;
    fastest = std::max(fastest, gbps);
  }
  return share_nic ? fastest : sum;
}

/// Of pieces that have bytes.
std::uint64_t smallest_of(const PieceList& pieces) {
  std::uint64_t smallest = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (pieces[i].length > 0) smallest = std::min(smallest, pieces[i].length);
  return smallest;
}

/// As has been seen with a segment's memory.
void tell_reach(const std::string& why_staged, PathFacts::End& end) {
  using Reach = PathFacts::End::Reach;
  end.reach = why_staged.empty() ? Reach::direct : Reach::staged;
  end.why_staged = why_staged;
}

Result<void> check_place(const Place& place, const Topology& topology) {
  if (place.device < -1 || place.device >= static_cast<int>(topology.gpus.size()))
    return fail(Code::not_found, fmt::format("there is no GPU {}: this machine has {}",
                                             place.device, topology.gpus.size()));
  if (place.drive < -1 || place.drive >= static_cast<int>(topology.drives.size()))
    return fail(Code::not_found, fmt::format("there is no drive {}: this machine has {}",
                                             place.drive, topology.drives.size()));
  const auto is_it = [&](const NumaNode& node) { return node.id == place.numa_node; };
  if (place.numa_node != -1 && std::none_of(topology.nodes.begin(), topology.nodes.end(), is_it))
    return fail(Code::not_found, fmt::format("there is no NUMA node {}", place.numa_node));
  return {};
}

std::string why_no_key(const std::string& in_the_owners_words) {
  const std::string none = "none of the peer's rails has a key for it";
  return in_the_owners_words.empty() ? none : fmt::format("{}: {}", none, in_the_owners_words);
}

/// Those for which it holds come first, each in its order; returns how many they are.
template <typename Holds>
std::size_t put_first(RailSets::Rails& rails, Holds&& holds) {
  RailSets::Rails sorted, rest;
  for (const std::uint32_t rail : rails) (holds(rail) ? sorted : rest).push_back(rail);
  const std::size_t first = sorted.size();
  for (const std::uint32_t rail : rest) sorted.push_back(rail);
  rails = sorted;
  return first;
}

/// Whether it refuses any path.
bool refuses_any(const Config& config) {
  const auto refuses = [](const auto& named) { return !named.second.empty(); };
  return !config.policy.empty() || !config.latency_policy.empty() || !config.bulk_policy.empty() ||
         std::any_of(config.peer_policies.begin(), config.peer_policies.end(), refuses);
}

}  // namespace

Paths::Paths(const Config& config, const Owner& owner, const Introduction& self, const Rails& rails)
    : config_(config),
      has_policies_(refuses_any(config)),
      owner_(owner),
      self_(self),
      rails_(rails) {}

bool Paths::between_gpus(const SegmentState& local, const RemoteState& remote) {
  return local.place().kind == MemoryKind::device &&
         remote.description().place.kind == MemoryKind::device;
}

/// Between GPUs: where the remote memory lies for copies by the local one. May block the first
/// time.
Result<std::byte*> Paths::borrow(const SegmentState& local, const RemoteState& remote) const {
  const GrantDescription& grant = remote.description();
  if (!remote.peer()->same_host) return fail(Code::unsupported, "another host");
  if (!config_.share_gpu_memory)
    return fail(Code::unsupported, "this engine shares no GPU memory (share_gpu_memory)");
  // By the word of the lease, over any of these, what is read is proven.
  for (const std::uint32_t rail : remote.peer()->their_rails)
    if (remote.carried_by(rail) && !remote.has_lease_word(rail))
      return fail(Code::unsupported, "the grant lacks the word of its lease for a rail");
  return remote.borrowed()->map(local.device(), grant.segment_size);
}

/// Those that serve both sides; only those whose NICs reach the memory by themselves, if either
/// side has some.
Result<Paths::RailsBetween> Paths::rails_for(const SegmentState& local,
                                             const RemoteState& remote) const {
  PeerState& peer = *remote.peer();
  RailsBetween rails{.peer = &peer,
                     .local = local.place(),
                     .remote = remote.description().place,
                     .ours = {},
                     .theirs = {},
                     .seen = true};
  for (const auto& route : peer.routes)
    if (local.served_by(route->rail->index())) rails.ours.push_back(route->rail->index());
  for (const std::uint32_t rail : peer.their_rails)
    if (remote.carried_by(rail)) rails.theirs.push_back(rail);
  if (rails.ours.empty() || rails.theirs.empty())
    return fail(Error(Code::unavailable, fmt::format("no rail to the peer serves the {} memory",
                                                     rails.ours.empty() ? "local" : "remote"))
                    .with_peer(peer.introduction.name));
  // Each is looked at once: a rail may lose the memory meanwhile.
  const std::size_t ours = put_first(rails.ours, [&](auto rail) { return local.reached_by(rail); });
  const std::size_t theirs =
      put_first(rails.theirs, [&](auto rail) { return remote.reachable_on(rail); });
  rails.direct = ours > 0 && theirs > 0;
  if (ours == 0) rails.why_local_staged = local.why_staged(rails.ours.front());
  if (theirs == 0) rails.why_remote_staged = why_no_key(remote.why_bounced(rails.theirs.front()));
  if (rails.direct) {
    rails.ours.shorten(ours);
    rails.theirs.shorten(theirs);
  }
  rails.mapping = mapping_of(rails, local, remote);
  if (rails.mapping.mapped && rails_[rails.ours.front()]->plan().one_for_mapped) {
    rails.ours.shorten(1);
    rails.theirs.shorten(1);
  }
  return rails;
}

/// Over these, each by those of the other side's that it is paired with.
Result<std::shared_ptr<RailSet>> Paths::rails_between(const RailsBetween& rails) const {
  PeerState& peer = *rails.peer;
  return peer.rail_sets.between(
      rails.ours, rails.theirs, [&]() -> Result<std::shared_ptr<RailSet>> {
        const std::vector<std::uint32_t> ours(rails.ours.begin(), rails.ours.end()),
            theirs(rails.theirs.begin(), rails.theirs.end());
        auto set = std::make_shared<RailSet>();
        for (const PairedRail& paired : spread(self_, ours, peer.introduction, theirs)) {
          Route& route = *peer.route_by_rail[paired.own];
          RailUse use{&route, {}};
          for (const auto& [target, weight] : paired.targets) {
            const auto address = route.addresses.find(target);
            if (address == route.addresses.end())
              return fail(
                  Error(Code::unavailable, "the grant lacks keys for rails that have to be reached")
                      .with_peer(peer.introduction.name));
            use.targets.add({target, &address->second}, weight);
          }
          if (route.rail->capability().proof != CompletionProof::visible)
            use.proofs = use.targets.size();
          set->add(paired.own, std::move(use));
        }
        return set;
      });
}

/// What this machine prefers to a rail and has not: providers of which no NIC was taken.
std::vector<std::string> Paths::not_had_before(const Capability& record) const {
  std::vector<std::string> reasons;
  std::set<std::string> taken;
  for (const Candidate& each : rails_.candidates())
    if (each.taken) taken.insert(each.provider);
  for (const Candidate& each : rails_.candidates()) {
    if (each.taken && each.domain == record.domain && each.pci == record.pci) break;
    if (!taken.insert(each.provider).second) continue;  // one reason is enough
    reasons.push_back(fmt::format("{}: {}", each.provider, each.reason));
  }
  return reasons;
}

/// What one rail maps the others do too: it is the same file.
Mapping Paths::mapping_of(const RailsBetween& rails, const SegmentState& local,
                          const RemoteState& remote) const {
  providers::Endpoint& endpoint = rails_[rails.ours.front()]->endpoint();
  if (!endpoint.capability().maps_memory || !rails.direct) return {};
  const auto& addresses = rails.peer->route_by_rail[rails.ours.front()]->addresses;
  const std::uint32_t theirs = rails.theirs.front();
  const auto address = addresses.find(theirs);
  if (address == addresses.end()) return {false, "the rails are not paired"};
  if (local.may_fault()) return {false, "the local memory's file may be made smaller"};
  const auto key = remote.first_key_on(theirs);
  if (!key) return {false, "the peer's rail has no key for it any more"};
  const auto mapped = endpoint.check_mapped(address->second.load(), *key);
  return {mapped.has_value(), mapped ? "" : mapped.error().message()};
}

Result<Path> Paths::describe(const RailsBetween& rails, Direction direction,
                             TransportKind asked) const {
  const PeerState& peer = *rails.peer;
  const auto copies = [&](std::uint32_t rail) {
    const Capability& record = rails_[rail]->capability();
    return (direction == Direction::write ? record.write_carriage : record.read_carriage).copies();
  };
  // They are of one kind. Where their NICs differ all the same, the worst of them counts.
  const std::uint32_t worst =
      *std::max_element(rails.ours.begin(), rails.ours.end(),
                        [&](std::uint32_t a, std::uint32_t b) { return copies(a) < copies(b); });
  PathFacts facts;
  facts.record = rails_[worst]->capability();
  facts.direction = direction;
  facts.asked = asked;
  facts.same_host = peer.same_host;
  facts.provider = provider_of(rails_[worst]->name());
  facts.local.place = rails.local;
  facts.remote.place = rails.remote;
  facts.lending = rails.lending;
  facts.mapping = rails.mapping;
  if (rails.seen) {
    tell_reach(rails.why_local_staged, facts.local);
    tell_reach(rails.why_remote_staged, facts.remote);
  }

  std::set<std::string> domains;
  std::vector<std::string> nics;
  double own_gbps = 0;
  bool known = true;
  for (const std::uint32_t rail : rails.ours) {
    facts.rails.push_back(rails_[rail]->name());
    const Capability& record = rails_[rail]->capability();
    if (!domains.insert(record.domain + record.pci).second) continue;
    nics.push_back(record.domain);
    const double way = rails_.locality().gbps_between(rail, rails.local);
    facts.local.nics_gbps += way;
    auto& notes = facts.local.link_notes;
    for (std::string& note : rails_.locality().notes_between(rail, rails.local))
      if (std::find(notes.begin(), notes.end(), note) == notes.end())
        notes.push_back(std::move(note));
    own_gbps += rails_.locality().gbps_of(rail);
    known = known && way > 0;
  }
  facts.local.nics = some_of(nics);
  facts.local.far_nics = facts.local.nics_gbps < own_gbps;
  if (!known) facts.local.nics_gbps = 0;
  const auto& gpus = rails_.locality().topology().gpus;
  if (const auto gpu = static_cast<std::size_t>(rails.local.device); gpu < gpus.size())
    facts.local.gpu_gbps = gpus[gpu].link_gbps;
  // Rails that don't fill a NIC alone are several on one.
  facts.remote.nics_gbps = gbps_of(peer.introduction, rails.theirs, !facts.record.fills_alone);
  facts.not_used = not_had_before(facts.record);
  facts.not_used.insert(facts.not_used.end(), peer.not_used.begin(), peer.not_used.end());
  return describe_path(facts);
}

TransportKind Paths::transport_asked(const TransferOptions& options) const {
  return options.transport != TransportKind::automatic ? options.transport : config_.transport;
}

Result<Path> Paths::explain(const SegmentState& local, const RemoteState& remote,
                            Direction direction, const TransferOptions& options) const {
  if (!owner_.owns(local))
    return fail(Code::invalid_argument, "the local segment is another engine's");
  if (auto own = owner_.check_own(*remote.peer()); !own) return fail(std::move(own.error()));
  return rails_for(local, remote).and_then([&](RailsBetween rails) {
    if (between_gpus(local, remote)) {
      const auto lent = borrow(local, remote);
      rails.lending = {lent.has_value(), lent ? "" : lent.error().message()};
    }
    return describe(rails, direction, transport_asked(options)).map([&](Path path) {
      path.refused = refusal(path, *rails.peer, options);
      return path;
    });
  });
}

Result<Path> Paths::explain_places(const Place& local, const std::shared_ptr<PeerState>& peer,
                                   const Place& remote, Direction direction,
                                   const TransferOptions& options) const {
  if (auto there = check_place(local, rails_.locality().topology()); !there)
    return fail(std::move(there.error()));
  RailsBetween rails{.peer = peer.get(),
                     .local = local,
                     .remote = remote,
                     .ours = {},
                     .theirs = RailSets::Rails(peer->their_rails)};
  rails.lending.reason = peer->same_host ? "known once there is a grant" : "another host";
  for (const std::size_t rail : rails_.serving(local))
    if (peer->route_by_rail[rail] != nullptr)
      rails.ours.push_back(static_cast<std::uint32_t>(rail));
  if (rails.ours.empty())
    return fail(Error(Code::unavailable, "no rail to the peer serves the local memory")
                    .with_peer(peer->introduction.name));
  if (rails_[rails.ours.front()]->capability().maps_memory)
    rails.mapping.reason = "known once there is a grant";
  return describe(rails, direction, transport_asked(options)).map([&](Path path) {
    path.refused = refusal(path, *peer, options);
    return path;
  });
}

/// By which policy, and why; empty if all allow it.
std::string Paths::refusal(const Path& path, const PeerState& peer, const TransferOptions& options,
                           std::uint64_t smallest_piece) const {
  const auto by = [&](const Policy& policy, std::string_view whose) {
    const std::string why = reject_reason(policy, path, smallest_piece);
    return why.empty() ? why : fmt::format("{} {}", whose, why);
  };
  std::string why = by(config_.policy, "this engine's policy");
  if (why.empty() && options.priority == Priority::latency)
    why = by(config_.latency_policy, "the policy of class latency");
  if (why.empty() && options.priority == Priority::bulk)
    why = by(config_.bulk_policy, "the policy of class bulk");
  const auto& policies = config_.peer_policies;
  if (const auto own = policies.find(peer.introduction.name); why.empty() && own != policies.end())
    why = by(own->second, "the policy for this peer");
  if (why.empty() && options.policy) why = by(*options.policy, "the transfer's policy");
  return why;
}

const KnownPath& Paths::known(const PreparedState& prepared, TransportKind asked) const {
  return prepared.paths.of(asked, [&] {
    return KnownPath{rails_for(*prepared.local, *prepared.remote).and_then([&](RailsBetween rails) {
                       rails.lending = lending_of(prepared);
                       return describe(rails, prepared.direction, asked);
                     }),
                     smallest_of(prepared.pieces)};
  });
}

Result<void> Paths::check_policies(const PreparedState& prepared,
                                   const TransferOptions& options) const {
  const KnownPath& way = known(prepared, transport_asked(options));
  if (!way.path) return fail(way.path.error());
  const PeerState& peer = *prepared.remote->peer();
  std::string why = refusal(*way.path, peer, options, way.smallest_piece);
  if (why.empty()) return {};
  return fail(Error(Code::policy_refused, std::move(why)).with_peer(peer.introduction.name));
}

}  // namespace weft::core
