// How one local rail reaches one peer.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>
#include <weft/deadline.hpp>

#include "peer/targets.hpp"
#include "providers/endpoint.hpp"

namespace weft::core {

class Rail;
struct BounceLink;

/// Belongs to the rail's owning thread once the peer is up, apart from the members that say
/// otherwise.
struct Route {
  Rail* rail = nullptr;
  bool same_host = false;  // the peer is on this machine
  std::string rail_name;   // outlives the rail, for reports
  Targets targets;         // of messages; not empty
  // Bytes of the longest packet of a message that these take; at least Messenger::least_packet.
  std::size_t packet = std::numeric_limits<std::size_t>::max();
  // Of all the peer's rails that it can talk to. Only Rail::reach() writes to it.
  std::unordered_map<std::uint32_t, Whereto> addresses;
  std::uint64_t opening = 0;  // which of the rail's the addresses belong to (Rail::reach())

  // The scheduler's: what is in flight on this route, how much of that is in the room kept for
  // class latency, and how many operations the provider had no room for.
  std::size_t operations = 0, spare_operations = 0;
  std::uint64_t bytes = 0, spare_bytes = 0;
  std::size_t held = 0;
  Clock::time_point moved_at{};  // when an operation ended, or one that was held went out

  // The bounce-buffer transport's, with the credits; null before the peer is added, and after its
  // death.
  BounceLink* bounce = nullptr;

  /// The path to the peer broke: it is tried again after a second, then less often. Further
  /// failures in that time tell nothing new; false for those.
  bool set_aside() {
    constexpr auto first = std::chrono::seconds(1), longest = std::chrono::seconds(30);
    const auto now = Clock::now();
    if (is_aside(now)) return false;
    aside_for = std::clamp<Nanoseconds>(aside_for * 2, first, longest);
    aside_until = (now + aside_for).time_since_epoch().count();
    return true;
  }
  /// Something came through.
  void works() {
    if (!in_doubt()) return;
    aside_for = Nanoseconds::zero();
    aside_until = 0;
  }
  /// From any thread: whether others should be taken before it.
  bool is_aside(Clock::time_point now) const {
    return now.time_since_epoch().count() < aside_until.load(std::memory_order_relaxed);
  }
  /// It was set aside, and nothing has come through since.
  bool in_doubt() const { return aside_for != Nanoseconds::zero(); }
  Nanoseconds aside_for{};
  std::atomic<Clock::rep> aside_until{0};

  bool added = false;  // the rail knows it
  bool dead = false;   // the peer is gone
};

}  // namespace weft::core
