// Which of our rails talks to which of a peer's. A pure function that both sides compute alike.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "control/introduction.hpp"

namespace weft::core {

/// Rails of one kind can talk to each other.
using RailKind = std::tuple<std::uint32_t, std::uint32_t, bool>;
RailKind kind_of(const RailAddress& rail);

struct PairedRail {
  std::uint32_t own = 0;               // index of our rail
  std::vector<std::uint32_t> targets;  // the peer's rails that it sends to, in turn; never empty
  std::vector<std::uint32_t> sources;  // the peer's rails that send to it
};

struct Pairing {
  std::vector<PairedRail> rails;  // empty: the two can't reach each other
  /// Why a better way that one of the two has is not taken: the other lacks it. Empty if none is
  /// missed.
  std::string fallback;
  std::string reason;  // why these, as a sentence
};

/// Picks the kind of rail that both have, in the order of preference of the engine whose name comes
/// first (each introduces its rails in its own order), and spreads the rails of that kind over each
/// other. The first rails of both sides always talk to each other: they carry the messages.
Pairing pair_rails(const Introduction& own, const Introduction& peer, bool same_host,
                   const std::string& same_host_reason);

}  // namespace weft::core
