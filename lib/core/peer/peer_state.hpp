// Another engine, as long as one control connection lasts; behind the Peer handle.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/process.hpp"
#include "base/sync.hpp"
#include "control/control.hpp"
#include "peer/mailbox.hpp"
#include "peer/outbox.hpp"
#include "peer/peer_traffic.hpp"
#include "peer/rail_set.hpp"
#include "peer/route.hpp"
#include "wire/introduction.hpp"

namespace weft::core {

class PeerState {
 public:
  struct Limits {
    std::size_t unclaimed_bytes = 0;
    std::size_t send_queue = 0;
    std::shared_ptr<Mailbox::DropCounter> dropped = {};
  };
  PeerState(const EngineState* engine, LinkId link, Introduction introduction, bool same_host,
            const Limits& limits)
      : engine(engine),
        link(link),
        introduction(std::move(introduction)),
        same_host(same_host),
        mailbox(this->introduction.name, limits.unclaimed_bytes, limits.dropped),
        outbox(limits.send_queue) {}

  const EngineState* const engine;  // that it is a peer of; to compare only
  const LinkId link;
  const Introduction introduction;
  const bool same_host;

  // Set while the peer is met, before other threads see it.
  std::shared_ptr<const HostProcess> process;  // of this host; null: the introduction has its pid
  std::vector<std::unique_ptr<Route>> routes;  // those in use, best first
  std::vector<Route*> route_by_rail;           // by our rail index; null where there is none
  std::vector<std::uint32_t> their_rails;      // indices of the peer's that can be reached
  std::string route_reason;
  std::string fallback;                  // Peer::fallback
  std::vector<std::string> not_used;     // kinds of rails, with reasons
  std::shared_ptr<PeerTraffic> traffic;  // null where nothing is to be counted

  // Messages go by the first route's rail.
  Rail& message_rail() const noexcept { return *routes.front()->rail; }
  /// All that goes to the peer takes one way, from one NIC to one.
  bool one_way() const noexcept {
    return routes.size() == 1 && routes.front()->targets.size() == 1;
  }

  RailSets rail_sets;
  Mailbox mailbox;
  Outbox outbox;

  std::atomic<std::uint64_t> packets_taken{0};  // of its messages, before a call learns of them
  std::atomic<std::size_t> checked_parts{0};    // that are hashed here because the peer asked

  /// Where one of its rails can be reached: not where it said at first, if it was opened again.
  Blob rail_address(std::uint32_t rail) const {
    const Lock lock(mutex_);
    const auto moved = moved_rails_.find(rail);
    return moved != moved_rails_.end() ? moved->second : introduction.rails[rail].address;
  }
  void rail_moved(std::uint32_t rail, Blob address) {
    const Lock lock(mutex_);
    moved_rails_.insert_or_assign(rail, std::move(address));
  }

  Health health() const noexcept {
    return up() ? health_.load(std::memory_order_relaxed) : Health::down;
  }
  void set_health(Health health) noexcept { health_.store(health, std::memory_order_relaxed); }
  bool up() const noexcept { return up_.load(std::memory_order_acquire); }
  void set_up() noexcept { up_.store(true, std::memory_order_release); }
  void set_down(const Error& why) {
    const Lock lock(mutex_);
    if (!why_down_) why_down_ = why;
    up_.store(false, std::memory_order_release);
  }
  std::optional<Error> why_down() const {
    const Lock lock(mutex_);
    return why_down_;
  }
  /// The error that calls about a peer which is not up return.
  Error down_error() const {
    const auto why = why_down();
    Error error = why ? *why : Error(Code::peer_down, "the peer is not connected yet");
    return std::move(error.with_peer(introduction.name));
  }

 private:
  mutable Mutex mutex_;
  std::atomic<bool> up_{false};
  std::atomic<Health> health_{Health::up};
  std::optional<Error> why_down_ WEFT_GUARDED_BY(mutex_);
  std::map<std::uint32_t, Blob> moved_rails_ WEFT_GUARDED_BY(mutex_);
};

/// Leaves a route alone for a while, and says so. By the thread that owns it.
inline void set_aside(Route& route, const PeerState& peer, const Error& why) {
  if (route.set_aside())
    log(LogLevel::warning, "rail {} is set aside for {}: {}", route.rail_name,
        peer.introduction.name, why.to_string());
}

}  // namespace weft::core
