#include "lease/grant_state.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/saturating_add.hpp"
#include "base/sync.hpp"

namespace weft::core {

bool covered_by(std::span<const Range> ranges, std::uint64_t offset, std::uint64_t length) {
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), offset,
      [](std::uint64_t value, const Range& range) { return value < range.offset; });
  if (after == ranges.begin()) return false;
  const Range& range = *std::prev(after);
  return offset - range.offset <= range.length && length <= range.length - (offset - range.offset);
}

bool GrantState::allows(Rights rights, std::uint64_t offset, std::uint64_t length) const {
  return includes(description().rights, rights) && covered_by(description().ranges, offset, length);
}

GrantState::GrantState(Parts parts)
    : parts_(std::move(parts)), expires_(saturating_add(Clock::now(), parts_.description.ttl)) {}

bool GrantState::held() const {
  const Lock lock(mutex_);
  return lease_.held() && Clock::now() < expires();
}

bool GrantState::hold(OwnedLease::Holder holder, std::shared_ptr<const Process> borrower,
                      std::optional<RailNumbers> rails) {
  const Lock lock(mutex_);
  if (Clock::now() >= expires() || !lease_.hold(holder)) return false;
  if (borrower) borrowers_.emplace(holder, std::move(borrower));
  if (rails) rails_of_.emplace(holder, std::move(*rails));
  return true;
}

std::optional<std::vector<OwnedLease::Holder>> GrantState::end() {
  return end_if_expired(Clock::time_point::max());
}

std::optional<std::vector<OwnedLease::Holder>> GrantState::end_if_expired(Clock::time_point now) {
  const Lock lock(mutex_);
  if (now < expires() || !lease_.held()) return std::nullopt;
  if (parts_.epoch) parts_.epoch->end();
  copying_.close();
  return lease_.end();
}

std::optional<std::vector<OwnedLease::Holder>> GrantState::renew(Clock::time_point until) {
  const Lock lock(mutex_);
  if (!lease_.held() || Clock::now() >= expires()) return std::nullopt;
  expires_ = std::max(expires(), until);
  return lease_.holders();
}

bool GrantState::confirmed(OwnedLease::Holder holder, bool strays) {
  const Lock lock(mutex_);
  const bool was_holder = strays ? lose(holder) : lease_.confirmed(holder);
  borrowers_.erase(holder);
  rails_of_.erase(holder);
  changed_.notify_all();
  return was_holder;
}

void GrantState::lost(OwnedLease::Holder holder) {
  const Lock lock(mutex_);
  lose(holder);
  changed_.notify_all();
}

bool GrantState::lose(OwnedLease::Holder holder) {
  const bool was_holder = lease_.lost(holder);
  if (!was_holder) return false;
  cut_holders();
  const auto known = rails_of_.find(holder);
  const RailNumbers& rails = known != rails_of_.end() ? known->second : never_fenced_;
  lost_over_.insert(rails.begin(), rails.end());
  if (known != rails_of_.end()) rails_of_.erase(known);
  return true;
}

/// What holders have posted that did not confirm may come over a rail that keys don't fence.
bool GrantState::unfenced() const {
  if (lease_.awaited()) return !parts_.unfenced.empty();
  for (const std::uint32_t rail : parts_.unfenced)
    if (lost_over_.contains(rail)) return true;
  return false;
}

bool GrantState::binding() const {
  return writable() || lent();
}

bool GrantState::lent() const {
  const Lock lock(mutex_);
  return !borrowers_ended();
}

bool GrantState::wait_returned(OwnedLease::Holder holder, Deadline deadline) const {
  const Lock lock(mutex_);
  return changed_.wait(mutex_, deadline,
                       [&]() WEFT_REQUIRES(mutex_) { return !borrowers_.contains(holder); });
}

bool GrantState::bereft() const {
  const Lock lock(mutex_);
  return !borrowers_.empty() && lease_.lost_holders() > 0;
}

bool GrantState::borrowers_ended() const {
  return std::all_of(borrowers_.begin(), borrowers_.end(),
                     [](const auto& each) { return each.second->ended(); });
}

bool GrantState::wait_borrowers_ended(Deadline deadline) const {
  const auto borrowers = [&] {
    const Lock lock(mutex_);
    return borrowers_;
  }();
  return std::all_of(borrowers.begin(), borrowers.end(),
                     [&](const auto& each) { return each.second->wait_ended(deadline); });
}

