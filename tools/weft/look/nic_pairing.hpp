// Which NICs of two machines talk to each other.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "look/machine.hpp"

namespace weft::tool {

/// Of some NICs of this machine and some of the peer's, both as indices in their topologies.
struct NicPairing {
  std::vector<std::size_t> own, peer;
  std::vector<std::vector<NicShare>> to_peer;  ///< Of each own NIC; NicShare::nic is in `peer`.
  std::vector<std::vector<NicShare>> to_own;   ///< Of each of the peer's; likewise.
};

/// Two machines, side by side.
struct MachinePairing {
  NicPairing all;                ///< Of the preferred NICs.
  std::vector<NicPairing> gpus;  ///< Of the NICs that serve GPU 0 here and there, GPU 1, …
};

MachinePairing pair_machines(const Machine& own, const Machine& peer);

std::string pairing_text(const MachinePairing& pairing, const Machine& own, const Machine& peer);
nlohmann::ordered_json pairing_json(const MachinePairing& pairing, const Machine& own,
                                    const Machine& peer);

}  // namespace weft::tool
