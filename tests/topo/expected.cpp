#include "expected.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "hwloc_xml.hpp"

namespace weft::facts {
namespace {

bool starts_with(const std::string& text, const std::string& beginning) {
  return text.compare(0, beginning.size(), beginning) == 0;
}

bool is_gpu(const Function& function) {
  const bool display = function.type == "0300" || function.type == "0302";
  const bool amd = function.type == "0380" || function.type == "1200";
  if (starts_with(function.ids, "10de:")) return display;
  if (starts_with(function.ids, "1002:")) return display || amd;
  return function.ids == "1d0f:7164" || function.ids == "1d0f:7364";
}

bool is_nic(const Function& function) {
  return std::any_of(function.devices.begin(), function.devices.end(),
                     [](const OsDevice& each) { return each.kind != Kind::disk; });
}

bool has_drive(const Function& function) {
  return std::any_of(function.devices.begin(), function.devices.end(),
                     [](const OsDevice& each) { return each.kind == Kind::disk; });
}

double usual_gbps(const std::string& ids) {
  const std::map<std::string, double> known = {
      {"1d0f:efa0", 100}, {"1d0f:efa1", 100}, {"1d0f:efa2", 200}, {"1d0f:efa3", 400}};
  const auto found = known.find(ids);
  return found == known.end() ? 0 : found->second;
}

double narrower(double a, double b) {
  if (a <= 0 || b <= 0) return std::max(a, b);
  return std::min(a, b);
}

class Walk {
 public:
  explicit Walk(const Machine& machine) {
    int package_id = 0;
    for (const Package& package : machine.packages) {
      for (const Node& node : package.nodes)
        topology_.nodes.push_back({node.id, package_id, node.bytes, {}});
      ++package_id;
    }
    for (std::size_t i = 0; i < machine.distances.size(); ++i)
      topology_.nodes[i].distances = machine.distances[i];
    // What is not told can still be only in the one socket, whose first node stands for it.
    const bool one_socket = machine.packages.size() == 1 && machine.hidden == 0;
    const int of_machine = one_socket ? topology_.nodes.front().id : -1;

    std::vector<std::pair<const Function*, int>> roots;
    for (const Package& package : machine.packages)
      for (const Node& node : package.nodes)
        for (const Function& root : node.roots) roots.emplace_back(&root, node.id);
    for (const Function& root : machine.roots) roots.emplace_back(&root, of_machine);
    std::sort(roots.begin(), roots.end(), [](const auto& a, const auto& b) {
      return buses_below(*a.first) < buses_below(*b.first);
    });
    for (const auto& [root, node] : roots) visit_root(*root, node);

    std::sort(topology_.gpus.begin(), topology_.gpus.end(),
              [](const Gpu& a, const Gpu& b) { return a.pci < b.pci; });
    std::sort(topology_.nics.begin(), topology_.nics.end(), [](const Nic& a, const Nic& b) {
      return std::tie(a.pci, a.name) < std::tie(b.pci, b.name);
    });
    std::sort(topology_.drives.begin(), topology_.drives.end(), [](const Drive& a, const Drive& b) {
      return std::tie(a.pci, a.name) < std::tie(b.pci, b.name);
    });
    const auto before = static_cast<std::ptrdiff_t>(topology_.nics.size());
    for (const OsDevice& each : machine.beside_pci)
      topology_.nics.push_back({each.kind == Kind::rdma ? NicKind::rdma : NicKind::network,
                                each.name, each.kind == Kind::rdma ? "" : each.name, "", -1,
                                of_machine, each.gbps});
    std::sort(topology_.nics.begin() + before, topology_.nics.end(),
              [](const Nic& a, const Nic& b) { return a.name < b.name; });
  }

  Topology take() { return std::move(topology_); }

 private:
  static bool matters(const Function& at) {
    return is_gpu(at) || is_nic(at) || has_drive(at) ||
           std::any_of(at.below.begin(), at.below.end(), matters);
  }

  void visit_root(const Function& root, int node) {
    if (!matters(root)) return;
    const auto index = static_cast<int>(topology_.switches.size());
    topology_.switches.push_back({buses_below(root), -1, node, 0});
    for (const Function* each : sorted(root)) visit(*each, index, node, 0);
  }

