#include "topology_json.hpp"

#include <string>
#include <vector>

namespace weft::tool {
namespace {

using Json = nlohmann::ordered_json;

Json known(int number) {
  return number < 0 ? Json() : Json(number);
}

Json known(double gbps) {
  return gbps > 0 ? Json(gbps) : Json();
}

Json known(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

/// The switch at an index that may be -1.
Json switch_at(const Topology& topology, int index) {
  return index < 0 ? Json() : Json(topology.switches[static_cast<std::size_t>(index)].pci);
}

Json names_of(const Topology& topology, const std::vector<std::size_t>& nics) {
  Json names = Json::array();
  for (const std::size_t nic : nics) names.push_back(topology.nics[nic].name);
  return names;
}

Json order_of(const Topology& topology, const Affinity& affinity) {
  Json order = Json::array();
  for (const NicCost& each : affinity.order)
    order.push_back({{"nic", topology.nics[each.nic].name},
                     {"nearness", to_string(each.nearness)},
                     {"gbps", known(known_gbps(topology, each))},
                     {"cost", each.cost}});
  return order;
}

Json node_json(const Machine& machine, std::size_t index) {
  const NumaNode& node = machine.topology.nodes[index];
  const Affinity& affinity = machine.nodes[index];
  return {{"id", node.id},
          {"package", known(node.package)},
          {"bytes", node.bytes},
          {"distances", node.distances},
          {"nics", names_of(machine.topology, serving(affinity))},
          {"reason", affinity.reason}};
}

Json gpu_json(const Machine& machine, std::size_t index) {
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

Json nic_json(const Machine& machine, std::size_t index) {
  const Nic& nic = machine.topology.nics[index];
  Json gpus = Json::array();
  for (const std::size_t gpu : gpus_of(machine, index))
    gpus.push_back(machine.topology.gpus[gpu].pci);
  return {{"name", nic.name},
          {"pci", known(nic.pci)},
          {"numa", known(nic.numa_node)},
          {"gbps", known(nic.gbps)},
          {"gpus", std::move(gpus)},
          {"kind", to_string(nic.kind)},
          {"interface", known(nic.interface)},
          {"switch", switch_at(machine.topology, nic.pci_switch)}};
}

Json nic_list(const Machine& machine, std::vector<std::size_t> nics) {
  std::sort(nics.begin(), nics.end());
  Json list = Json::array();
  for (const std::size_t nic : nics) list.push_back(nic_json(machine, nic));
  return list;
}

Json switch_json(const Topology& topology, const PciSwitch& each) {
  return {{"pci", each.pci},
          {"above", switch_at(topology, each.above)},
          {"numa", known(each.numa_node)},
          {"uplink_gbps", known(each.uplink_gbps)}};
}

}  // namespace

Json to_json(const Machine& machine) {
  const Topology& topology = machine.topology;
  Json numa = Json::array(), gpus = Json::array(), unplaced = Json::array();
  Json switches = Json::array();
  for (std::size_t at = 0; at < topology.nodes.size(); ++at) numa.push_back(node_json(machine, at));
  for (std::size_t at = 0; at < topology.gpus.size(); ++at) gpus.push_back(gpu_json(machine, at));
  for (const Unplaced& each : topology.unplaced)
    unplaced.push_back({{"name", each.name}, {"reason", each.reason}});
  for (const PciSwitch& each : topology.switches) switches.push_back(switch_json(topology, each));
  return {{"numa", std::move(numa)},
          {"gpus", std::move(gpus)},
          {"nics", nic_list(machine, machine.preferred)},
          {"unplaced", std::move(unplaced)},
          {"networks", nic_list(machine, machine.networks)},
          {"switches", std::move(switches)}};
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft::tool
