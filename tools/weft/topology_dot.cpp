#include "topology_dot.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "device_tree.hpp"
#include "palette.hpp"
#include "printable.hpp"
#include "units.hpp"

namespace weft::tool {
namespace {

/// So many GPUs are named in one line of a NIC that serves more.
constexpr std::size_t badges_per_line = 4;

// In points: boxes of devices, and columns in them. Text that is longer makes them wider.
constexpr std::size_t device_width = 190;
constexpr std::size_t speed_width = 68;
constexpr std::size_t badge_width = 20;

/// Bytes in a line of names of NICs that are not used.
constexpr std::size_t unused_line = 34;

constexpr const char* settings =
    R"(graph [rankdir=LR, bgcolor=white, pad=0.2, nodesep=0.06, ranksep=0.35,
  fontname="Helvetica", fontsize=12, labelloc=b, splines=true];
node [shape=plain, fontname="Helvetica", fontsize=11];
edge [dir=none, color="#555555", fontname="Helvetica", fontsize=9];
)";

/// As text of a label between < and >.
std::string html(std::string_view text) {
  std::string out;
  for (const char each : printable(text)) switch (each) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += each;
    }
  return out;
}

std::string speed(double gbps) {
  return gbps > 0 ? bit_rate(gbps) : "? Gb/s";
}

/// Of a line, in points.
double width(double gbps) {
  return std::clamp(std::sqrt(gbps / 40), 1.0, 5.0);
}

std::string cell(const Colour& colour, const std::string& more, const std::string& content) {
  return fmt::format(R"(<TD BGCOLOR="{}" {}><FONT COLOR="{}">{}</FONT></TD>)", colour.fill, more,
                     colour.text, content);
}

std::string table(const std::string& rows) {
  return fmt::format(
      R"(<<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0" CELLPADDING="3" COLOR="#555555">{}</TABLE>>)",
      rows);
}

const Colour plain = {"#ffffff", "#000000"};
const Colour unused_colour = {"#eeeeee", "#666666"};

std::string label(const NumaNode& node) {
  std::string text = fmt::format("<B>NUMA node {}</B>", node.id);
  if (node.package >= 0) text += fmt::format("<BR/>socket {}", node.package);
  text += fmt::format("<BR/>{}", binary_bytes(node.bytes));
  return table("<TR>" + cell({"#ffffff", "#000000"}, R"(CELLPADDING="10")", text) + "</TR>");
}

std::string label(const PciSwitch& each) {
  const char* kind = each.above < 0 ? "root complex" : "switch";
  return table("<TR>" +
               cell({"#f4f4f4", "#000000"}, R"(CELLPADDING="5")",
                    fmt::format("{}<BR/>{}", kind, html(each.pci))) +
               "</TR>");
}

std::string label(const Gpu& gpu, std::size_t index) {
  const std::string name =
      gpu.name.empty() ? "" : fmt::format(R"(<BR/><FONT POINT-SIZE="9">{}</FONT>)", html(gpu.name));
  return table("<TR>" +
               cell(gpu_colour(index), fmt::format(R"(WIDTH="{}" CELLPADDING="5")", device_width),
                    fmt::format("<B>GPU {}</B>  {}{}", index, html(gpu.pci), name)) +
               "</TR>");
}

/// The numbers of GPUs in their colours.
std::string badges(const std::vector<std::size_t>& gpus) {
  std::string rows;
  for (std::size_t at = 0; at < gpus.size(); ++at) {
    if (at % badges_per_line == 0) rows += at == 0 ? "<TR>" : "</TR><TR>";
    rows += cell(gpu_colour(gpus[at]), R"(WIDTH="18")", fmt::format("<B>{}</B>", gpus[at]));
  }
  return fmt::format(
      R"(<TD CELLPADDING="0"><TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0">{}</TR></TABLE></TD>)",
      rows);
}

class Graph {
 public:
  explicit Graph(const Machine& machine)
      : machine_(machine), tree_(device_tree(machine.topology)) {}

