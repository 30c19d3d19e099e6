#include "lease/imported_grants.hpp"

#include <utility>
#include <vector>

#include "peer/peer_state.hpp"

namespace weft::core {
namespace {

// Two machines' clocks are never compared, but both have to count seconds alike: crystals do so to
// some hundred millionths, and this is five times as much.
constexpr int drift = 1000;

/// When the holder stops by itself: not after the owner, who counted from after the question.
Clock::time_point end_of(Clock::time_point asked, Nanoseconds left) {
  const Nanoseconds sure = left - left / drift;
  return sure < Clock::time_point::max() - asked ? asked + sure : Clock::time_point::max();
}

}  // namespace

ImportedGrants::RemotePtr ImportedGrants::find(std::uint64_t lease, const PeerState& peer) const {
  const std::lock_guard lock(mutex_);
  const auto entry = imports_.find(lease);
  auto remote = entry == imports_.end() ? nullptr : entry->second.lock();
  return remote && remote->peer().get() == &peer ? remote : nullptr;
}

ImportedGrants::Added ImportedGrants::add(const RemotePtr& remote) {
  RemotePtr known;
  {
    const std::lock_guard lock(mutex_);
    // Forgotten imports would otherwise pile up; looked for now and then, so that adding stays
    // cheap.
    if ((imports_.size() & (imports_.size() + 1)) == 0)
      std::erase_if(imports_, [](const auto& each) { return each.second.expired(); });
    std::weak_ptr<RemoteState>& entry = imports_[remote->description().lease];
    known = entry.lock();
    if (!known || known->peer() != remote->peer()) {
      known = remote;
      entry = remote;
    }
  }
  return {known, ask(known)};
}

/// The grant is in the table already, so that an end which comes before the answer finds it.
std::shared_ptr<CompletionSlot> ImportedGrants::ask(const RemotePtr& remote) {
  const PeerState& owner = *remote->peer();
  const auto answer = std::make_shared<CompletionSlot>();
  std::uint64_t request = 0;
  {
    const std::lock_guard lock(mutex_);
    request = next_request_++;
    queries_[request] = {remote, answer, Clock::now()};
  }
  tell_(owner.link, GrantQuery{request, remote->description().lease});
  if (!owner.up()) link_down(owner.link, owner.down_error());
  return answer;
}

std::vector<ImportedGrants::RemotePtr> ImportedGrants::of(const PeerState* peer) const {
  std::vector<RemotePtr> found;
  const std::lock_guard lock(mutex_);
  for (const auto& [lease, weak] : imports_)
    if (auto remote = weak.lock(); remote && (!peer || remote->peer().get() == peer))
      found.push_back(std::move(remote));
  return found;
}

void ImportedGrants::give_back(RemoteState& remote) {
  remote.users().close();
  if (remote.users().idle())
    tell_(remote.peer()->link, RevokeConfirmed{remote.description().lease});
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
    remote.set_expires(end_of(query.asked, status.left));
    return query.answer->complete(std::nullopt);
  }
  remote.users().close();
  query.answer->complete(Error(Code::stale, "the grant holds no more: its owner ended it"));
}

/// The confirmation goes out when the last operation under the grant has ended.
void ImportedGrants::take(const PeerState& from, const RevokeRequest& request) {
  const auto confirm = [this, link = from.link, lease = request.lease] {
    tell_(link, RevokeConfirmed{lease});
  };
  const RemotePtr remote = find(request.lease, from);
  if (!remote) return confirm();
  remote->users().close();
  stop_(*remote, Error(Code::stale, "the owner ended the grant").with_peer(from.introduction.name));
  remote->users().when_idle(confirm);
}

void ImportedGrants::link_down(LinkId link, const Error& why) {
  std::vector<std::shared_ptr<CompletionSlot>> unanswered;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(queries_, [&](const auto& each) {
      if (each.second.remote->peer()->link != link) return false;
      unanswered.push_back(each.second.answer);
      return true;
    });
  }
  for (const auto& answer : unanswered) answer->complete(why);
}

}  // namespace weft::core
