#include "lease/owned_grants.hpp"

#include <algorithm>
#include <utility>

#include "base/saturating_add.hpp"
#include "base/sync.hpp"

namespace weft::core {

void OwnedGrants::add(const GrantPtr& grant) {
  const Lock lock(mutex_);
  const std::uint64_t lease = grant->description().lease;
  grants_[lease] = grant;
  by_segment_[{&grant->segment(), lease}] = grant;
  next_expiry_ = std::min(next_expiry_, grant->expires());
}

OwnedGrants::GrantPtr OwnedGrants::known(std::uint64_t lease) const {
  const Lock lock(mutex_);
  const auto entry = grants_.find(lease);
  return entry == grants_.end() ? nullptr : entry->second;
}

OwnedGrants::GrantPtr OwnedGrants::find(std::uint64_t lease) const {
  auto grant = known(lease);
  return grant && grant->held() ? grant : nullptr;
}

std::vector<OwnedGrants::GrantPtr> OwnedGrants::all() const {
  const Lock lock(mutex_);
  std::vector<GrantPtr> all;
  all.reserve(grants_.size());
  for (const auto& [lease, grant] : grants_) all.push_back(grant);
  return all;
}

std::vector<OwnedGrants::GrantPtr> OwnedGrants::of_segment(const SegmentState& segment) const {
  std::vector<GrantPtr> found;
  const Lock lock(mutex_);
  for (auto each = by_segment_.lower_bound({&segment, 0});
       each != by_segment_.end() && each->first.first == &segment; ++each)
    found.push_back(each->second);
  return found;
}

std::vector<OwnedGrants::GrantPtr> OwnedGrants::held_of(const SegmentState& segment) const {
  auto found = of_segment(segment);
  std::erase_if(found, [](const GrantPtr& grant) { return !grant->held(); });
  return found;
}

std::vector<OwnedGrants::GrantPtr> OwnedGrants::lent() const {
  auto found = all();
  std::erase_if(found, [](const GrantPtr& grant) { return !grant->lent(); });
  return found;
}

std::vector<OwnedGrants::GrantPtr> OwnedGrants::take_back(LinkId from) {
  auto found = lent();
  std::erase_if(found,
                [&](const GrantPtr& grant) { return grant->wait_returned(from, Deadline::now()); });
  for (const GrantPtr& grant : found) tell_(from, RevokeRequest{grant->description().lease});
  return found;
}

std::size_t OwnedGrants::held() const {
  const auto known = all();
  return static_cast<std::size_t>(std::count_if(
      known.begin(), known.end(), [](const GrantPtr& grant) { return grant->held(); }));
}

std::vector<OwnedGrants::GrantPtr> OwnedGrants::quarantined() const {
  auto found = all();
  std::erase_if(found, [](const GrantPtr& grant) { return !grant->quarantined(); });
  return found;
}

bool OwnedGrants::renew(GrantState& grant, Nanoseconds ttl) {
  const auto holders = grant.renew(saturating_add(Clock::now(), ttl));
  if (!holders) return false;
  for (const LinkId holder : *holders) tell_(holder, LeaseRenewed{grant.description().lease});
  return true;
}

void OwnedGrants::end(GrantState& grant, GrantEnd why) {
  if (const auto holders = grant.end()) ended(grant, *holders, why);
}

void OwnedGrants::ended(const GrantState& grant, const std::vector<OwnedLease::Holder>& holders,
                        GrantEnd why) {
  const std::uint64_t lease = grant.description().lease;
  for (const LinkId holder : holders) tell_(holder, RevokeRequest{lease});
  ended_(lease, why);
}

/// No event tells when the process of a lost borrower has ended.
void OwnedGrants::look_after_the_bereft() {
  if (!bereft_.exchange(false)) return;
  for (const GrantPtr& grant : all()) {
    if (!grant->bereft()) continue;
    note_if_settleable(grant);
    if (grant->lent()) bereft_ = true;
  }
}

void OwnedGrants::end_expired(Clock::time_point now) {
  look_after_the_bereft();
  {
    const Lock lock(mutex_);
    if (now < next_expiry_) return;
  }
  for (const GrantPtr& grant : all()) {
    if (grant->expires() > now) continue;
    if (const auto holders = grant->end_if_expired(now)) ended(*grant, *holders, GrantEnd::expired);
    note_if_settleable(grant);
  }
  const Lock lock(mutex_);
  next_expiry_ = Clock::time_point::max();
  for (const auto& [lease, grant] : grants_)
    if (grant->expires() > now) next_expiry_ = std::min(next_expiry_, grant->expires());
}

void OwnedGrants::forget(const GrantState& grant) {
  const std::uint64_t lease = grant.description().lease;
  const Lock lock(mutex_);
  const auto entry = grants_.find(lease);
  if (entry == grants_.end() || entry->second.get() != &grant) return;
  grants_.erase(entry);
  by_segment_.erase({&grant.segment(), lease});
  settleable_.erase(lease);
}

/// Its waiter may have settled and forgotten it by now.
void OwnedGrants::note_if_settleable(const GrantPtr& grant) {
  if (!grant->settleable()) return;
  const Lock lock(mutex_);
  const auto entry = grants_.find(grant->description().lease);
  if (entry != grants_.end() && entry->second == grant) settleable_.insert(*entry);
}

std::vector<OwnedGrants::GrantPtr> OwnedGrants::take_settleable() {
  std::vector<GrantPtr> taken;
  const Lock lock(mutex_);
  taken.reserve(settleable_.size());
  for (const auto& [lease, grant] : std::exchange(settleable_, {})) taken.push_back(grant);
  return taken;
}

void OwnedGrants::rail_closes(std::uint32_t rail) {
  for (const GrantPtr& grant : all()) grant->rail_closes(rail);
}

OwnedGrants::Renewed OwnedGrants::rail_opened(std::uint32_t rail, bool opened) {
  Renewed renewed;
  for (const GrantPtr& grant : all()) {
    const auto reopened = grant->rail_opened(rail, opened);
    for (const LinkId holder : reopened.holders)
      renewed[holder].insert(renewed[holder].end(), reopened.keys.begin(), reopened.keys.end());
    note_if_settleable(grant);
  }
  return renewed;
}

void OwnedGrants::clear() {
  for (const GrantPtr& grant : all()) {
    static_cast<void>(grant->end());
    // Its keys must not outlive the rails, as the application's handle may.
    grant->close();
  }
  const Lock lock(mutex_);
  grants_.clear();
  by_segment_.clear();
  settleable_.clear();
}

void OwnedGrants::take(LinkId from, const GrantQuery& query,
                       std::optional<GrantState::RailNumbers> rails) {
  const auto grant = known(query.lease);
  GrantStatus status{query.request};
  if (grant) {
    auto borrower = borrower_of(*grant, from, query);
    status.held = grant->hold(
        from, borrower ? std::make_shared<const Process>(std::move(*borrower)) : nullptr,
        std::move(rails));
    if (borrower)
      status.lent = *grant->segment().lent();
    else
      status.not_lent = borrower.error().message();
  }
  if (status.held) {
    // After it holds the grant: of what is renewed from then on it is told.
    status.renewed = grant->renewed();
    if (grant->expires() != Clock::time_point::max())
      status.left = std::max<Nanoseconds>(Nanoseconds(1), grant->expires() - Clock::now());
  }
  tell_(from, std::move(status));
}

/// The process that the memory may be lent to, or why it is not.
Result<Process> OwnedGrants::borrower_of(const GrantState& grant, LinkId link,
                                         const GrantQuery& query) const {
  const SegmentState& segment = grant.segment();
  if (segment.place().kind != MemoryKind::device)
    return fail(Code::unsupported, "the memory is no GPU's");
  if (!query.maps) return fail(Code::unsupported, "this process maps no GPU memory");
  if (!segment.lent()) return fail(segment.lent().error());
  return borrower_(link);
}

void OwnedGrants::take(LinkId from, const RevokeConfirmed& confirmed) {
  const auto grant = known(confirmed.lease);
  if (!grant) return;
  if (grant->confirmed(from, confirmed.strays)) note_if_settleable(grant);
}

void OwnedGrants::link_down(LinkId link) {
  for (const GrantPtr& grant : all()) {
    grant->lost(link);
    note_if_settleable(grant);
    if (grant->bereft()) bereft_ = true;
  }
}

}  // namespace weft::core