  /// The address of a device, or of the first switch on the way down: ports do not count.
  static std::string where(const Function& at) {
    const auto below = sorted(at);
    return below.size() == 1 ? where(*below.front()) : at.pci;
  }

  static std::vector<const Function*> sorted(const Function& bridge) {
    std::vector<const Function*> below;
    for (const Function& each : bridge.below)
      if (matters(each)) below.push_back(&each);
    std::sort(below.begin(), below.end(),
              [](const Function* a, const Function* b) { return where(*a) < where(*b); });
    return below;
  }

  /// `link`: the narrowest one on the way from the switch above.
  void visit(const Function& at, int above, int node, double link) {
    link = narrower(link, at.link * 8);
    if (is_gpu(at)) {
      topology_.gpus.push_back({at.pci, at.name, above, node, at.link * 8});
    } else if (is_nic(at)) {
      add_nic(at, above, node, link);
    }
    for (const OsDevice& each : at.devices)
      if (each.kind == Kind::disk)
        topology_.drives.push_back({each.name, at.pci, "", 0, above, node, link});
    const auto below = sorted(at);
    if (below.size() > 1) {
      topology_.switches.push_back({at.pci, above, node, link});
      above = static_cast<int>(topology_.switches.size()) - 1;
      link = 0;
    }
    for (const Function* each : below) visit(*each, above, node, link);
  }

  void add_nic(const Function& at, int above, int node, double link) {
    Nic nic;
    nic.pci = at.pci;
    nic.pci_switch = above;
    nic.numa_node = node;
    nic.gbps = usual_gbps(at.ids);
    nic.link_gbps = link;
    nic.kind = starts_with(at.ids, "1d0f:efa") ? NicKind::efa : NicKind::network;
    for (const OsDevice& each : at.devices)
      if (each.kind == Kind::network) nic.name = nic.interface = each.name;
    for (const OsDevice& each : at.devices) {
      if (each.kind == Kind::rdma) {
        nic.name = each.name;
        if (nic.kind == NicKind::network) nic.kind = NicKind::rdma;
      }
      if (each.gbps > 0) nic.gbps = each.gbps;
    }
    topology_.nics.push_back(std::move(nic));
  }

  Topology topology_;
};

}  // namespace

Topology expected_topology(const Machine& machine) {
  return Walk(machine).take();
}

std::string text_of(const Topology& topology) {
  std::string text;
  // Links are floats in hwloc.
  for (const NumaNode& each : topology.nodes)
    text += fmt::format("node {} of package {}, {} bytes, distances {}\n", each.id, each.package,
                        each.bytes, fmt::join(each.distances, " "));
  for (const PciSwitch& each : topology.switches)
    text += fmt::format("switch {} below {}, node {}, {:.1f} Gb/s\n", each.pci, each.above,
                        each.numa_node, each.uplink_gbps);
  for (const Gpu& each : topology.gpus)
    text += fmt::format("GPU {} ({}) below {}, node {}, {:.1f} Gb/s\n", each.pci, each.name,
                        each.pci_switch, each.numa_node, each.link_gbps);
  for (const Nic& each : topology.nics)
    text += fmt::format("NIC {} ({}, {}, {}) below {}, node {}, {:.1f} Gb/s, link {:.1f} Gb/s{}\n",
                        each.name, each.interface, each.pci, to_string(each.kind), each.pci_switch,
                        each.numa_node, each.gbps, each.link_gbps, each.down ? ", down" : "");
  for (const Drive& each : topology.drives)
    text += fmt::format("drive {} ({}, {}, {} bytes) below {}, node {}, link {:.1f} Gb/s\n",
                        each.name, each.pci, each.model, each.bytes, each.pci_switch,
                        each.numa_node, each.link_gbps);
  for (const Unplaced& each : topology.unplaced)
    text += fmt::format("{} has no place: {}\n", each.name, each.reason);
  return text;
}

Topology loaded(const Machine& machine) {
  const TemporaryFile file(hwloc_xml(machine));
  auto topology = load_topology(file.path());
  if (!topology) {
    fmt::print(stderr, "{}: {}\n", machine.name, topology.error().message());
    std::abort();
  }
  return std::move(*topology);
}

}  // namespace weft::facts
