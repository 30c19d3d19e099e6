// Places of devices in hwloc's PCI tree.
#pragma once

#include <hwloc.h>

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>
#include <weft/topology.hpp>

namespace weft::topo {

using PciAttributes = hwloc_obj_attr_u::hwloc_pcidev_attr_s;

/// A PCI function, in bus order.
struct PciAddress {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0, device = 0, function = 0;
  auto operator<=>(const PciAddress&) const = default;
};
PciAddress address_of(const PciAttributes& attributes);
std::string text_of(const PciAddress& address);

/// Of hwloc's links, which count in GB/s.
double gbps_of(const PciAttributes& attributes);

/// The root complexes above some devices, and the switches below which they part ways. Bridges that
/// lead to one of them alone are links to it.
class PciTree {
 public:
  /// `numa_node_of` tells the node of any object.
  template <typename NumaNodeOf>
  PciTree(const std::vector<hwloc_obj_t>& devices, NumaNodeOf numa_node_of) {
    count_branches(devices);
    list_switches();
    for (std::size_t i = 0; i < kept_.size(); ++i)
      switches_[i].numa_node = numa_node_of(*kept_[i].bridge);
  }

  const std::vector<PciSwitch>& switches() const noexcept { return switches_; }
  /// Index of the switch that a device is below; -1: none.
  int switch_of(const hwloc_obj& device) const;
  /// Of the narrowest link between a device and what it is below, in Gb/s; 0: unknown.
  double link_of(const hwloc_obj& device) const;

 private:
  struct Kept {
    hwloc_obj_t bridge = nullptr;
    std::vector<PciAddress> path;  // from the root complex down
  };
  void count_branches(const std::vector<hwloc_obj_t>& devices);
  void list_switches();
  bool is_kept(hwloc_obj_t bridge) const;
  std::vector<PciAddress> path_of(hwloc_obj_t bridge) const;
  PciSwitch describe(const Kept& kept) const;
  double narrowest(double gbps, hwloc_obj_t from) const;

  std::map<hwloc_obj_t, std::set<hwloc_obj_t>> branches_;  // of bridges: children with devices
  std::vector<Kept> kept_;
  std::vector<PciSwitch> switches_;
};

}  // namespace weft::topo
