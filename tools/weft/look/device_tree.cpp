#include "look/device_tree.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace weft::tool {
namespace {

void append(std::vector<Branch>& list, std::vector<Branch> more) {
  std::move(more.begin(), more.end(), std::back_inserter(list));
}

class Builder {
 public:
  explicit Builder(const Topology& topology) : topology_(topology) {}

  Branch machine() const {
    Branch machine;
    std::map<int, std::vector<Branch>> packages;
    for (std::size_t at = 0; at < topology_.nodes.size(); ++at)
      packages[topology_.nodes[at].package].push_back(node(at));
    for (auto& [package, nodes] : packages)
      if (package >= 0 && nodes.size() > 1)
        machine.below.push_back({Part::package, static_cast<std::size_t>(package), nodes});
      else
        append(machine.below, std::move(nodes));
    Branch rest{Part::elsewhere, 0, roots(-1)};
    if (!rest.below.empty()) machine.below.push_back(std::move(rest));
    return machine;
  }

 private:
  Branch node(std::size_t at) const { return {Part::node, at, roots(topology_.nodes[at].id)}; }

  /// The parts right below a node; with -1 those below none.
  std::vector<Branch> roots(int node) const {
    return children(
        [&](const auto& device) {
          return device.pci_switch < 0 && known(device.numa_node) == node;
        },
        [&](const PciSwitch& each) { return each.above < 0 && known(each.numa_node) == node; });
  }

  /// `at` is the index of a switch.
  std::vector<Branch> below(std::size_t at) const {
    const auto parent = static_cast<int>(at);
    return children([&](const auto& device) { return device.pci_switch == parent; },
                    [&](const PciSwitch& each) { return each.above == parent; });
  }

  template <typename IsDevice, typename IsSwitch>
  std::vector<Branch> children(IsDevice is_device, IsSwitch is_switch) const {
    std::vector<Branch> list;
    for (std::size_t at = 0; at < topology_.gpus.size(); ++at)
      if (is_device(topology_.gpus[at])) list.push_back({Part::gpu, at, {}});
    for (std::size_t at = 0; at < topology_.nics.size(); ++at)
      if (is_device(topology_.nics[at])) list.push_back({Part::nic, at, {}});
    for (std::size_t at = 0; at < topology_.drives.size(); ++at)
      if (is_device(topology_.drives[at])) list.push_back({Part::drive, at, {}});
    for (std::size_t at = 0; at < topology_.switches.size(); ++at)
      if (is_switch(topology_.switches[at])) list.push_back({Part::pci_switch, at, below(at)});
    return list;
  }

  int known(int node) const {
    const bool is = std::any_of(topology_.nodes.begin(), topology_.nodes.end(),
                                [&](const NumaNode& each) { return each.id == node; });
    return is ? node : -1;
  }

  const Topology& topology_;
};

}  // namespace

Branch device_tree(const Topology& topology) {
  return Builder(topology).machine();
}

}  // namespace weft::tool
