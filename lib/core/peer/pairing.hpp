// Which of our rails talks to which of a peer's. A pure function that both sides compute alike.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "control/control.hpp"
#include "wire/introduction.hpp"

namespace weft::core {

/// Rails of one kind can talk to each other.
using RailKind = std::tuple<std::uint32_t, std::uint32_t, bool>;
RailKind kind_of(const RailAddress& rail);

struct PairedRail {
  struct Target {
    std::uint32_t rail = 0;    // index of the peer's rail
    std::uint64_t weight = 1;  // relative to the others
  };
  std::uint32_t own = 0;        // index of our rail
  std::vector<Target> targets;  // that it sends to, and that send to it; never empty
};

struct Pairing {
  std::vector<PairedRail> rails;      // empty: the two can't reach each other
  std::vector<std::uint32_t> theirs;  // all rails of the peer's of that kind
  /// Why a better way that one of the two has is not taken: the other lacks it, a rail does not
  /// reach the other, or they share a host and no memory. Empty if none is missed.
  std::string fallback;
  std::string reason;  // why these, as a sentence
  /// The kinds that one of the two prefers, each with the reason why not: "shm: other hosts".
  std::vector<std::string> not_used;
};

/// Picks the kind of rail that both have, in the order of preference of the engine whose name comes
/// first (each introduces its rails in its own order), and spreads the rails of that kind over each
/// other by their speeds, but for those that are out (RailAddress::why_out). The first rails of
/// both sides always talk to each other: they carry the messages.
Pairing pair_rails(const Introduction& own, const Introduction& peer, const Nearness& near);

/// The same for some rails of each side, by their indices.
std::vector<PairedRail> spread(const Introduction& own, const std::vector<std::uint32_t>& ours,
                               const Introduction& peer, const std::vector<std::uint32_t>& theirs);

}  // namespace weft::core
