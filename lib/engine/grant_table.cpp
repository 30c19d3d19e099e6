#include "engine/grant_table.hpp"

#include <algorithm>

#include "peer/peer_state.hpp"

namespace weft::core {
namespace {

// Lookups that one peer may have waiting here.
constexpr std::size_t max_waiting_lookups = 1024;

/// What waits under a request number, which is then free; null if nothing does.
template <typename Waiting>
std::shared_ptr<Waiting> take_from(
    std::unordered_map<std::uint64_t, std::shared_ptr<Waiting>>& requests, std::uint64_t request) {
  auto entry = requests.extract(request);
  return entry ? std::move(entry.mapped()) : nullptr;
}

}  // namespace

void GrantTable::add(const std::shared_ptr<GrantState>& grant) {
  const std::lock_guard lock(mutex_);
  grants_[grant->description().lease] = grant;
}

std::shared_ptr<GrantState> GrantTable::find(std::uint64_t lease) const {
  const std::lock_guard lock(mutex_);
  const auto entry = grants_.find(lease);
  return entry == grants_.end() ? nullptr : entry->second;
}

std::vector<std::shared_ptr<GrantState>> GrantTable::of_segment(const SegmentState& segment) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<GrantState>> found;
  for (const auto& [lease, grant] : grants_)
    if (&grant->segment() == &segment) found.push_back(grant);
  return found;
}

void GrantTable::remove(std::uint64_t lease) {
  const std::lock_guard lock(mutex_);
  grants_.erase(lease);
  std::erase_if(published_, [&](const auto& each) { return each.second.lease == lease; });
}

void GrantTable::clear() {
  const std::lock_guard lock(mutex_);
  // Their keys must not outlive the rails, as handles of the application's may.
  for (const auto& [lease, grant] : grants_) grant->close();
  for (const auto& grant : quarantined_) grant->close();
  grants_.clear();
  quarantined_.clear();
  published_.clear();
  askers_.clear();
}

void GrantTable::quarantine(const std::shared_ptr<GrantState>& grant) {
  const std::lock_guard lock(mutex_);
  if (std::find(quarantined_.begin(), quarantined_.end(), grant) == quarantined_.end())
    quarantined_.push_back(grant);
}

bool GrantTable::quarantined(const SegmentState& segment) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(quarantined_.begin(), quarantined_.end(),
                     [&](const auto& grant) { return &grant->segment() == &segment; });
}

std::vector<GrantTable::Asker> GrantTable::publish(const std::string& name, Blob grant,
                                                   std::uint64_t lease) {
  const std::lock_guard lock(mutex_);
  published_[name] = {std::move(grant), lease};
  const auto waiting = askers_.find(name);
  if (waiting == askers_.end()) return {};
  std::vector<Asker> askers = std::move(waiting->second);
  askers_.erase(waiting);
  return askers;
}

Result<std::optional<Blob>> GrantTable::ask(const std::string& name, Asker asker) {
  const std::lock_guard lock(mutex_);
  const auto entry = published_.find(name);
  if (entry != published_.end()) return std::optional(entry->second.grant);
  std::size_t waiting = 0;
  for (const auto& [other, askers] : askers_)
    waiting += static_cast<std::size_t>(std::count_if(
        askers.begin(), askers.end(), [&](const Asker& each) { return each.link == asker.link; }));
  if (waiting >= max_waiting_lookups)
    return fail(Code::queue_full, "too many lookups of this peer wait for their names");
  askers_[name].push_back(asker);
  return std::optional<Blob>();
}

void GrantTable::forget(Asker asker) {
  const std::lock_guard lock(mutex_);
  for (auto& [name, askers] : askers_)
    std::erase_if(askers, [&](const Asker& each) {
      return each.link == asker.link && each.request == asker.request;
    });
  std::erase_if(askers_, [](const auto& each) { return each.second.empty(); });
}

void GrantTable::add_lookup(std::uint64_t request, std::shared_ptr<LookupState> lookup) {
  const std::lock_guard lock(mutex_);
  lookups_[request] = std::move(lookup);
}

