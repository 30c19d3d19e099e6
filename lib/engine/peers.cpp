// Engine: meeting peers, and losing them.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "engine/engine_state.hpp"
#include "peer/pairing.hpp"

namespace weft::core {
namespace {

// Operations to peers that are alive end in this time; those to dead ones never may.
constexpr auto drain_time = std::chrono::milliseconds(200);
// For a borrower's word that it has let go: without it the memory is not free before its process
// has ended. Drivers take a while to unmap, and a loaded machine to let it answer.
constexpr auto return_time = std::chrono::seconds(2);

// Posting receives for a new peer is a matter of microseconds; a thread that does not get to it in
// this time is stuck.
constexpr auto meeting_time = std::chrono::seconds(5);

/// How many of the peer's rails a rail keeps the bounce-buffer transport's buffers for. Those that
/// it is paired with, and of NICs some more: memory near other NICs is paired with it by itself
/// (see RailSet). If still more come at once, what they send waits in libfabric.
std::size_t senders_at_a_time(const Route& route, const PairedRail& paired, std::size_t theirs) {
  constexpr std::size_t some = 4;  // Config::max_nics
  const std::size_t own = paired.targets.size();
  if (!route.rail->capability().fills_alone) return own;
  return std::max(own, std::min(some, theirs));
}

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

Result<std::shared_ptr<PeerState>> EngineState::connect(std::string_view address, Deadline deadline,
                                                        bool keep) {
  auto link = control_->connect(address, deadline, keep);
  if (!link) return fail(std::move(link.error()));
  if (auto peer = peers_.find(*link)) {
    peers_.claim(*link);
    return peer;
  }
  return fail(Code::peer_down, fmt::format("{} went away right after it was met", address));
}

Result<std::shared_ptr<PeerState>> EngineState::peer(std::string_view name, Deadline deadline) {
  const std::string wanted(name);
  std::shared_ptr<PeerState> peer;
  wait(
      [&](Deadline until) { return (peer = peers_.wait_up(wanted, until)) != nullptr || closing_; },
      deadline);
  if (peer) return peer;
  if (closing_) return fail(Code::closed, "the engine is closed");
  return fail(Error(Code::timed_out, "no peer of that name came up in time").with_peer(wanted));
}

Result<std::shared_ptr<PeerState>> EngineState::accept(Deadline deadline) {
  std::shared_ptr<PeerState> peer;
  wait([&](Deadline until) { return (peer = peers_.next_arrival(until)) != nullptr || closing_; },
       deadline);
  if (peer) return peer;
  if (closing_) return fail(Code::closed, "the engine is closed");
  return fail(Code::timed_out, "nobody connected in time");
}

Result<void> EngineState::disconnect(PeerState& peer) {
  if (auto own = check_own(peer); !own) return own;
  const Error why = Error(Code::closed, "this engine disconnected from the peer")
                        .with_peer(peer.introduction.name);
  for (const auto& worker : workers_) worker->end_those_of(peer, why);
  give_grants_back(&peer);
  const auto deadline = Deadline::in(return_time);
  for (const auto& grant : owned_.take_back(peer.link))
    wait([&](Deadline until) { return grant->wait_returned(peer.link, until); }, deadline);
  control_->let_go(peer.introduction.name);
  control_->hang_up(peer.link, "it disconnected");
  return {};
}

/// To one peer, or to all if it is null: what is out under them gets a moment to drain, and what
/// does not is a matter of the owner's quarantine.
void EngineState::give_grants_back(const PeerState* peer) {
  const auto deadline = Deadline::in(drain_time);
  const auto used = imported_.of(peer);
  for (const auto& remote : used) remote->give_back();
  for (const auto& remote : used)
    wait([&](Deadline until) { return remote->users().wait_idle(until); }, deadline);
  imported_.give_back(peer);
}

/// Whom memory may be lent to over that link.
Result<Process> EngineState::borrower(LinkId link) const {
  if (closing_) return fail(Code::unsupported, "the owner is closing");
  if (!config_.share_gpu_memory)
    return fail(Code::unsupported, "the owner shares no GPU memory (share_gpu_memory)");
  const auto peer = peers_.find(link);
  if (!peer || !peer->same_host) return fail(Code::unsupported, "another host");
  return Process::of(peer->introduction.pid);
}

/// Runs a task between two steps of the worker, whoever makes its steps.
bool EngineState::run_on(Worker& worker, const std::function<void()>& task, Deadline deadline) {
  if (config_.progress == Progress::threads) return worker.run(task, deadline);
  const std::lock_guard lock(progress_mutex_);
  task();
  return true;
}

Result<void> EngineState::meet(LinkId link, const Introduction& self, const Introduction& theirs,
                               bool same_host, const std::string& same_host_reason) {
  auto peer =
      std::make_shared<PeerState>(this, link, theirs, same_host,
                                  PeerState::Limits{config_.unclaimed_bytes, config_.send_queue});
  if (auto made = make_routes(peer, self, same_host_reason); !made) {
    forget_on_rails(peer);
    return made;
  }
  peer->mailbox.when_room = [weak = std::weak_ptr(peer)] {
    if (const auto alive = weak.lock())
      alive->message_rail().worker().attend(alive->message_rail(), alive);
  };
  if (auto added = add_to_rails(peer, self.token); !added) {
    peer->set_down(added.error());
    forget_on_rails(peer);
    return added;
  }
  peers_.add(peer);
  log(LogLevel::info, "met {} at {}: {}", theirs.name, theirs.address, peer->route_reason);
  return {};
}

Result<void> EngineState::add_to_rails(const std::shared_ptr<PeerState>& peer,
                                       std::uint64_t own_token) {
  for (const auto& route : peer->routes) {
    // Shared with the task, which may run late.
    const auto added = std::make_shared<Result<void>>();
    const bool ran = run_on(
        route->rail->worker(),
        [added, peer, rail = route->rail, own_token] { *added = rail->add_peer(peer, own_token); },
        Deadline::in(meeting_time));
    if (!ran) return fail(Code::internal, "a progress thread is stuck");
    if (!*added) return *added;
  }
  return {};
}

void EngineState::forget_on_rails(const std::shared_ptr<PeerState>& peer) {
  for (const auto& worker : workers_)
    worker->post([peer, owner = worker.get()] { owner->peer_died(peer); });
}

Result<void> EngineState::make_routes(const std::shared_ptr<PeerState>& met,
                                      const Introduction& self,
                                      const std::string& same_host_reason) {
  PeerState& peer = *met;
  peer.route_by_rail.resize(rails_.size());
  Pairing pairing = pair_rails(self, peer.introduction, peer.same_host, same_host_reason);
  peer.route_reason = std::move(pairing.reason);
  peer.fallback = std::move(pairing.fallback);
  peer.passed_over = std::move(pairing.passed_over);
  peer.their_rails = pairing.theirs;
  if (pairing.rails.empty())
    return fail(Code::unavailable, fmt::format("{} and {} can't reach each other: {}", self.name,
                                               peer.introduction.name, peer.route_reason));
  if (!peer.fallback.empty())
    log(LogLevel::warning, "a slower way is taken to {}: {}", peer.introduction.name,
        peer.fallback);
  const RailAddress& ours = self.rails[pairing.rails.front().own];
  if (peer.fallback.empty() && !ours.same_host_only) peer.fallback = fallback_;
  for (const PairedRail& paired : pairing.rails) {
    // Belongs to the peer from now on, whatever comes: its addresses are taken out again with it.
    Route* route = peer.routes.emplace_back(std::make_unique<Route>()).get();
    peer.route_by_rail[paired.own] = route;
    route->rail = rails_[paired.own].get();
    route->same_host = peer.same_host;
    route->rail_name = route->rail->name();
    route->sources = senders_at_a_time(*route, paired, pairing.theirs.size());
    for (const std::uint32_t theirs : reached_by(*route, paired, pairing.theirs)) {
      if (auto reached = route->rail->reach(met, theirs); !reached) return reached;
    }
    for (const auto& [target, weight] : paired.targets)
      route->targets.add({target, &route->addresses.at(target)}, weight);
  }
  return {};
}

void EngineState::up(LinkId link, bool incoming) {
  const auto peer = peers_.find(link);
  if (!peer) return;
  peers_.set_up(peer, incoming);
  tell_moved_rails(*peer);
  if (config_.peer_events)
    events_.push({Event::Kind::peer_up, 0, State::active, peer->introduction.name, std::nullopt,
                  Peer(peer)});
}

void EngineState::down(LinkId link, const Error& why) {
  const auto peer = peers_.find(link);
  if (!peer) return;
  const bool was_up = peer->up();
  peer->set_down(why);
  peers_.remove(link);
  const Error error = peer->down_error();
  log(LogLevel::info, "peer {} is down: {}", peer->introduction.name, why.to_string());
  directory_.link_down(link, error);
  imported_.link_down(link, error);
  owned_.link_down(link);
  reopening_.link_down(link);
  // At once and here, whatever the progress threads are doing; the rails follow when they can.
  for (const auto& worker : workers_) worker->end_those_of(*peer, error);
  mourned_.push_back(peer);
  forget_on_rails(peer);
  if (was_up && config_.peer_events)
    events_.push({Event::Kind::peer_down, 0, State::active, peer->introduction.name, error, {}});
}

void EngineState::received(LinkId link, Notice notice) {
  const auto peer = peers_.find(link);
  if (!peer) return;
  std::visit([&](auto&& each) { handle(*peer, std::move(each)); }, std::move(notice));
}

}  // namespace weft::core