  std::string text() {
    out_ = std::string("digraph machine {\n") + settings;
    // The first half to the left; one alone to the right, where reading ends.
    const std::size_t count = tree_.below.size();
    const std::size_t half = count > 1 ? (count + 1) / 2 : 0;
    for (std::size_t at = 0; at < count; ++at) {
      left_ = at < half;
      side(tree_.below[at]);
    }
    if (hubs_.size() > 1) middle();
    out_ += fmt::format("label=<{}>;\n}}\n", legend());
    return std::move(out_);
  }

 private:
  /// A socket, a node, or what belongs to none; in a frame of its own.
  void side(const Branch& branch) {
    out_ += fmt::format(
        "subgraph cluster_{} {{ style=\"rounded,filled\"; color=\"#bbbbbb\"; "
        "fillcolor=\"#fafafa\"; "
        "margin=12; label=\"{}\"; labelloc=t;\n",
        name(branch), branch.part == Part::package ? fmt::format("socket {}", branch.index) : "");
    if (branch.part == Part::package)
      for (const Branch& node : branch.below) side(node);
    else
      hub(branch);
    out_ += "}\n";
  }

  void hub(const Branch& branch) {
    const std::string text =
        branch.part == Part::node
            ? label(machine_.topology.nodes[branch.index])
            : table("<TR>" + cell(unused_colour, R"(CELLPADDING="10")", "NUMA node<BR/>unknown") +
                    "</TR>");
    node(name(branch), text);
    hubs_.push_back({name(branch), left_});
    below(branch);
  }

  void below(const Branch& parent) {
    std::vector<Branch> shown;
    std::vector<std::string> unused;
    for (const Branch& child : parent.below)
      if (is_unused(child))
        unused.push_back(printable(machine_.topology.nics[child.index].name));
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

  void put_unused(const Branch& parent, const std::vector<std::string>& names) {
    if (names.empty()) return;
    std::vector<std::string> lines;
    for (const std::string& each : wrapped(names, unused_line)) lines.push_back(html(each));
    const std::string text =
        fmt::format(R"(<FONT POINT-SIZE="9">{}</FONT>)", fmt::join(lines, "<BR/>"));
    put(parent, "unused_" + name(parent),
        table("<TR>" + cell(unused_colour, fmt::format(R"(WIDTH="{}")", device_width), text) +
              "</TR>"),
        "");
  }

  /// What hangs on a switch stays together.
  void group(const Branch& branch) {
    if (branch.below.empty()) return;
    out_ += fmt::format("subgraph cluster_{} {{ style=invis; margin=4;\n", name(branch));
    below(branch);
    out_ += "}\n";
  }

  std::string label_of(const Branch& branch) const {
    const Topology& topology = machine_.topology;
    if (branch.part == Part::gpu) return label(topology.gpus[branch.index], branch.index);
    if (branch.part == Part::nic) return nic_label(branch.index);
    return label(topology.switches[branch.index]);
  }

  std::string nic_label(std::size_t index) const {
    const Nic& nic = machine_.topology.nics[index];
    const auto gpus = gpus_of(machine_, index);
    const Colour colour = gpus.size() == 1 ? gpu_colour(gpus.front()) : plain;
    const std::size_t beside = std::min(gpus.size(), badges_per_line);
    const std::size_t width = device_width - speed_width - 2 - badge_width * beside;
    return table(
        "<TR>" + (gpus.empty() ? "" : badges(gpus)) +
        cell(colour, fmt::format(R"(WIDTH="{}" ALIGN="LEFT")", width), html(nic.name)) +
        cell(colour, fmt::format(R"(WIDTH="{}" ALIGN="RIGHT")", speed_width), speed(nic.gbps)) +
        "</TR>");
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
    if (child.part == Part::pci_switch) gbps = topology.switches[child.index].uplink_gbps;
    if (gbps <= 0) return "";
    return fmt::format("label=\"{}\", penwidth={:.1f}", speed(gbps), width(gbps));
  }

  /// What the nodes have in common.
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

  std::string legend() const {
    return "Lines: speed of PCIe links, each way. NICs: speed to the network.<BR/>"
           "Colours and numbers are those of the GPUs that a NIC serves; "
           "grey ones are not used by preference.";
  }

  static std::string name(const Branch& branch) {
    const char* kinds[] = {"machine", "package", "node", "elsewhere", "switch", "gpu", "nic"};
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
