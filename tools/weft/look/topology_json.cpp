#include <string>
#include <vector>

#include "look/topology_views.hpp"

namespace weft::tool {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson known(int number) {
  return number < 0 ? OrderedJson() : OrderedJson(number);
}

OrderedJson known(double gbps) {
  return gbps > 0 ? OrderedJson(gbps) : OrderedJson();
}

OrderedJson known(const std::string& text) {
  return text.empty() ? OrderedJson() : OrderedJson(text);
}

/// The switch at an index that may be -1.
OrderedJson switch_at(const Topology& topology, int index) {
  return index < 0 ? OrderedJson()
                   : OrderedJson(topology.switches[static_cast<std::size_t>(index)].pci);
}

OrderedJson names_of(const Topology& topology, const std::vector<std::size_t>& nics) {
  OrderedJson names = OrderedJson::array();
  for (const std::size_t nic : nics) names.push_back(topology.nics[nic].name);
  return names;
}

OrderedJson order_of(const Topology& topology, const Affinity& affinity) {
  OrderedJson order = OrderedJson::array();
  for (const NicCost& each : affinity.order)
    order.push_back({{"nic", topology.nics[each.nic].name},
                     {"nearness", to_string(each.nearness)},
                     {"gbps", known(known_gbps(topology, each))},
                     {"cost", each.cost}});
  return order;
}

OrderedJson node_json(const Machine& machine, std::size_t index) {
  const NumaNode& node = machine.topology.nodes[index];
  const Affinity& affinity = machine.nodes[index];
  return {{"id", node.id},
          {"package", known(node.package)},
          {"bytes", node.bytes},
          {"distances", node.distances},
          {"nics", names_of(machine.topology, serving(affinity))},
          {"reason", affinity.reason}};
}

OrderedJson gpu_json(const Machine& machine, std::size_t index) {
  const Gpu& gpu = machine.topology.gpus[index];
  const Affinity& affinity = machine.gpus[index];
  return {{"pci", gpu.pci},
          {"name", gpu.name},
          {"numa", known(gpu.numa_node)},
          {"nics", names_of(machine.topology, serving(affinity))},
          {"switch", switch_at(machine.topology, gpu.pci_switch)},
          {"link_gbps", known(gpu.link_gbps)},
          {"reason", affinity.reason},
          {"order", order_of(machine.topology, affinity)}};
}

OrderedJson nic_json(const Machine& machine, std::size_t index) {
  const Nic& nic = machine.topology.nics[index];
  OrderedJson gpus = OrderedJson::array();
  for (const std::size_t gpu : gpus_of(machine, index))
    gpus.push_back(machine.topology.gpus[gpu].pci);
  return {{"name", nic.name},
          {"pci", known(nic.pci)},
          {"numa", known(nic.numa_node)},
          {"gbps", known(nic.gbps)},
          {"gpus", std::move(gpus)},
          {"kind", to_string(nic.kind)},
          {"interface", known(nic.interface)},
          {"switch", switch_at(machine.topology, nic.pci_switch)},
          {"link_gbps", known(nic.link_gbps)},
          {"down", nic.down}};
}

OrderedJson nic_list(const Machine& machine, std::vector<std::size_t> nics) {
  std::sort(nics.begin(), nics.end());
  OrderedJson list = OrderedJson::array();
  for (const std::size_t nic : nics) list.push_back(nic_json(machine, nic));
  return list;
}

OrderedJson drive_json(const Machine& machine, std::size_t index) {
  const Drive& drive = machine.topology.drives[index];
  const Affinity& affinity = machine.drives[index];
  return {{"name", drive.name},
          {"pci", drive.pci},
          {"numa", known(drive.numa_node)},
          {"nics", names_of(machine.topology, serving(affinity))},
          {"model", known(drive.model)},
          {"bytes", drive.bytes > 0 ? OrderedJson(drive.bytes) : OrderedJson()},
          {"switch", switch_at(machine.topology, drive.pci_switch)},
          {"link_gbps", known(drive.link_gbps)},
          {"reason", affinity.reason},
          {"order", order_of(machine.topology, affinity)}};
}

OrderedJson switch_json(const Topology& topology, const PciSwitch& each) {
  return {{"pci", each.pci},
          {"above", switch_at(topology, each.above)},
          {"numa", known(each.numa_node)},
          {"uplink_gbps", known(each.uplink_gbps)}};
}

}  // namespace

OrderedJson to_json(const Machine& machine) {
  const Topology& topology = machine.topology;
  OrderedJson numa = OrderedJson::array(), gpus = OrderedJson::array(),
              unplaced = OrderedJson::array();
  OrderedJson switches = OrderedJson::array(), drives = OrderedJson::array();
  for (std::size_t at = 0; at < topology.nodes.size(); ++at) numa.push_back(node_json(machine, at));
  for (std::size_t at = 0; at < topology.gpus.size(); ++at) gpus.push_back(gpu_json(machine, at));
  for (const Unplaced& each : topology.unplaced)
    unplaced.push_back({{"name", each.name}, {"reason", each.reason}});
  for (const PciSwitch& each : topology.switches) switches.push_back(switch_json(topology, each));
  for (std::size_t at = 0; at < topology.drives.size(); ++at)
    drives.push_back(drive_json(machine, at));
  return {{"numa", std::move(numa)},
          {"gpus", std::move(gpus)},
          {"nics", nic_list(machine, machine.preferred)},
          {"unplaced", std::move(unplaced)},
          {"networks", nic_list(machine, machine.networks)},
          {"switches", std::move(switches)},
          {"drives", std::move(drives)},
          {"notes", notes_on_links(topology)}};
}

}  // namespace weft::tool
