// A machine's topology and what follows from it for transfers, worked out once for all the ways to
// show it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>
#include <weft/topology.hpp>

namespace weft::tool {

struct Machine {
  Topology topology;
  std::vector<std::size_t> preferred;  ///< NICs.
  std::vector<std::size_t> networks;   ///< The other NICs; those that are down too.
  std::vector<Affinity> gpus;          ///< Of each GPU, over the preferred NICs.
  std::vector<Affinity> nodes;         ///< Of each node's memory, likewise.
  std::vector<Affinity> drives;        ///< Of each drive's files, likewise.
};

Machine examine(Topology topology);

/// The NICs that serve, in bus order.
std::vector<std::size_t> serving(const Affinity& affinity);

/// NicCost::gbps, but 0 where it rests on a guess because the NIC's own speed is unknown.
double known_gbps(const Topology& topology, const NicCost& cost);

/// The GPUs that a NIC serves, in bus order.
std::vector<std::size_t> gpus_of(const Machine& machine, std::size_t nic);

/// What to know of PCIe links that are slower than a NIC, or than the NICs below a switch together;
/// empty where there are none. May hold the names that the machine gives to its devices.
std::vector<std::string> remarks_on_links(const Topology& topology);

}  // namespace weft::tool