std::shared_ptr<LookupState> GrantTable::take_lookup(std::uint64_t request) {
  const std::lock_guard lock(mutex_);
  return take_from(lookups_, request);
}

void GrantTable::add_revoke(std::uint64_t request, std::shared_ptr<RevokeWait> wait) {
  const std::lock_guard lock(mutex_);
  revokes_[request] = std::move(wait);
}

void GrantTable::remove_revoke(std::uint64_t request) {
  const std::lock_guard lock(mutex_);
  revokes_.erase(request);
}

void GrantTable::revoke_confirmed(std::uint64_t request, LinkId link) {
  settle_revoke(request, link, false);
}

void GrantTable::peer_lost(std::uint64_t request, LinkId link) {
  settle_revoke(request, link, true);
}

void GrantTable::settle_revoke(std::uint64_t request, LinkId link, bool went) {
  std::shared_ptr<RevokeWait> wait;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = revokes_.find(request);
    if (entry == revokes_.end()) return;
    wait = entry->second;
  }
  bool all = false;
  {
    const std::lock_guard lock(wait->mutex);
    if (std::erase(wait->open, link) == 0) return;
    wait->some_went = wait->some_went || went;
    all = wait->open.empty();
  }
  if (all) wait->complete(std::nullopt);
}

std::shared_ptr<RemoteState> GrantTable::imported(std::uint64_t lease,
                                                  const PeerState& peer) const {
  const std::lock_guard lock(mutex_);
  const auto entry = imports_.find(lease);
  auto remote = entry == imports_.end() ? nullptr : entry->second.lock();
  return remote && remote->peer().get() == &peer ? remote : nullptr;
}

std::shared_ptr<RemoteState> GrantTable::add_import(const std::shared_ptr<RemoteState>& remote) {
  const std::lock_guard lock(mutex_);
  // Forgotten imports would otherwise pile up; looked for now and then, so that adding stays cheap.
  if ((imports_.size() & (imports_.size() + 1)) == 0)
    std::erase_if(imports_, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<RemoteState>& entry = imports_[remote->description().lease];
  if (auto known = entry.lock(); known && known->peer() == remote->peer()) return known;
  entry = remote;
  return remote;
}

void GrantTable::forget_import(const RemoteState& remote) {
  const std::lock_guard lock(mutex_);
  const auto entry = imports_.find(remote.description().lease);
  if (entry != imports_.end() && entry->second.lock().get() == &remote) imports_.erase(entry);
}

void GrantTable::add_query(std::uint64_t request, std::shared_ptr<RemoteState> remote) {
  const std::lock_guard lock(mutex_);
  queries_[request] = std::move(remote);
}

std::shared_ptr<RemoteState> GrantTable::take_query(std::uint64_t request) {
  const std::lock_guard lock(mutex_);
  return take_from(queries_, request);
}

void GrantTable::link_down(LinkId link, const Error& why) {
  std::vector<std::shared_ptr<LookupState>> lost;
  std::vector<std::shared_ptr<RemoteState>> unconfirmed;
  std::vector<std::uint64_t> revokes;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [name, askers] : askers_)
      std::erase_if(askers, [&](const Asker& each) { return each.link == link; });
    std::erase_if(askers_, [](const auto& each) { return each.second.empty(); });
    std::erase_if(lookups_, [&](const auto& each) {
      if (each.second->link != link) return false;
      lost.push_back(each.second);
      return true;
    });
    std::erase_if(queries_, [&](const auto& each) {
      if (each.second->peer()->link != link) return false;
      unconfirmed.push_back(each.second);
      return true;
    });
    for (const auto& [request, wait] : revokes_) revokes.push_back(request);
  }
  for (const auto& lookup : lost) lookup->complete(why);
  for (const auto& remote : unconfirmed) remote->confirmed().complete(why);
  for (const std::uint64_t request : revokes) settle_revoke(request, link, true);
}

}  // namespace weft::core
