#include "services/peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.hpp"
#include "control/plane.hpp"
#include "peer/health.hpp"
#include "peer/pairing.hpp"

namespace weft::core {
namespace {

// For a borrower's word that it has let go: without it the memory is not free before its process
// has ended. Drivers take a while to unmap, and a loaded machine to let it answer.
constexpr auto return_time = std::chrono::seconds(2);

// A progress thread delivers what had come from a peer that is gone, and ends the waits for it. One
// that did not get to it in this time is stuck.
constexpr auto burial_time = std::chrono::milliseconds(250);

// The same for a peer that said goodbye, and thereby what has reached it: until a progress thread
// has told the transfers, or the application that makes progress itself has looked.
constexpr auto farewell_time = std::chrono::seconds(1);

// Posting receives for a new peer is a matter of microseconds; a thread that does not get to it in
// this time is stuck.
constexpr auto meeting_time = std::chrono::seconds(5);

/// Which of the peer's rails a rail has to know. Over NICs all of them, since those that serve some
/// memory may be any; over shared memory, which has no place, those that it is paired with.
std::vector<std::uint32_t> reached_by(const Route& route, const PairedRail& paired,
                                      const std::vector<std::uint32_t>& theirs) {
  if (!route.rail->capability().same_host_only) return theirs;
  std::vector<std::uint32_t> targets;
  for (const PairedRail::Target& target : paired.targets) targets.push_back(target.rail);
  return targets;
}

}  // namespace

Result<std::shared_ptr<PeerState>> Peers::connect(std::string_view address, Deadline deadline,
                                                  bool keep) {
  auto link = around_.control->connect(address, deadline, keep);
  if (!link) return fail(std::move(link.error()));
  if (auto peer = around_.table.find(*link)) {
    around_.table.claim(*link);
    return peer;
  }
  return fail(Code::peer_down, fmt::format("{} went away right after it was met", address));
}

Result<std::shared_ptr<PeerState>> Peers::wait_for(std::string_view name, Deadline deadline) {
  const std::string wanted(name);
  std::shared_ptr<PeerState> peer;
  around_.workers.wait(
      [&](Deadline until) {
        return (peer = around_.table.wait_up(wanted, until)) != nullptr || around_.gate.closing();
      },
      deadline);
  if (peer) return peer;
  if (around_.gate.closing()) return fail(Code::closed, "the engine is closed");
  return fail(Error(Code::timed_out, "no peer of that name came up in time").with_peer(wanted));
}

Result<std::shared_ptr<PeerState>> Peers::accept(Deadline deadline) {
  std::shared_ptr<PeerState> peer;
  around_.workers.wait(
      [&](Deadline until) {
        return (peer = around_.table.next_arrival(until)) != nullptr || around_.gate.closing();
      },
      deadline);
  if (peer) return peer;
  if (around_.gate.closing()) return fail(Code::closed, "the engine is closed");
  const Troubles troubles = [&] {
    const Lock lock(mutex_);
    return std::exchange(troubles_, {});
  }();
  if (troubles.count == 0) return fail(Code::timed_out, "nobody connected in time");
  return fail(Code::timed_out,
              fmt::format("nobody connected in time; {} connection{} came to nothing, the last: {}",
                          troubles.count, troubles.count == 1 ? "" : "s", troubles.last));
}

void Peers::refused(LinkEnd how, const Error& why) {
  log(LogLevel::info, "control connection: {}", why.to_string());
  if (around_.ledger) around_.ledger->rare().connection_refused(how);
  const Lock lock(mutex_);
  ++troubles_.count;
  troubles_.last = why.to_string();
}

Result<void> Peers::disconnect(PeerState& peer) {
  const Error why = Error(Code::closed, "this engine disconnected from the peer")
                        .with_peer(peer.introduction.name);
  around_.workers.end_those_of(peer, why);
  around_.imports.give_back(&peer);
  around_.grants.take_back_lent(peer.link, Deadline::in(return_time));
  around_.control->let_go(peer.introduction.name);
  around_.control->hang_up(peer.link, "it disconnected");
  return {};
}

Result<std::vector<RailOut>> Peers::meet(LinkId link, const Introduction& self,
                                         const Introduction& theirs, const Nearness& near) {
  auto peer = std::make_shared<PeerState>(
      around_.owner.engine, link, theirs, near.same_host,
      PeerState::Limits{around_.config.unclaimed_bytes, around_.config.send_queue,
                        around_.table.dropped_arrivals()});
  if (around_.ledger) peer->traffic = around_.ledger->traffic().of(theirs.name);
  peer->process = near.process;
  auto out = make_routes(peer, self, near);
  if (out && out->empty()) {
    peer->mailbox.when_room = [weak = std::weak_ptr(peer)] {
      if (const auto alive = weak.lock())
        alive->message_rail().worker().attend(alive->message_rail(), alive);
    };
    out = add_to_rails(peer, self.token);
  }
  if (!out || !out->empty()) {
    peer->set_down(out ? Error(Code::unavailable, "a rail does not reach the peer") : out.error());
    around_.workers.forget(peer);
    return out;
  }
  around_.table.add(peer);
  log(LogLevel::info, "met {} at {}: {}", theirs.name, theirs.address, peer->route_reason);
  if (!peer->fallback.empty() && peer->fallback != around_.rails.fallback())
    log(LogLevel::warning, "a slower way is taken to {}: {}", theirs.name, peer->fallback);
  return out;
}

Result<std::vector<RailOut>> Peers::add_to_rails(const std::shared_ptr<PeerState>& peer,
                                                 std::uint64_t own_token) {
  std::vector<RailOut> out;
  for (const auto& route : peer->routes) {
    // Shared with the task, which may run late.
    const auto added = std::make_shared<Result<void>>();
    const bool ran = around_.workers.run_on(
        route->rail->worker(),
        [added, peer, rail = route->rail, own_token] { *added = rail->add_peer(peer, own_token); },
        Deadline::in(meeting_time));
    if (!ran) return fail(Code::internal, "a progress thread is stuck");
    if (!*added) out.push_back({route->rail->index(), added->error().message()});
  }
  return out;
}

Result<std::vector<RailOut>> Peers::make_routes(const std::shared_ptr<PeerState>& met,
                                                const Introduction& self, const Nearness& near) {
  PeerState& peer = *met;
  peer.route_by_rail.resize(around_.rails.size());
  Pairing pairing = pair_rails(self, peer.introduction, near);
  peer.route_reason = std::move(pairing.reason);
  peer.fallback = std::move(pairing.fallback);
  peer.not_used = std::move(pairing.not_used);
  peer.their_rails = pairing.theirs;
  if (pairing.rails.empty())
    return fail(Code::unavailable, fmt::format("{} and {} can't reach each other: {}", self.name,
                                               peer.introduction.name, peer.route_reason));
  const RailAddress& ours = self.rails[pairing.rails.front().own];
  if (peer.fallback.empty() && !ours.same_host_only) peer.fallback = around_.rails.fallback();
  std::vector<RailOut> out;
  for (const PairedRail& paired : pairing.rails)
    if (auto made = make_route(met, pairing, paired); !made)
      out.push_back({paired.own, made.error().message()});
  return out;
}

Result<void> Peers::make_route(const std::shared_ptr<PeerState>& met, const Pairing& pairing,
                               const PairedRail& paired) {
  PeerState& peer = *met;
  // Belongs to the peer from now on, whatever comes: its addresses are taken out again with it.
  Route* route = peer.routes.emplace_back(std::make_unique<Route>()).get();
  peer.route_by_rail[paired.own] = route;
  route->rail = around_.rails[paired.own];
  route->same_host = peer.same_host;
  route->rail_name = route->rail->name();
  for (const std::uint32_t theirs : reached_by(*route, paired, pairing.theirs))
    if (auto reached = route->rail->reach(met, theirs); !reached) return reached;
  for (const auto& [target, weight] : paired.targets) {
    route->targets.add({target, &route->addresses.at(target)}, weight);
    const std::size_t packet = peer.introduction.rails[target].packet;
    route->packet = std::min(route->packet, std::max(packet, Messenger::least_packet));
  }
  return {};
}

void Peers::up(LinkId link, bool incoming) {
  const auto peer = around_.table.find(link);
  if (!peer) return;
  around_.table.set_up(peer, incoming);
  around_.reopening.peer_up(*peer);
  if (around_.config.peer_events)
    around_.events.push({Event::Kind::peer_up, 0, State::active, peer->introduction.name,
                         std::nullopt, Peer(peer, around_.owner.handle)});
}

void Peers::health(LinkId link, Health health) {
  const auto peer = around_.table.find(link);
  if (!peer) return;
  peer->set_health(health);
  log(health == Health::silent ? LogLevel::warning : LogLevel::info, "peer {}: {}",
      peer->introduction.name, words_of(health));
}

void Peers::down(LinkId link, LinkEnd how, const Error& why) {
  const auto peer = around_.table.find(link);
  if (!peer) return;
  const bool was_up = peer->up();
  peer->set_down(why);
  around_.table.remove(link, how == LinkEnd::goodbye);
  const Error error = peer->down_error();
  log(LogLevel::info, "peer {} is down: {}", peer->introduction.name, why.to_string());
  if (was_up && around_.ledger) around_.ledger->rare().peer_lost(how);
  around_.imports.link_down(link, error);
  around_.grants.link_down(link);
  around_.reopening.link_down(link);
  const bool politely = how == LinkEnd::goodbye;
  if (politely)  // those that it has taken the signals of end first, as done: Messages::peer_leaves
    peer->message_rail().worker().post(
        [this, peer, error] { around_.workers.end_those_of(*peer, error); });
  else  // at once and here, whatever the progress threads are doing
    around_.workers.end_those_of(*peer, error);
  // While this engine closes its rails stay open to the peer, so that it learns of the goodbye
  // before they break.
  const bool on_rails = around_.gate.closing();
  {
    const Lock lock(mutex_);
    dead_.push_back({peer, Clock::now() + (politely ? farewell_time : burial_time), on_rails});
  }
  if (!on_rails) around_.workers.forget(peer);
  if (was_up && around_.config.peer_events)
    around_.events.push(
        {Event::Kind::peer_down, 0, State::active, peer->introduction.name, error, {}});
}

void Peers::reap(Clock::time_point now) {
  std::vector<Dead> due;
  {
    const Lock lock(mutex_);
    const auto first = std::partition(dead_.begin(), dead_.end(),
                                      [&](const Dead& each) { return each.due > now; });
    std::move(first, dead_.end(), std::back_inserter(due));
    dead_.erase(first, dead_.end());
  }
  for (const Dead& each : due) {
    const Error error = each.peer->down_error();
    around_.workers.end_those_of(*each.peer, error);
    each.peer->mailbox.close(error);
    if (each.on_rails) around_.workers.forget(each.peer);
  }
}

void Peers::flush(Deadline deadline) {
  for (const auto& peer : around_.table.all_up())
    around_.workers.wait([&](Deadline until) { return peer->outbox.wait_idle(until); }, deadline);
}

}  // namespace weft::core
