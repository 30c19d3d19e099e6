#include "topo/pci_tree.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "topo/hwloc.hpp"

namespace weft::topo {
namespace {

/// The bridge that an object hangs below; null if there is none.
hwloc_obj_t bridge_above(const hwloc_obj& object) {
  hwloc_obj_t parent = object.parent;
  return parent != nullptr && parent->type == HWLOC_OBJ_BRIDGE ? parent : nullptr;
}

bool is_root_complex(const hwloc_obj& bridge) {
  return number_of(bridge.attr->bridge.upstream_type) == HWLOC_OBJ_BRIDGE_HOST;
}

PciAddress address_of_bridge(const hwloc_obj& bridge) {
  if (!is_root_complex(bridge)) return address_of(bridge.attr->bridge.upstream.pci);
  const auto& below = bridge.attr->bridge.downstream.pci;
  return {below.domain, below.secondary_bus, 0, 0};
}

}  // namespace

PciAddress address_of(const PciAttributes& attributes) {
  return {attributes.domain, attributes.bus, attributes.dev, attributes.func};
}

std::string text_of(const PciAddress& address) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", address.domain, address.bus, address.device,
                     address.function);
}

double gbps_of(const PciAttributes& attributes) {
  return std::max(0.0, 8.0 * static_cast<double>(attributes.linkspeed));
}

void PciTree::count_branches(const std::vector<hwloc_obj_t>& devices) {
  for (hwloc_obj_t child : devices)
    for (hwloc_obj_t bridge = bridge_above(*child); bridge != nullptr;
         child = bridge, bridge = bridge_above(*bridge)) {
      if (!branches_[bridge].insert(child).second) break;
    }
}

bool PciTree::is_kept(hwloc_obj_t bridge) const {
  const auto found = branches_.find(bridge);
  return found != branches_.end() && (is_root_complex(*bridge) || found->second.size() > 1);
}

std::vector<PciAddress> PciTree::path_of(hwloc_obj_t bridge) const {
  std::vector<PciAddress> path;
  for (; bridge != nullptr; bridge = bridge_above(*bridge))
    if (is_kept(bridge)) path.push_back(address_of_bridge(*bridge));
  std::reverse(path.begin(), path.end());
  return path;
}

/// By their paths: parents are beginnings of their children's.
void PciTree::list_switches() {
  for (const auto& [bridge, below] : branches_)
    if (is_kept(bridge)) kept_.push_back({bridge, path_of(bridge)});
  std::sort(kept_.begin(), kept_.end(),
            [](const Kept& a, const Kept& b) { return a.path < b.path; });
  for (const Kept& each : kept_) switches_.push_back(describe(each));
}

PciSwitch PciTree::describe(const Kept& kept) const {
  PciSwitch made;
  if (is_root_complex(*kept.bridge)) {
    const auto& below = kept.bridge->attr->bridge.downstream.pci;
    made.pci = fmt::format("{:04x}:[{:02x}-{:02x}]", below.domain, below.secondary_bus,
                           below.subordinate_bus);
    return made;
  }
  made.pci = text_of(address_of_bridge(*kept.bridge));
  made.above = switch_of(*kept.bridge);
  made.uplink_gbps =
      narrowest(gbps_of(kept.bridge->attr->bridge.upstream.pci), bridge_above(*kept.bridge));
  return made;
}

/// Of a link and those of the bridges above it that lead to nothing else.
double PciTree::narrowest(double gbps, hwloc_obj_t from) const {
  for (hwloc_obj_t bridge = from; bridge != nullptr && !is_kept(bridge);
       bridge = bridge_above(*bridge)) {
    const double next = gbps_of(bridge->attr->bridge.upstream.pci);
    if (next > 0 && (gbps <= 0 || next < gbps)) gbps = next;
  }
  return gbps;
}

double PciTree::link_of(const hwloc_obj& device) const {
  return narrowest(gbps_of(device.attr->pcidev), bridge_above(device));
}

int PciTree::switch_of(const hwloc_obj& device) const {
  for (hwloc_obj_t bridge = bridge_above(device); bridge != nullptr;
       bridge = bridge_above(*bridge)) {
    const auto found = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const Kept& each) { return each.bridge == bridge; });
    if (found != kept_.end()) return static_cast<int>(found - kept_.begin());
  }
  return -1;
}

}  // namespace weft::topo
