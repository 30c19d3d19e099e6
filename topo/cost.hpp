// The cost of reaching a NIC from some memory.
#pragma once

#include <cstddef>
#include <vector>
#include <weft/topology.hpp>

namespace weft::topo {

/// Where memory is; -1: unknown, or none.
struct Position {
  int pci_switch = -1;
  int numa_node = -1;
};

/// A link on the way, between a switch and what is above it, or between two sockets.
struct Link {
  std::size_t id = 0;  // the same for the same link; of a switch's uplink its index
  double gbps = 0;     // 0: unknown, or not believed
};

struct Way {
  Nearness nearness = Nearness::machine;
  int meeting = -1;  // the lowest switch that both are below; -1: none
  /// How far up the lowest common place is: 0 is the memory's own switch or node. NICs of a lower
  /// level are also below the places of higher ones.
  unsigned level = 0;
  std::vector<Link> links;
  /// The speed of a NIC along it: its speed, or that of the narrowest link, its own PCIe link
  /// included. Never 0: that of a NIC of unknown speed is a guess (NicCost::gbps).
  double gbps = 1;
  /// The speed of the NIC alone, or that guess; less behind an uplink that is really slower.
  double nic_gbps = 1;
  /// How many times as long a byte takes as over a NIC of 1 Gb/s below the same switch. The NIC's
  /// own link does not count, since what it reports may be wrong and would drop the NIC. What makes
  /// it more than 1 / gbps is that traffic between root complexes goes through the CPU's own
  /// network, which it shares with everything else:
  /// - 1.5 times between two root complexes of a node (assumed: it only has to be between the other
  ///   two);
  /// - on top, between two nodes, as much as the firmware says of memory (ACPI's SLIT: 10 is
  ///   near), where it says nothing 2, Linux's REMOTE_DISTANCE.
  /// So a NIC of the other socket is taken where it is about three times as fast as one below the
  /// GPU's own switch.
  double cost = 0;
};

/// Whether a link is a switch's uplink.
bool is_uplink(const Link& link);

/// The way to each of the topology's NICs.
std::vector<Way> ways_from(const Topology& topology, const Position& from);

}  // namespace weft::topo