bool GrantState::over() const {
  const Lock lock(mutex_);
  return lease_.over();
}

bool GrantState::spent() const {
  return own_keys_closed() && over();
}

/// No holder is left, or only holders that are gone, which closing the keys keeps out.
bool GrantState::settleable() const {
  const Lock lock(mutex_);
  return lease_.over() || (!lease_.held() && !lease_.awaited() && !unfenced() && borrowers_ended());
}

bool GrantState::quarantined() const {
  {
    const Lock lock(mutex_);
    if (lease_.held()) return false;
  }
  // A read that is late does no harm, but to memory that is to be unmapped.
  const bool binds = binding() || segment().users().closed();
  return !copying_.idle() || keys_kept_ || (binds && !settleable());
}

Error GrantState::why_quarantined() const {
  const auto why = [&]() -> std::string {
    if (keys_kept_) return "a key of the grant can't be closed";
    const Lock lock(mutex_);
    if (lease_.lost_holders() > 0) {
      const std::string gone =
          "a holder of the grant is gone without confirming that it stopped, or what it sent may "
          "still arrive";
      if (!borrowers_ended()) return gone + ", and its process still has the memory mapped";
      if (!unfenced()) return gone + ", and is not cut off yet";
      return gone +
             ", and a rail can't cut off one grant alone (fence() with the scope `rail` does)";
    }
    if (lease_.awaited()) return "a holder of the grant did not confirm in time that it stopped";
    return "copies under the grant have not ended in time";
  };
  return Error(Code::quarantined, why() + ": the memory stays registered and must not be reused");
}

bool GrantState::wait_confirmed(Deadline deadline) const {
  const Lock lock(mutex_);
  return changed_.wait(mutex_, deadline, [&]() WEFT_REQUIRES(mutex_) { return !lease_.awaited(); });
}

Revoked GrantState::settle() {
  // The keys are closed even so: a NIC may repeat a payload that it has delivered.
  if (over()) return close_keys() ? Revoked::quiescent : Revoked::quarantined;
  if (settleable() && fence()) return Revoked::quiescent;
  return binding() ? Revoked::quarantined : Revoked::quiescent;
}

bool GrantState::fence() {
  const auto fenced = [&] {
    const Lock lock(mutex_);
    return !unfenced() && uncut_keys().empty();
  };
  if (!fenced() || !close_keys()) return false;
  const Lock lock(mutex_);
  if (!borrowers_ended()) return false;
  borrowers_.clear();
  lease_.fenced();
  changed_.notify_all();
  return true;
}

std::set<std::uint32_t> GrantState::unfenced_rails() const {
  const Lock lock(mutex_);
  return parts_.unfenced;
}

bool GrantState::has(const ExtentKey& key) const {
  return std::any_of(parts_.keys.begin(), parts_.keys.end(),
                     [&](const KeyPtr& each) { return each.get() == &key; });
}

std::vector<OwnedLease::Holder> GrantState::holders() const {
  const Lock lock(mutex_);
  return lease_.held() ? lease_.holders() : std::vector<OwnedLease::Holder>();
}

/// As the keys are now. Those of rails that keys don't fence are a matter of the rail.
void GrantState::cut_holders() {
  cuts_.clear();
  for (const KeyPtr& key : parts_.keys)
    if (key->shared() && !never_fenced_.contains(key->rail()))
      cuts_.push_back({key, key->number()});
}

void GrantState::cut_all() {
  const Lock lock(mutex_);
  if (!lease_.over()) cut_holders();
}

std::vector<GrantState::KeyPtr> GrantState::uncut() const {
  const Lock lock(mutex_);
  return uncut_keys();
}

std::vector<GrantState::KeyPtr> GrantState::uncut_keys() const {
  std::vector<KeyPtr> keys;
  for (const auto& [key, number] : cuts_)
    if (!key->closed_through(number)) keys.push_back(key);
  return keys;
}

RenewedKey GrantState::renewed(const ExtentKey& key) const {
  return {parts_.description.lease, key.rail(),    key.part().offset, key.value(),
          epoch_key(key.rail()),    key.why_lost()};
}

std::vector<RenewedKey> GrantState::renewed() const {
  const auto reopened = [&] {
    const Lock lock(mutex_);
    return reopened_;
  }();
  std::vector<RenewedKey> keys;
  for (std::size_t i = 0; i < parts_.keys.size(); ++i) {
    RenewedKey key = renewed(*parts_.keys[i]);
    if (reopened.contains(key.rail) || key.why_lost || key.key != description().keys[i].key)
      keys.push_back(std::move(key));
  }
  return keys;
}

