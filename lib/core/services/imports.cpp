#include "services/imports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/thread.hpp"
#include "control/plane.hpp"
#include "device/device.hpp"
#include "services/published_name.hpp"
#include "wire/grant_codec.hpp"

namespace weft::core {
namespace {

// Operations to peers that are alive end in this time; those to dead ones never may.
constexpr auto drain_time = std::chrono::milliseconds(200);

}  // namespace

Imports::Imports(const Config& config, const Owner& owner, Workers& workers, const PeerTable& peers,
                 Directory& directory, const std::unique_ptr<Ledger>& ledger,
                 const std::shared_ptr<ControlPlane>& control, ImportedGrants::Tell tell)
    : config_(config),
      owner_(owner),
      workers_(workers),
      peers_(peers),
      directory_(directory),
      ledger_(ledger),
      control_(control),
      imported_(
          std::move(tell),
          // Chunks that are not posted never go out; those that are posted drain.
          [this](RemoteState& remote, const Error& why) { workers_.end_those_under(remote, why); },
          [this](std::function<void()> task) {
            run_detached([alive = owner_.keep_alive(), task = std::move(task)] { task(); });
          },
          [this] { return config_.share_gpu_memory && has_devices(); }) {}

Result<std::shared_ptr<RemoteState>> Imports::import(Bytes blob, Deadline deadline) {
  auto decoded = decode_grant(blob);
  if (!decoded) return fail(std::move(decoded.error()));
  const auto peer = peers_.find_up(decoded->engine);
  if (!peer)
    return fail(
        Error(Code::peer_down,
              fmt::format("the grant is of an engine that is not connected; it listens at {}",
                          decoded->address.empty() ? "no address" : decoded->address))
            .with_peer(decoded->engine));
  if (peer->introduction.incarnation != decoded->incarnation)
    return fail(Error(Code::stale, "the grant is of an earlier incarnation of that engine")
                    .with_peer(decoded->engine));
  auto remote = std::make_shared<RemoteState>(peer, std::move(*decoded));
  const auto& theirs = peer->their_rails;
  if (std::none_of(theirs.begin(), theirs.end(),
                   [&](std::uint32_t rail) { return remote->carried_by(rail); }))
    return fail(Error(Code::invalid_argument,
                      "the grant has no key for any rail of the peer's that can be reached")
                    .with_peer(peer->introduction.name));
  reach(*remote);
  return confirmed(imported_.add(remote), deadline);
}

/// Memory of a process of this host may have to be asked for; what can't be had is staged.
void Imports::reach(RemoteState& remote) {
  for (const auto& route : remote.peer()->routes)
    for (const auto& [theirs, address] : route->addresses) {
      if (!remote.has_lease_word(theirs)) continue;
      providers::Endpoint& endpoint = route->rail->endpoint();
      const auto word = endpoint.reach(address.load(), remote.lease_word(theirs).key);
      if (!word) {
        remote.stage_on(theirs, word.error().message());
        remote.lose_lease_word(theirs);
        continue;
      }
      for (const std::uint64_t key : remote.keys_on(theirs))
        if (const auto memory = endpoint.reach(address.load(), key); !memory) {
          remote.stage_on(theirs, memory.error().message());
          break;
        }
    }
}

/// Waits until the owner has said that the grant holds.
Result<std::shared_ptr<RemoteState>> Imports::confirmed(const ImportedGrants::Added& added,
                                                        Deadline deadline) {
  const std::string& owner = added.remote->peer()->introduction.name;
  const auto answered = [&](Deadline until) { return added.answer->wait(until); };
  if (!workers_.wait(answered, deadline))
    return fail(Error(Code::timed_out, "the owner did not say in time whether the grant holds")
                    .with_peer(owner));
  if (const auto& error = added.answer->error()) return fail(Error(*error).with_peer(owner));
  if (added.remote->users().closed()) return fail(added.remote->ended_error());
  if (ledger_) ledger_->rare().grant_imported();
  return added.remote;
}

Result<std::shared_ptr<RemoteState>> Imports::lookup(PeerState& peer, std::string_view name,
                                                     Deadline deadline) {
  if (auto named = check_published_name(name); !named) return fail(std::move(named.error()));
  if (!peer.up()) return fail(peer.down_error());
  const auto lookup = std::make_shared<LookupState>();
  lookup->link = peer.link;
  const std::uint64_t request = next_request_++;
  directory_.add_lookup(request, lookup);
  control_->send(peer.link, LookupRequest{request, std::string(name)});
  if (!peer.up()) directory_.link_down(peer.link, peer.down_error());
  if (!workers_.wait([&](Deadline until) { return lookup->wait(until); }, deadline)) {
    directory_.take_lookup(request);
    control_->send(peer.link, LookupAbandoned{request});
    return fail(Error(Code::timed_out, fmt::format("'{}' was not published in time", name))
                    .with_peer(peer.introduction.name));
  }
  if (lookup->error()) return fail(*lookup->error());
  return import(lookup->grant, deadline);
}

void Imports::give_back(const PeerState* peer) {
  const auto deadline = Deadline::in(drain_time);
  const auto used = imported_.of(peer);
  for (const auto& remote : used) remote->give_back();
  for (const auto& remote : used)
    workers_.wait([&](Deadline until) { return remote->users().wait_idle(until); }, deadline);
  imported_.give_back(peer);
}

void Imports::take(const PeerState& peer, LookupReply&& notice) {
  const auto lookup = directory_.take_lookup(notice.request);
  if (!lookup || lookup->link != peer.link) return;
  lookup->grant = std::move(notice.grant);
  lookup->complete(std::nullopt);
}

void Imports::take(const PeerState& peer, const RevokeRequest& notice) {
  imported_.take(peer, notice);
}

void Imports::take(const PeerState& peer, const RailMoved& notice) {
  imported_.take(peer, notice.renewed);
  if (!notice.address.empty()) imported_.rail_closed(peer, notice.rail);
}

void Imports::take(const PeerState& peer, const GrantStatus& notice) {
  imported_.take(peer, notice);
}

void Imports::link_down(LinkId link, const Error& why) {
  directory_.link_down(link, why);
  imported_.link_down(link, why);
}

}  // namespace weft::core
