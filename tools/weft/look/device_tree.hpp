// The parts of a machine as a tree: sockets, NUMA nodes, switches, devices.
#pragma once

#include <cstddef>
#include <vector>
#include <weft/topology.hpp>

namespace weft::tool {

enum class Part {
  machine,
  package,     ///< Of packages with several nodes only; others are told with their node.
  node,        ///< `index` in Topology::nodes
  elsewhere,   ///< Above all whose node can't be told.
  pci_switch,  ///< `index` in Topology::switches; a root complex too
  gpu,         ///< `index` in Topology::gpus
  nic,         ///< `index` in Topology::nics
  drive,       ///< `index` in Topology::drives
};

struct Branch {
  Part part = Part::machine;
  std::size_t index = 0;
  std::vector<Branch> below;
};

/// Each node, switch, GPU, NIC and drive once. Below a switch or node, GPUs come first, then NICs,
/// drives and switches, each in the order of the topology.
Branch device_tree(const Topology& topology);

}  // namespace weft::tool
