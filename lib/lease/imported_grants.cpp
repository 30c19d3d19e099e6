#include "lease/imported_grants.hpp"

#include <utility>
#include <vector>

#include "base/later.hpp"
#include "peer/peer_state.hpp"

namespace weft::core {
namespace {

// Two machines' clocks are never compared, but both have to count seconds alike: crystals do so to
// some hundred millionths, and this is five times as much.
constexpr int drift = 1000;

/// When the holder stops by itself: not after the owner, who counted from after the question.
Clock::time_point end_of(Clock::time_point asked, Nanoseconds left) {
  return later(asked, left - left / drift);
}

}  // namespace

ImportedGrants::Key ImportedGrants::key_of(const RemoteState& remote) {
  return {remote.peer()->link, remote.description().lease};
}

ImportedGrants::RemotePtr ImportedGrants::find(std::uint64_t lease, const PeerState& peer) const {
  const std::lock_guard lock(mutex_);
  const auto entry = imports_.find({peer.link, lease});
  return entry == imports_.end() ? nullptr : entry->second.lock();
}

/// What is told about a lease is told in the order in which the table changes: the owner must not
/// hear of a question before it hears that an earlier import was given back.
ImportedGrants::Added ImportedGrants::add(const RemotePtr& remote) {
  const PeerState& owner = *remote->peer();
  const auto answer = std::make_shared<CompletionSlot>();
  RemotePtr known;
  {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<RemoteState>& entry = imports_[key_of(*remote)];
    known = entry.lock();
    // One that is gone has no transfers any more: they would keep it.
    if (!known) entry = known = remote;
    const std::uint64_t request = next_request_++;
    queries_[request] = {known, answer, Clock::now()};
    tell_(owner.link, GrantQuery{request, known->description().lease});
  }
  if (!owner.up()) link_down(owner.link, owner.down_error());
  return {known, answer};
}

std::vector<ImportedGrants::RemotePtr> ImportedGrants::of(const PeerState* peer) const {
  std::vector<RemotePtr> found;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, weak] : imports_)
    if (auto remote = weak.lock(); remote && (!peer || key.first == peer->link))
      found.push_back(std::move(remote));
  return found;
}

void ImportedGrants::give_back(const PeerState* peer) {
  std::vector<RemotePtr> alive;  // until the lock is gone
  const std::lock_guard lock(mutex_);
  std::erase_if(imports_, [&](const auto& each) {
    const auto& [key, weak] = each;
    if (peer && key.first != peer->link) return false;
    if (const RemotePtr remote = weak.lock()) {
      alive.push_back(remote);
      remote->users().close();
      if (!remote->users().idle()) return false;
    }
    tell_(key.first, RevokeConfirmed{key.second});
    return true;
  });
}

void ImportedGrants::confirm(const Key& key) {
  const std::lock_guard lock(mutex_);
  imports_.erase(key);
  tell_(key.first, RevokeConfirmed{key.second});
}

void ImportedGrants::take(const PeerState& from, const GrantStatus& status) {
  Query query;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = queries_.find(status.request);
    if (entry == queries_.end() || entry->second.remote->peer().get() != &from) return;
    query = std::move(entry->second);
    queries_.erase(entry);
  }
  RemoteState& remote = *query.remote;
  if (status.held) {
    for (const RenewedKey& key : status.renewed) remote.renew(key);
    remote.set_expires(end_of(query.asked, status.left));
    return query.answer->complete(std::nullopt);
  }
  remote.users().close();
  {
    const std::lock_guard lock(mutex_);
    imports_.erase(key_of(remote));
  }
  query.answer->complete(Error(Code::stale, "the grant holds no more: its owner ended it"));
}

/// The confirmation goes out when the last operation under the grant has ended.
void ImportedGrants::take(const PeerState& from, const RevokeRequest& request) {
  const auto confirmed = [this, key = Key(from.link, request.lease)] { confirm(key); };
  const RemotePtr remote = find(request.lease, from);
  if (!remote) return confirmed();
  remote->users().close();
  stop_(*remote, remote->ended_error());
  remote->users().when_idle(confirmed);
}

void ImportedGrants::take(const PeerState& from, const std::vector<RenewedKey>& renewed) {
  for (const RenewedKey& key : renewed)
    if (const RemotePtr remote = find(key.lease, from)) remote->renew(key);
}

void ImportedGrants::link_down(LinkId link, const Error& why) {
  std::vector<std::shared_ptr<CompletionSlot>> unanswered;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(imports_, [&](const auto& each) { return each.first.first == link; });
    std::erase_if(queries_, [&](const auto& each) {
      if (each.second.remote->peer()->link != link) return false;
      unanswered.push_back(each.second.answer);
      return true;
    });
  }
  for (const auto& answer : unanswered) answer->complete(why);
}

}  // namespace weft::core
