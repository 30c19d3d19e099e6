#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/units.hpp"
#include "look/device_tree.hpp"
#include "look/dot_labels.hpp"
#include "look/topology_views.hpp"

namespace weft::tool {
namespace {

constexpr const char* settings =
    R"(graph [rankdir=LR, bgcolor=white, pad=0.2, nodesep=0.06, ranksep=0.35,
  fontname="Helvetica", fontsize=12, labelloc=b, splines=true];
node [shape=plain, fontname="Helvetica", fontsize=11];
edge [dir=none, color="#555555", fontname="Helvetica", fontsize=9];
)";

constexpr const char* legend =
    "Lines: speed of PCIe links, each way. NICs: speed to the network.<BR/>"
    "Colours and numbers are those of the GPUs that a NIC serves; "
    "grey ones are not used by preference.";

/// Of a line, in points.
double pen_width(double gbps) {
  return std::clamp(std::sqrt(gbps / 40), 1.0, 5.0);
}

class Graph {
 public:
  explicit Graph(const Machine& machine)
      : machine_(machine), tree_(device_tree(machine.topology)) {}

  std::string text() {
    out_ = std::string("digraph machine {\n") + settings;
    // The first half to the left; one alone, and what belongs to none, to the right, where reading
    // ends.
    const std::size_t count = tree_.below.size();
    const bool rest = count > 0 && tree_.below.back().part == Part::elsewhere;
    const std::size_t half = count > 1 ? (count - (rest ? 1 : 0) + 1) / 2 : 0;
    for (std::size_t at = 0; at < count; ++at) {
      left_ = at < half;
      side(tree_.below[at]);
    }
    if (hubs_.size() > 1) middle();
    std::string below = legend;
    for (const std::string& note : remarks_on_links(machine_.topology))
      below += "<BR/>" + html(note);
    out_ += fmt::format("label=<{}>;\n}}\n", below);
    return std::move(out_);
  }

 private:
  /// A socket, a node, or what belongs to none; in a frame of its own.
  void side(const Branch& branch) {
    out_ += fmt::format(
        "subgraph cluster_{} {{ style=\"rounded,filled\"; color=\"#bbbbbb\"; margin=12; "
        "fillcolor=\"#fafafa\"; label=\"{}\"; labelloc=t;\n",
        name(branch), branch.part == Part::package ? fmt::format("socket {}", branch.index) : "");
    if (branch.part == Part::package)
      for (const Branch& node : branch.below) side(node);
    else
      hub(branch);
    out_ += "}\n";
  }

  void hub(const Branch& branch) {
    const std::string text = branch.part == Part::node
                                 ? node_label(machine_.topology.nodes[branch.index])
                                 : unknown_node_label();
    node(name(branch), text);
    hubs_.push_back({name(branch), left_});
    below(branch);
  }

  void below(const Branch& parent) {
    std::vector<Branch> shown;
    std::vector<std::string> unused;
    for (const Branch& child : parent.below)
      if (is_unused(child))
        unused.push_back(unused_name(machine_.topology.nics[child.index]));
      else
        shown.push_back(child);
    // On the right, dot has the first one lowest.
    if (!left_) std::reverse(shown.begin(), shown.end());
    if (!left_) put_unused(parent, unused);
    for (const Branch& child : shown) put(parent, name(child), label_of(child), link_style(child));
    if (left_) put_unused(parent, unused);
    for (const Branch& child : shown) group(child);
  }

  bool is_unused(const Branch& branch) const {
    const auto& nics = machine_.networks;
    return branch.part == Part::nic && std::binary_search(nics.begin(), nics.end(), branch.index);
  }

  static std::string unused_name(const Nic& nic) { return nic.name + (nic.down ? " (down)" : ""); }

  void put_unused(const Branch& parent, const std::vector<std::string>& names) {
    if (names.empty()) return;
    put(parent, "unused_" + name(parent), unused_label(names), "");
  }

  /// Keeps the devices of a switch together.
  void group(const Branch& branch) {
    if (branch.below.empty()) return;
    out_ += fmt::format("subgraph cluster_{} {{ style=invis; margin=4;\n", name(branch));
    below(branch);
    out_ += "}\n";
  }

  std::string label_of(const Branch& branch) const {
    const Topology& topology = machine_.topology;
    if (branch.part == Part::gpu) return gpu_label(topology.gpus[branch.index], branch.index);
    if (branch.part == Part::nic)
      return nic_label(topology.nics[branch.index], gpus_of(machine_, branch.index));
    if (branch.part == Part::drive) return drive_label(topology.drives[branch.index]);
    return switch_label(topology.switches[branch.index]);
  }

  /// `id` becomes the name of a node in the graph, below the parent's.
  void put(const Branch& parent, const std::string& id, const std::string& label,
           const std::string& style) {
    node(id, label);
    if (left_)
      out_ += fmt::format("{}:e -> {} [{}];\n", id, name(parent), style);
    else
      out_ += fmt::format("{} -> {}:w [{}];\n", name(parent), id, style);
  }

  void node(const std::string& id, const std::string& label) {
    out_ += fmt::format("{} [label={}, ordering={}];\n", id, label, left_ ? "in" : "out");
  }

  std::string link_style(const Branch& child) const {
    const Topology& topology = machine_.topology;
    double gbps = 0;
    if (child.part == Part::nic) return "";
    if (child.part == Part::gpu) gbps = topology.gpus[child.index].link_gbps;
    if (child.part == Part::drive) gbps = topology.drives[child.index].link_gbps;
    if (child.part == Part::pci_switch) gbps = topology.switches[child.index].uplink_gbps;
    if (!(gbps > 0)) return "";
    return fmt::format("label=\"{}\", penwidth={:.1f}", bit_rate(gbps), pen_width(gbps));
  }

  /// The link between the nodes.
  void middle() {
    const std::string text = middle_label();
    out_ += fmt::format("middle [shape={}, fontsize=9, label=\"{}\"];\n",
                        text.empty() ? "point" : "plaintext", text);
    for (const Hub& hub : hubs_)
      out_ += fmt::format("{} -> {} [penwidth=3];\n", hub.left ? hub.name : "middle",
                          hub.left ? "middle" : hub.name);
  }

  std::string middle_label() const {
    const auto& nodes = machine_.topology.nodes;
    if (hubs_.size() != 2 || nodes.size() != 2 || nodes[0].distances.size() != 2) return "";
    return fmt::format("distance\\n{}", nodes[0].distances[1]);
  }

  static std::string name(const Branch& branch) {
    const char* kinds[] = {"machine", "package", "node", "elsewhere",
                           "switch",  "gpu",     "nic",  "drive"};
    return fmt::format("{}{}", kinds[static_cast<int>(branch.part)], branch.index);
  }

  struct Hub {
    std::string name;
    bool left;
  };
  const Machine& machine_;
  Branch tree_;
  std::string out_;
  std::vector<Hub> hubs_;
  bool left_ = false;  ///< Where what comes next stands.
};

}  // namespace

std::string to_dot(const Machine& machine) {
  return Graph(machine).text();
}

}  // namespace weft::tool
