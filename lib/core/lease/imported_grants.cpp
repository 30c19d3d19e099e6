#include "lease/imported_grants.hpp"

#include <unistd.h>

#include <utility>
#include <vector>

#include "base/saturating_add.hpp"
#include "base/sync.hpp"
#include "peer/peer_state.hpp"

namespace weft::core {
namespace {

// Two machines' clocks are never compared, but both have to count seconds alike: crystals do so to
// some hundred millionths, and this is five times as much.
constexpr int drift = 1000;

/// When the holder stops by itself: not after the owner, which counted from after the question.
Clock::time_point end_of(Clock::time_point asked, Nanoseconds left) {
  return saturating_add(asked, left - left / drift);
}

}  // namespace

ImportedGrants::Key ImportedGrants::key_of(const RemoteState& remote) {
  return {remote.peer()->link, remote.description().lease};
}

ImportedGrants::RemotePtr ImportedGrants::find(std::uint64_t lease, const PeerState& peer) const {
  const Lock lock(mutex_);
  const auto entry = imports_.find({peer.link, lease});
  return entry == imports_.end() ? nullptr : entry->second.remote.lock();
}

/// Mappings of an import that is gone, perhaps not closed yet.
std::shared_ptr<Borrowed> ImportedGrants::left_over(const Key& key) const {
  const auto entry = imports_.find(key);
  const bool gone = entry != imports_.end() && entry->second.remote.expired();
  return gone && entry->second.borrowed->stop() ? entry->second.borrowed : nullptr;
}

/// Notices about a lease go out in the order in which the table changes: the owner must not
/// hear of a question before it hears that an earlier import was given back.
ImportedGrants::Added ImportedGrants::add(const RemotePtr& remote) {
  const PeerState& owner = *remote->peer();
  const auto answer = std::make_shared<CompletionSlot>();
  RemotePtr known;
  {
    Lock lock(mutex_);
    while (const auto borrowed = left_over(key_of(*remote))) {
      lock.unlock();
      borrowed->close();
      lock.lock();
    }
    Import& entry = imports_[key_of(*remote)];
    known = entry.remote.lock();
    // One that is gone has no transfers any more: they would keep it.
    if (!known) {
      if (entry.strays) remote->take_over(entry.strays);
      entry = {remote, remote->borrowed(), remote->strays(), entry.held};
      known = remote;
    }
    ask(known, answer);
  }
  if (!owner.up()) link_down(owner.link, owner.down_error());
  return {known, answer};
}

void ImportedGrants::ask(const RemotePtr& remote, const std::shared_ptr<CompletionSlot>& answer) {
  const std::uint64_t request = next_request_++;
  queries_[request] = {remote, answer, Clock::now()};
  tell_(remote->peer()->link, GrantQuery{request, remote->description().lease, maps_()});
}

std::vector<ImportedGrants::Import> ImportedGrants::imports_of(const PeerState* peer) const {
  std::vector<Import> found;
  const Lock lock(mutex_);
  for (const auto& [key, import] : imports_)
    if (!peer || key.first == peer->link) found.push_back(import);
  return found;
}

std::vector<ImportedGrants::RemotePtr> ImportedGrants::of(const PeerState* peer) const {
  std::vector<RemotePtr> found;
  for (const Import& import : imports_of(peer))
    if (auto remote = import.remote.lock()) found.push_back(std::move(remote));
  return found;
}

void ImportedGrants::give_back(const PeerState* peer) {
  for (const Import& import : imports_of(peer)) {
    const RemotePtr remote = import.remote.lock();
    if (remote) remote->give_back();
    if (!remote || remote->users().idle()) import.borrowed->close();
  }
  std::vector<RemotePtr> alive;  // until the lock is gone
  const Lock lock(mutex_);
  std::erase_if(imports_, [&](const auto& each) {
    const auto& [key, import] = each;
    if (peer && key.first != peer->link) return false;
    if (const RemotePtr remote = import.remote.lock()) {
      alive.push_back(remote);
      remote->give_back();
      if (!remote->users().idle()) return false;
    }
    if (import.borrowed->stop()) return false;  // imported since: it is lost, and not confirmed
    tell_(key.first, RevokeConfirmed{key.second, import.strays->any()});
    return true;
  });
}

/// The owner may free the memory once it hears: before that nothing of it may be mapped.
void ImportedGrants::close_and_confirm(const Key& key, const std::shared_ptr<Borrowed>& borrowed) {
  if (!borrowed->stop()) return confirm(key);
  aside_([this, key, borrowed] {
    borrowed->close();
    confirm(key);
  });
}

void ImportedGrants::confirm(const Key& key) {
  const Lock lock(mutex_);
  const auto entry = imports_.find(key);
  const bool strays = entry != imports_.end() && entry->second.strays->any();
  if (entry != imports_.end()) imports_.erase(entry);
  tell_(key.first, RevokeConfirmed{key.second, strays});
}

void ImportedGrants::take(const PeerState& from, const GrantStatus& status) {
  Query query;
  bool given_back = false;  // since the question
  {
    const Lock lock(mutex_);
    const auto entry = queries_.find(status.request);
    if (entry == queries_.end() || entry->second.remote->peer().get() != &from) return;
    query = std::move(entry->second);
    queries_.erase(entry);
    const auto import = imports_.find(key_of(*query.remote));
    given_back = import == imports_.end();
    if (!given_back && status.held) import->second.held = true;
  }
  RemoteState& remote = *query.remote;
  if (status.held && !given_back) {
    for (const RenewedKey& key : status.renewed) remote.renew(key);
    remote.holds_until(end_of(query.asked, status.left));
    if (status.lent)
      remote.borrowed()->offer(*status.lent, from.introduction.pid == getpid());
    else if (!status.not_lent.empty())
      remote.borrowed()->refuse(status.not_lent);
    return query.answer->complete(std::nullopt);
  }
  remote.users().close();
  {
    // A holder may still use it: the owner asks it to stop, and waits for the answer.
    const Lock lock(mutex_);
    const auto entry = imports_.find(key_of(remote));
    if (entry != imports_.end() && !entry->second.held) imports_.erase(entry);
  }
  query.answer->complete(Error(Code::stale, status.held ? "the grant was given back meanwhile"
                                                        : "the grant was ended by its owner"));
}

/// The confirmation goes out when the last operation under the grant has ended.
void ImportedGrants::take(const PeerState& from, const RevokeRequest& request) {
  const Key key(from.link, request.lease);
  Import import;
  {
    const Lock lock(mutex_);
    const auto entry = imports_.find(key);
    if (entry != imports_.end()) import = entry->second;
  }
  if (!import.borrowed) return confirm(key);
  const auto confirmed = [this, key, borrowed = import.borrowed] {
    close_and_confirm(key, borrowed);
  };
  const RemotePtr remote = import.remote.lock();
  if (!remote) return confirmed();
  remote->users().close();
  stop_(*remote, remote->ended_error());
  remote->users().when_idle(confirmed);
}

void ImportedGrants::rail_closed(const PeerState& owner, std::uint32_t rail) {
  for (const Import& import : imports_of(&owner)) import.strays->rail_closed(rail);
}

void ImportedGrants::take(const PeerState& from, const std::vector<RenewedKey>& renewed) {
  for (const RenewedKey& key : renewed)
    if (const RemotePtr remote = find(key.lease, from)) remote->renew(key);
}

/// What is posted from here on goes by the new keys. The answer goes out when the transfers have
/// ended that may have posted something by the old ones.
void ImportedGrants::take(const PeerState& from, const KeysReplaced& replaced) {
  take(from, replaced.renewed);
  if (replaced.request == 0) return;
  // Answers when the last transfer lets go of it.
  const std::shared_ptr<void> drained(nullptr, [this, link = from.link, request = replaced.request](
                                                   void*) { tell_(link, KeysDrained{request}); });
  for (const RemotePtr& remote : of(&from)) remote->users().when_left([drained] {});
}

/// The time that is left comes with the answer to a question: only then is it sure that this side
/// does not count from later than the owner.
void ImportedGrants::take(const PeerState& from, const LeaseRenewed& renewed) {
  const RemotePtr remote = find(renewed.lease, from);
  if (!remote) return;
  const Lock lock(mutex_);
  ask(remote, std::make_shared<CompletionSlot>());
}

/// The owner is gone, or out of reach: what it has lent is not kept longer than it is used.
void ImportedGrants::let_go(const Import& import) {
  if (!import.borrowed->stop()) return;
  const auto close = [aside = outliving_, borrowed = import.borrowed] {
    aside([borrowed] { borrowed->close(); });
  };
  const RemotePtr remote = import.remote.lock();
  if (!remote) return close();
  remote->users().close();
  remote->users().when_idle(close);
}

void ImportedGrants::link_down(LinkId link, const Error& why) {
  std::vector<std::shared_ptr<CompletionSlot>> unanswered;
  std::vector<Import> cut_off;
  std::vector<Query> unasked;  // until the lock is gone: the last to hold what was imported
  {
    const Lock lock(mutex_);
    std::erase_if(imports_, [&](const auto& each) {
      if (each.first.first != link) return false;
      cut_off.push_back(each.second);
      return true;
    });
    std::erase_if(queries_, [&](const auto& each) {
      if (each.second.remote->peer()->link != link) return false;
      unanswered.push_back(each.second.answer);
      unasked.push_back(each.second);
      return true;
    });
  }
  for (const auto& answer : unanswered) answer->complete(why);
  for (const Import& import : cut_off) let_go(import);
}

}  // namespace weft::core
