#include "look/machine.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "common/printable.hpp"

namespace weft::tool {
namespace {

std::vector<std::size_t> others(const Topology& topology, std::vector<std::size_t> preferred) {
  std::sort(preferred.begin(), preferred.end());
  std::vector<std::size_t> rest;
  for (std::size_t nic = 0; nic < topology.nics.size(); ++nic)
    if (!std::binary_search(preferred.begin(), preferred.end(), nic)) rest.push_back(nic);
  return rest;
}

bool is_narrow(const Topology& topology, std::size_t at) {
  const double uplink = topology.switches[at].uplink_gbps;
  double below = 0;
  for (const Nic& nic : topology.nics)
    if (nic.pci_switch == static_cast<int>(at)) below += nic.gbps;
  return uplink > 0 && uplink < below;
}

/// "the uplink ..." -> "The uplink ...."
std::string sentence(std::string_view words) {
  std::string text = printable(words);
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text + ".";
}

}  // namespace

Machine examine(Topology topology) {
  Machine machine;
  machine.topology = std::move(topology);
  const Topology& of = machine.topology;
  machine.preferred = preferred_nics(of);
  machine.networks = others(of, machine.preferred);
  for (std::size_t gpu = 0; gpu < of.gpus.size(); ++gpu)
    machine.gpus.push_back(
        affinity(of, {MemoryKind::device, of.gpus[gpu].numa_node, static_cast<int>(gpu)},
                 machine.preferred));
  for (const NumaNode& node : of.nodes)
    machine.nodes.push_back(affinity(of, {MemoryKind::host, node.id, -1}, machine.preferred));
  for (std::size_t drive = 0; drive < of.drives.size(); ++drive)
    machine.drives.push_back(
        affinity(of, {MemoryKind::file, of.drives[drive].numa_node, -1, static_cast<int>(drive)},
                 machine.preferred));
  return machine;
}

std::vector<std::size_t> serving(const Affinity& affinity) {
  std::vector<std::size_t> nics;
  for (std::size_t at = 0; at < std::min(affinity.serving, affinity.order.size()); ++at)
    nics.push_back(affinity.order[at].nic);
  std::sort(nics.begin(), nics.end());
  return nics;
}

double known_gbps(const Topology& topology, const NicCost& cost) {
  return topology.nics[cost.nic].gbps > 0 ? cost.gbps : 0;
}

std::vector<std::size_t> gpus_of(const Machine& machine, std::size_t nic) {
  std::vector<std::size_t> gpus;
  for (std::size_t gpu = 0; gpu < machine.gpus.size(); ++gpu) {
    const auto nics = serving(machine.gpus[gpu]);
    if (std::binary_search(nics.begin(), nics.end(), nic)) gpus.push_back(gpu);
  }
  return gpus;
}

std::vector<std::string> remarks_on_links(const Topology& topology) {
  std::vector<std::string> remarks;
  for (const std::string& note : notes_on_links(topology)) remarks.push_back(sentence(note));
  bool narrow_uplink = false;
  for (std::size_t at = 0; at < topology.switches.size(); ++at)
    narrow_uplink = narrow_uplink || is_narrow(topology, at);
  if (narrow_uplink)
    remarks.push_back(
        "Switches: uplinks as the PCI bus reports them, here slower than the NICs below together.");
  if (!remarks.empty())
    remarks.push_back("Virtual machines' buses often report less than the hardware has.");
  if (narrow_uplink)
    remarks.push_back("A GPU and the NICs of its own switch do not need the uplink.");
  return remarks;
}

}  // namespace weft::tool
