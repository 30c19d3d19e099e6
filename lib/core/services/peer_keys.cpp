#include "services/peer_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/log.hpp"
#include "lease/peer_key.hpp"
#include "memory/cover.hpp"
#include "wire/control_codec.hpp"

namespace weft::core {
namespace {

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

/// In their order.
std::vector<std::size_t> touched_extents(const Extents& extents, const std::vector<Range>& ranges) {
  std::vector<std::size_t> touched;
  for (const Range& range : ranges) {
    std::size_t each = extents.of(range.offset);
    if (!touched.empty()) each = std::max(each, touched.back() + 1);
    for (; each <= extents.of(range.offset + range.length - 1); ++each) touched.push_back(each);
  }
  return touched;
}

}  // namespace

/// What a grant's keys are for.
struct PeerKeys::Wanted {
  const SegmentState& segment;
  const std::vector<Range>& ranges;
  Rights rights;
  Keys asked;
  Extents extents;
};

PeerKeys::PeerKeys(const Rails& rails, Workers& workers, const PeerTable& peers,
                   ArrivalFlush& arrivals, OwnedGrants& owned, OwnedGrants::Tell tell)
    : rails_(rails),
      workers_(workers),
      peers_(peers),
      arrivals_(arrivals),
      owned_(owned),
      tell_(std::move(tell)) {}

/// In smaller extents if no NIC takes such large ones. A NIC that takes some of them is full.
Result<void> PeerKeys::describe(GrantState::Parts& grant, Keys asked) {
  const SegmentState& segment = *grant.segment;
  SharedKeys& shared = *segment.shared_keys();
  const auto access = access_of(grant.description.rights);
  const auto rails = rails_that_reach(grant);
  if (rails.empty()) return {};
  for (;;) {
    const Wanted wanted{segment, grant.description.ranges, grant.description.rights, asked,
                        shared.extents(access)};
    Made made;
    auto registered = register_touched(wanted, rails, made);
    if (registered) {
      grant.description.extent_bytes = wanted.extents.bytes();
      for (auto& [where, key] : made) add(grant, std::move(key));
      return {};
    }
    const bool some_fit = std::any_of(made.begin(), made.end(), [&](const auto& each) {
      return each.second->part().length > wanted.extents.bytes() / 2;
    });
    made.clear();
    if (is_full(registered.error()) && !some_fit && shared.shrink(access)) continue;
    if (segment.device().direct()) return registered;
    stage(grant, rails, registered.error());
    return {};
  }
}

/// Tells of the others that serve it too.
std::vector<Rail*> PeerKeys::rails_that_reach(GrantState::Parts& grant) const {
  std::vector<Rail*> rails;
  for (const auto& rail : rails_) {
    if (!grant.segment->served_by(rail->index())) continue;
    if (!grant.segment->reached_by(rail->index()))
      grant.description.bounced.push_back(
          {rail->index(), grant.segment->why_staged(rail->index())});
    else if (!rail->closed())
      rails.push_back(rail.get());
  }
  return rails;
}

/// Each extent with one rail of each kind at least.
Result<void> PeerKeys::register_touched(const Wanted& wanted, const std::vector<Rail*>& rails,
                                        Made& made) {
  const auto touched = touched_extents(wanted.extents, wanted.ranges);
  if (std::max(touched.size() * rails.size(), wanted.extents.count()) > max_granted_keys)
    return fail(
        Code::invalid_argument,
        fmt::format("a grant may have {} keys, not one for each of {} extents of {} bytes "
                    "and {} rails",
                    max_granted_keys, touched.size(), wanted.extents.bytes(), rails.size()));
  const SharedKeys& shared = *wanted.segment.shared_keys();
  const auto access = access_of(wanted.rights);
  const auto has = [&](std::size_t rail, std::size_t extent) {
    return made.contains({rail, extent});
  };
  const auto refused = [&](std::size_t rail, std::size_t extent) {
    return shared.refused(access, static_cast<std::uint32_t>(rail), extent);
  };
  const auto add = [&](std::size_t rail, std::size_t extent) -> Result<void> {
    auto key = make(wanted, *rails_[rail], extent);
    if (!key) return fail(std::move(key.error().with_rail(rails_[rail]->name())));
    made[{rail, extent}] = std::move(*key);
    return {};
  };
  for (const auto& [kind, alike] : rails_.by_kind(rails))
    if (auto covered = cover(touched, alike, has, refused, add); !covered) return covered;
  return {};
}

void PeerKeys::add(GrantState::Parts& grant, KeyPtr key) const {
  const Rail& rail = *rails_[key->rail()];
  if (rail.capability().fence != FenceScope::grant) grant.unfenced.insert(rail.index());
  grant.description.keys.push_back({key->rail(), key->base(), key->value(), key->part()});
  grant.keys.push_back(std::move(key));
}

/// A GPU's memory, of which the NICs have not taken all.
void PeerKeys::stage(GrantState::Parts& grant, const std::vector<Rail*>& rails, const Error& why) {
  for (const Rail* rail : rails) {
    log(LogLevel::warning, "rail {}: a grant of a GPU's memory is staged: {}", rail->name(),
        why.message());
    grant.description.bounced.push_back({rail->index(), why.message()});
  }
}

/// A shared one if there is one. A key of the grant's own reaches no more of the extent than has to
/// be.
Result<PeerKeys::KeyPtr> PeerKeys::make(const Wanted& wanted, Rail& rail, std::size_t extent) {
  SharedKeys& shared = *wanted.segment.shared_keys();
  const auto access = access_of(wanted.rights);
  const bool shares = wanted.asked != Keys::own && rail.capability().pins_memory;
  if (shares)
    if (KeyPtr known = shared.find(access, rail.index(), extent)) return known;
  const Range whole = wanted.extents.range(extent);
  const Range part = shares ? whole : hull_within(wanted.ranges, whole);
  auto made = register_part(wanted.segment, rail, part, wanted.rights);
  if (!made) {
    if (is_full(made.error())) shared.refuse(access, rail.index(), extent);
    return fail(std::move(made.error()));
  }
  PeerKey peers = peer_key(rail.endpoint(), static_cast<std::uint32_t>(rail.index()),
                           wanted.segment.address() + part.offset, std::move(*made));
  auto key = std::make_shared<ExtentKey>(peers.key.rail, part, peers.key.base,
                                         shares ? ExtentKey::Use::shared : ExtentKey::Use::own,
                                         std::move(peers.registration));
  if (shares) shared.add(access, extent, key);
  return key;
}

Result<std::unique_ptr<providers::Registration>> PeerKeys::register_part(
    const SegmentState& segment, Rail& rail, const Range& part, Rights rights) const {
  if (includes(rights, Rights::write)) arrivals_.add(segment.device());
  return segment.nics().open(rail.endpoint(), part.offset, part.length, access_of(rights));
}

bool PeerKeys::cut_off(const GrantState& grant, Deadline deadline, Bystanders bystanders) {
  // One that was under way may have begun before the holder was lost.
  for (auto requests = begin_cut(grant); !requests.empty(); requests = begin_cut(grant))
    for (const std::uint64_t request : requests) {
      const bool answered = workers_.wait(
          [&](Deadline until) { return replacements_.wait(request, until); }, deadline);
      if (!answered && bystanders == Bystanders::drain) return false;
      if (!replacements_.close(request)) return false;
    }
  return grant.uncut().empty();
}

/// Returns the replacements to wait for.
std::vector<std::uint64_t> PeerKeys::begin_cut(const GrantState& grant) {
  const Lock describing(describing_);
  std::set<std::uint64_t> requests;
  std::vector<KeyPtr> left;
  for (const KeyPtr& key : grant.uncut())
    if (const std::uint64_t request = replacements_.of(*key))
      requests.insert(request);
    else
      left.push_back(key);
  if (left.empty()) return {requests.begin(), requests.end()};
  SegmentState& segment = grant.segment();
  auto bystanders = owned_.held_of(segment);
  std::erase_if(bystanders, [&](const auto& each) { return each.get() == &grant; });
  const auto is_used = [&](const KeyPtr& key) {
    return std::any_of(bystanders.begin(), bystanders.end(),
                       [&](const auto& each) { return each->has(*key); });
  };
  const auto used = std::partition(left.begin(), left.end(), is_used);
  for (auto unused = used; unused != left.end(); ++unused)
    if ((*unused)->close()) segment.shared_keys()->forget(**unused);
  left.erase(used, left.end());
  if (!left.empty())
    requests.insert(replace(segment, left, grant.description().rights, bystanders));
  return {requests.begin(), requests.end()};
}

/// Registers them anew, and tells the holders.
std::uint64_t PeerKeys::replace(const SegmentState& segment, const std::vector<KeyPtr>& keys,
                                Rights rights,
                                const std::vector<OwnedGrants::GrantPtr>& bystanders) {
  std::vector<KeyReplacements::Old> old;
  for (const KeyPtr& key : keys) {
    auto made = register_part(segment, *rails_[key->rail()], key->part(), rights);
    if (made) {
      old.push_back({key, key->replace(std::move(*made))});
      continue;
    }
    log(LogLevel::warning, "rail {}: no new key for {} bytes of which a holder is kept out: {}",
        rails_[key->rail()]->name(), key->part().length, made.error().message());
    old.push_back({key, key->take(made.error().message())});
    segment.shared_keys()->forget(*key);
  }
  // Those that begin to hold a grant from here on get the new ones.
  std::map<LinkId, std::vector<RenewedKey>> renewed;
  for (const auto& grant : bystanders)
    for (const LinkId holder : grant->holders())
      for (const KeyPtr& key : keys)
        if (grant->has(*key)) renewed[holder].push_back(grant->renewed(*key));
  std::set<LinkId> holders;
  for (const auto& [holder, its] : renewed) holders.insert(holder);
  const std::uint64_t request = replacements_.begin(std::move(old), std::move(holders));
  for (auto& [holder, its] : renewed) {
    for (; its.size() > limits::lost_keys; its.resize(its.size() - limits::lost_keys))
      tell_(holder, KeysReplaced{0, {its.end() - limits::lost_keys, its.end()}});
    tell_(holder, KeysReplaced{request, std::move(its)});
    // It may have gone before it was waited for.
    const auto peer = peers_.find(holder);
    if (!peer || !peer->up()) replacements_.link_down(holder);
  }
  return request;
}

}  // namespace weft::core
