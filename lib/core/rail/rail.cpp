#include "rail/rail.hpp"

#include <utility>

#include "base/leak.hpp"
#include "peer/peer_state.hpp"

namespace weft::core {
namespace {

// libfabric's FI_ADDR_UNSPEC: a post to it is refused.
constexpr providers::FabricAddress nowhere = ~providers::FabricAddress{0};

std::vector<std::unique_ptr<Transport>> decorators(const TransportDecorator& decorate, Rma& rma,
                                                   Bounce& bounce) {
  std::vector<std::unique_ptr<Transport>> both;
  if (!decorate) return both;
  both.push_back(decorate(rma));
  both.push_back(decorate(bounce));
  return both;
}

}  // namespace

Rail::Rail(std::uint32_t index, std::string name, std::unique_ptr<providers::Endpoint> endpoint,
           const Settings& settings, const Hooks& hooks)
    : index_(index),
      name_(std::move(name)),
      plan_(settings.plan),
      endpoint_(std::move(endpoint)),
      rma_(*endpoint_, index, plan_.chunk),
      bounce_(*endpoint_, index, settings.bounce, hooks.find_grant, hooks.flush, hooks.tell),
      decorators_(decorators(hooks.decorate, rma_, bounce_)),
      scheduler_(index, name_, plan_.window, decorators_.empty() ? rma_ : *decorators_[0],
                 decorators_.empty() ? bounce_ : *decorators_[1], gpu_copies_),
      messenger_(*endpoint_, name_, settings.messages, hooks.on_broken, hooks.tell, hooks.flush) {}

Rail::~Rail() {
  // A NIC may write to posted buffers until then; they are unregistered and freed below.
  shut();
  const bool settled = settle(Deadline::now());
  orphans_.list = scheduler_.take_orphans();
  if (settled) return;
  log(LogLevel::error, "rail {}: a device does not end its copies: their memory is kept", name_);
  bounce_.keep_buffers();
  // Never given back, and so never quiescent.
  leak(std::exchange(orphans_.list, {}));
}

Result<void> Rail::reach(const std::shared_ptr<PeerState>& peer, std::uint32_t theirs) {
  Route& route = *peer->route_by_rail[index_];
  const Lock lock(reaching_);
  if (route.addresses.empty()) {
    std::erase_if(reached_, [](const auto& each) { return each.expired(); });
    reached_.push_back(peer);
    route.opening = openings_;
  }
  if (!reopening_) return find_way(*peer, route, theirs);
  // Nothing is posted before the way is found with all others.
  route.addresses.try_emplace(theirs, nowhere);
  return {};
}

Result<void> Rail::find_way(const PeerState& peer, Route& route, std::uint32_t theirs) {
  const Blob told = peer.rail_address(theirs);
  auto address = peer.process ? endpoint_->insert_of(told, peer.process) : endpoint_->insert(told);
  if (!address) return fail(std::move(address.error().with_rail(name_)));
  const auto [known, first] = route.addresses.try_emplace(theirs, *address);
  const providers::FabricAddress before = first ? nowhere : known->second.exchange(*address);
  if (before != nowhere) left_behind_.push_back(before);
  // A peer that moves all the time must not fill the address vector.
  constexpr std::size_t most_left_behind = 64;
  if (left_behind_.size() > most_left_behind) {
    endpoint_->remove(left_behind_.front());
    left_behind_.pop_front();
  }
  return {};
}

void Rail::suspend() {
  suspended_ = true;
  endpoint_->suspend();
}

Result<void> Rail::reopen() {
  {
    const Lock lock(reaching_);
    reopening_ = true;
  }
  auto opened = endpoint_->reopen();
  const Lock lock(reaching_);
  reopening_ = false;
  if (!opened && opened.error().code() == Code::quarantined)  // it is not even closed
    return fail(std::move(opened.error().with_rail(name_)));
  ++openings_;
  left_behind_.clear();
  closed_ = !opened;
  if (!opened) return fail(std::move(opened.error().with_rail(name_)));
  for (const auto& weak : reached_) {
    const auto peer = weak.lock();
    if (!peer) continue;
    Route& route = *peer->route_by_rail[index_];
    for (auto& [theirs, whereto] : route.addresses) whereto = nowhere;
    if (peer->why_down()) continue;
    for (const auto& [theirs, whereto] : route.addresses)
      if (auto found = find_way(*peer, route, theirs); !found) {
        log(LogLevel::warning, "rail {}: {} can't be reached any more: {}", name_,
            peer->introduction.name, found.error().to_string());
      }
    route.opening = openings_;
  }
  return {};
}

void Rail::resume() {
  suspended_ = false;
  removed_addresses_.clear();
  endpoint_->resume();
  // Answers may have been lost with it. Messages to us were not: their senders see peer_moved().
  for (const auto& peer : reached_peers()) bounce_.cut(*peer->route_by_rail[index_]);
  reap();
  count();
}

std::vector<std::shared_ptr<PeerState>> Rail::reached_peers() {
  std::vector<std::shared_ptr<PeerState>> all;
  const Lock lock(reaching_);
  for (const auto& weak : reached_)
    if (auto peer = weak.lock()) all.push_back(std::move(peer));
  return all;
}

void Rail::peer_moved(const PeerState& peer) {
  Route& route = *peer.route_by_rail[index_];
  if (route.dead) return;
  route.works();  // failures before were the old address's fault
  bounce_.cut(route);
  if (&peer.message_rail() == this) messenger_.peer_moved(peer);
}

Result<void> Rail::add_peer(const std::shared_ptr<PeerState>& peer, std::uint64_t own_token) {
  Route& route = *peer->route_by_rail[index_];
  route.added = true;
  ++peers_;
  bounce_.add_peer(peer, route, own_token);
  return rma_.prepare().and_then([&]() -> Result<void> {
    if (&peer->message_rail() != this) return {};
    return messenger_.add_peer(peer, own_token);
  });
}

void Rail::hear(const PeerState& peer, const BounceCredits& credits) {
  if (Route* route = peer.route_by_rail[index_]) bounce_.hear(*route, credits);
}

void Rail::tidy() {
  messenger_.tidy();
  bounce_.tidy();
  if (peers_ == 0) poll_some();  // it is not looked at else
}

/// For what ends at once.
void Rail::poll_some() {
  constexpr int looks = 64;
  for (int look = 0; look < looks && endpoint_->poll() > 0; ++look) {
  }
}

void Rail::peer_died(const std::shared_ptr<PeerState>& peer) {
  Route* route = peer->route_by_rail[index_];
  if (route == nullptr || route->dead) return;
  if (!route->added) {
    route->dead = true;
    return bury(*route);
  }
  // What had arrived before the peer went still counts.
  poll_some();
  --peers_;
  scheduler_.peer_died(*route);
  if (&peer->message_rail() == this) {
    messenger_.peer_died(*peer);
    peer->mailbox.close(peer->down_error());
  }
  dying_.push_back(peer);
  reap();
  count();
}

/// Addresses with operations outstanding stay: libfabric's shm (1.17) crashes without them.
void Rail::reap() {
  std::erase_if(dying_, [this](const auto& peer) {
    const Route& route = *peer->route_by_rail[index_];
    if (route.operations > 0 || messenger_.sends_to(*peer)) return false;
    bury(route);
    return true;
  });
}

/// Takes the peer's addresses out, but not at once: something of the peer's may still be on its way
/// to us, and libfabric's shm (1.17) reads unmapped memory when it comes from an address that was
/// removed.
void Rail::bury(const Route& route) {
  constexpr std::size_t long_dead = 16;
  const Lock lock(reaching_);
  auto& buried = removed_addresses_.emplace_back(left_behind_.begin(), left_behind_.end());
  left_behind_.clear();
  // Those of before it was opened again are gone.
  if (route.opening == openings_)
    for (const auto& [index, address] : route.addresses)
      if (address != nowhere) buried.push_back(address);
  for (; removed_addresses_.size() > long_dead && !suspended_; removed_addresses_.pop_front())
    for (const providers::FabricAddress address : removed_addresses_.front())
      endpoint_->remove(address);
}

InlineCopied Rail::copy_inline(const PreparedState& prepared, const Picks& picks, bool trusted,
                               Clock::time_point until) {
  if (!decorators_.empty()) return {};  // they are to see every chunk
  const InlineCopied copied = rma_.copy_inline(prepared, picks, trusted, until);
  // The proof is an operation too.
  counters_.operations_at_once.fetch_add(copied.operations + (copied.proven ? 1 : 0),
                                         std::memory_order_relaxed);
  counters_.bytes_at_once.fetch_add(copied.bytes, std::memory_order_relaxed);
  return copied;
}

bool Rail::copy_inline(const PreparedState& prepared, const Chunk& chunk) {
  if (!decorators_.empty() || !rma_.copy_inline(prepared, chunk)) return false;
  counters_.operations_at_once.fetch_add(1, std::memory_order_relaxed);
  counters_.bytes_at_once.fetch_add(chunk.length, std::memory_order_relaxed);
  return true;
}

void Rail::begin(const std::shared_ptr<TransferState>& transfer, Clock::time_point now) {
  scheduler_.begin(transfer, now);
  count();
}

std::size_t Rail::progress(Clock::time_point now) {
  // Posts first: the same round tells of those that end at once.
  std::size_t done = scheduler_.pump(now);
  done += endpoint_->poll();
  done += scheduler_.progress();
  done += messenger_.pump();
  if (done > 0) {
    if (!dying_.empty()) reap();
    count();
  }
  return done;
}

bool Rail::has_work() const noexcept {
  return scheduler_.has_work() || messenger_.has_work() || bounce_.has_work() || copying();
}

void Rail::count() {
  counters_.operations.store(scheduler_.operations_done(), std::memory_order_relaxed);
  counters_.bytes.store(scheduler_.bytes_done(), std::memory_order_relaxed);
  counters_.in_flight.store(scheduler_.in_flight() - bounce_.waiting(), std::memory_order_relaxed);
  counters_.lost.store(scheduler_.lost(), std::memory_order_relaxed);
}

}  // namespace weft::core
