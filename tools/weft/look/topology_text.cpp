#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "common/layout.hpp"
#include "common/printable.hpp"
#include "common/units.hpp"
#include "look/device_tree.hpp"
#include "look/topology_views.hpp"

namespace weft::tool {
namespace {

std::string line(const NumaNode& node) {
  std::string text = fmt::format("NUMA node {}", node.id);
  if (node.package >= 0) text += fmt::format(", socket {}", node.package);
  text += fmt::format(", {}", binary_bytes(node.bytes));
  if (!node.distances.empty())
    text += fmt::format(", distances {}", fmt::join(node.distances, " "));
  return text;
}

std::string line(const PciSwitch& each) {
  if (each.above < 0) return fmt::format("root complex {}", printable(each.pci));
  return fmt::format("switch {}, up {}", printable(each.pci), bit_rate(each.uplink_gbps));
}

std::string line(const Gpu& gpu, std::size_t index) {
  return fmt::format("GPU {}  {}  {}, PCIe {}", index, printable(gpu.pci), printable(gpu.name),
                     bit_rate(gpu.link_gbps));
}

std::string line(const Nic& nic) {
  std::string text = fmt::format("NIC {}", printable(nic.name));
  if (!nic.pci.empty()) text += fmt::format("  {}", printable(nic.pci));
  text += fmt::format("  {}, {}", to_string(nic.kind), bit_rate(nic.gbps));
  if (!nic.interface.empty() && nic.interface != nic.name)
    text += fmt::format(", interface {}", printable(nic.interface));
  if (nic.link_gbps > 0) text += fmt::format(", PCIe {}", bit_rate(nic.link_gbps));
  if (nic.down) text += ", down";
  return text;
}

std::string line(const Drive& drive) {
  std::string text = fmt::format("drive {}  {}", printable(drive.name), printable(drive.pci));
  if (!drive.model.empty()) text += fmt::format("  {}", printable(drive.model));
  if (drive.bytes > 0) text += fmt::format(", {}", binary_bytes(drive.bytes));
  if (drive.link_gbps > 0) text += fmt::format(", PCIe {}", bit_rate(drive.link_gbps));
  return text;
}

std::string line(const Topology& topology, const Branch& branch) {
  switch (branch.part) {
    case Part::machine:
      return "machine";
    case Part::package:
      return fmt::format("socket {}", branch.index);
    case Part::node:
      return line(topology.nodes[branch.index]);
    case Part::elsewhere:
      return "NUMA node unknown";
    case Part::pci_switch:
      return line(topology.switches[branch.index]);
    case Part::gpu:
      return line(topology.gpus[branch.index], branch.index);
    case Part::nic:
      return line(topology.nics[branch.index]);
    case Part::drive:
      return line(topology.drives[branch.index]);
  }
  return "?";
}

/// `indent` is what stands before the lines below the branch.
void draw(const Topology& topology, const Branch& branch, const std::string& indent,
          std::string& out) {
  for (std::size_t at = 0; at < branch.below.size(); ++at) {
    const bool last = at + 1 == branch.below.size();
    out += fmt::format("{}{} {}\n", indent, last ? "└─" : "├─", line(topology, branch.below[at]));
    draw(topology, branch.below[at], indent + (last ? "   " : "│  "), out);
  }
}

/// Lines after the first begin with `indent` spaces.
std::string names_of(const Topology& topology, const std::vector<std::size_t>& nics,
                     std::size_t indent) {
  const std::size_t longest = std::max<std::size_t>(line_width(), indent + 20) - indent;
  std::vector<std::string> names;
  for (const std::size_t nic : nics)
    names.push_back(printable(topology.nics[nic].name) +
                    (topology.nics[nic].down ? " (down)" : ""));
  if (names.empty()) return "none";
  return fmt::format("{}", fmt::join(wrapped(names, longest), "\n" + std::string(indent, ' ')));
}

/// How near the farthest of the NICs that serve is to the memory.
std::string nearness_of(const Affinity& affinity) {
  Nearness farthest = Nearness::pci_switch;
  for (std::size_t at = 0; at < affinity.serving; ++at)
    farthest = std::max(farthest, affinity.order[at].nearness);
  if (affinity.serving == 0) return "-";
  std::string name(to_string(farthest));
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

/// "4 x 100 Gb/s".
std::string speeds_of(const Topology& topology, const Affinity& affinity) {
  std::map<double, std::size_t, std::greater<>> counts;
  for (std::size_t at = 0; at < affinity.serving; ++at)
    ++counts[known_gbps(topology, affinity.order[at])];
  std::vector<std::string> speeds;
  for (const auto& [gbps, count] : counts)
    speeds.push_back(fmt::format("{} x {}", count, gbps > 0 ? bit_rate(gbps) : "unknown"));
  return speeds.empty() ? "-" : fmt::format("{}", fmt::join(speeds, " + "));
}

std::string why(const Affinity& affinity) {
  std::string text = affinity.reason;
  for (const std::string& note : affinity.notes) text += "; " + note;
  return text;
}

std::string row(const Topology& topology, const std::string& memory, const Affinity& affinity) {
  const std::string columns = fmt::format("  {:<19} {:<13} {:<14} ", memory, nearness_of(affinity),
                                          speeds_of(topology, affinity));
  return columns + names_of(topology, serving(affinity), columns.size()) + "\n" +
         hanging("    ", printable(why(affinity)));
}

std::string header(const std::string& memory) {
  return fmt::format("\n  {:<19} {:<13} {:<14} {}\n", memory, "in common", "speed", "served by");
}

}  // namespace

std::string tree_text(const Topology& topology) {
  const Branch machine = device_tree(topology);
  std::string out = line(topology, machine) + "\n";
  draw(topology, machine, "", out);
  if (const auto notes = remarks_on_links(topology); !notes.empty())
    out += "\n" + hanging("  ", fmt::format("{}", fmt::join(notes, " ")));
  return out;
}

std::string serving_text(const Machine& machine) {
  const Topology& topology = machine.topology;
  std::string out;
  if (!topology.gpus.empty()) out += header("GPU");
  for (std::size_t gpu = 0; gpu < topology.gpus.size(); ++gpu)
    out += row(topology, fmt::format("{}  {}", gpu, printable(topology.gpus[gpu].pci)),
               machine.gpus[gpu]);
  out += header("host memory");
  for (std::size_t node = 0; node < topology.nodes.size(); ++node)
    out += row(topology, fmt::format("node {}", topology.nodes[node].id), machine.nodes[node]);
  if (!topology.drives.empty()) out += header("files on drive");
  for (std::size_t drive = 0; drive < topology.drives.size(); ++drive)
    out += row(topology, fmt::format("{}  {}", drive, printable(topology.drives[drive].name)),
               machine.drives[drive]);
  if (!machine.networks.empty())
    out +=
        fmt::format("\n  not used by preference: {}\n", names_of(topology, machine.networks, 26));
  if (!topology.unplaced.empty()) out += "\n  without a place\n";
  for (const Unplaced& each : topology.unplaced)
    out += hanging(fmt::format("    {:<20} ", printable(each.name)), printable(each.reason));
  return out;
}

}  // namespace weft::tool
