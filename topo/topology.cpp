#include <weft/topology.hpp>

namespace weft {

std::vector<std::size_t> preferred_nics(const Topology& topology) {
  std::vector<std::size_t> fabric, all;
  for (std::size_t i = 0; i < topology.nics.size(); ++i) {
    all.push_back(i);
    if (topology.nics[i].kind != NicKind::network) fabric.push_back(i);
  }
  return fabric.empty() ? all : fabric;
}

std::string_view to_string(NicKind kind) noexcept {
  switch (kind) {
    case NicKind::efa:
      return "efa";
    case NicKind::rdma:
      return "rdma";
    case NicKind::network:
      break;
  }
  return "network";
}

std::string_view to_string(Nearness nearness) noexcept {
  switch (nearness) {
    case Nearness::pci_switch:
      return "pci_switch";
    case Nearness::root_complex:
      return "root_complex";
    case Nearness::numa_node:
      return "numa_node";
    case Nearness::machine:
      break;
  }
  return "machine";
}

}  // namespace weft