GrantDescription GrantState::current() const {
  GrantDescription described = description();
  for (const RenewedKey& renewed : renewed()) {
    const auto of_part = [&](const RailKey& key) {
      return key.rail == renewed.rail && key.part.offset == renewed.from;
    };
    for (RailKey& key : described.keys)
      if (of_part(key)) key.key = renewed.key;
    for (RailKey& key : described.epoch_keys)
      if (key.rail == renewed.rail) key.key = renewed.epoch_key;
    if (!renewed.why_lost) continue;
    std::erase_if(described.keys, of_part);
    const bool some = std::any_of(described.keys.begin(), described.keys.end(),
                                  [&](const RailKey& key) { return key.rail == renewed.rail; });
    // It is staged as others are.
    if (!some && described.place.kind == MemoryKind::device)
      described.bounced.push_back({renewed.rail, *renewed.why_lost});
  }
  return described;
}

std::vector<GrantState::KeyPtr> GrantState::keys_with(std::uint32_t rail) const {
  std::vector<KeyPtr> keys;
  for (const KeyPtr& key : parts_.keys)
    if (key->rail() == rail && !key->closed()) keys.push_back(key);
  return keys;
}

std::uint64_t GrantState::epoch_key(std::uint32_t rail) const {
  if (parts_.epoch)
    for (const RailKey& key : parts_.epoch->keys())
      if (key.rail == rail) return key.key;
  return 0;
}

void GrantState::rail_closes(std::uint32_t rail) {
  const Lock closing(closing_);
  const Lock lock(mutex_);
  if (lease_.held()) return;
  for (const KeyPtr& key : keys_with(rail))
    if (!key->shared()) key->retire();
  retired_.insert(rail);
}

GrantState::Reopened GrantState::rail_opened(std::uint32_t rail, bool opened) {
  const Lock closing(closing_);
  const auto keys = opened ? keys_with(rail) : std::vector<KeyPtr>();
  const bool all_lost =
      !keys.empty() && std::all_of(keys.begin(), keys.end(),
                                   [](const KeyPtr& key) { return key->why_lost().has_value(); });
  Reopened found;
  for (const KeyPtr& key : keys) found.keys.push_back(renewed(*key));
  const Lock lock(mutex_);
  // Operations posted with its keys went with the rail, and the keys do not come back.
  if (retired_.contains(rail) || all_lost) parts_.unfenced.erase(rail);
  if (!lease_.held() || keys.empty()) return {};
  reopened_.insert(rail);
  found.holders = lease_.holders();
  return found;
}

void GrantState::close() {
  close_keys();
  // Not even those that could not be closed may outlive their rails.
  for (const KeyPtr& key : parts_.keys)
    if (!key->shared()) key->drop();
}

/// False if one of them can't keep out what a peer has begun. Those that it shares stay.
bool GrantState::close_keys() {
  const Lock closing(closing_);
  bool all = true;
  for (const KeyPtr& key : parts_.keys)
    if (!key->shared()) all = key->close() && all;
  keys_kept_ = !all;
  return all;
}

bool GrantState::own_keys_closed() const {
  return std::all_of(parts_.keys.begin(), parts_.keys.end(),
                     [](const KeyPtr& key) { return key->shared() || key->closed(); });
}

Result<std::vector<Range>> normalise(std::span<const Range> ranges, std::uint64_t size) {
  if (ranges.empty()) return std::vector<Range>{{0, size}};
  std::vector<Range> sorted(ranges.begin(), ranges.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const Range& a, const Range& b) { return a.offset < b.offset; });
  std::vector<Range> merged;
  for (const Range& range : sorted) {
    if (range.offset > size || range.length > size - range.offset)
      return fail(Code::invalid_argument,
                  fmt::format("{} bytes at {} leave the segment, which has {}", range.length,
                              range.offset, size));
    if (range.length == 0) return fail(Code::invalid_argument, "a granted range is empty");
    if (!merged.empty() && range.offset <= merged.back().offset + merged.back().length) {
      const std::uint64_t end =
          std::max(merged.back().offset + merged.back().length, range.offset + range.length);
      merged.back().length = end - merged.back().offset;
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

}  // namespace weft::core
