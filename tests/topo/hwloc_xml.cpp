#include "hwloc_xml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace weft::facts {
namespace {

/// Sets of NUMA nodes; each node has two CPUs, so that sets stay short.
using Nodes = std::uint32_t;

Nodes nodes_of(const Node& node) {
  return Nodes{1} << node.id;
}

Nodes nodes_of(const Package& package) {
  Nodes all = 0;
  for (const Node& node : package.nodes) all |= nodes_of(node);
  return all;
}

Nodes nodes_of(const Machine& machine) {
  Nodes all = 0;
  for (const Package& package : machine.packages) all |= nodes_of(package);
  return all;
}

std::string cpus_of(Nodes nodes) {
  std::uint64_t cpus = 0;
  for (unsigned node = 0; node < 32; ++node)
    if ((nodes >> node & 1) != 0) cpus |= std::uint64_t{3} << (2 * node);
  if (cpus >> 32 == 0) return fmt::format("0x{:08x}", cpus);
  return fmt::format("0x{:08x},0x{:08x}", cpus >> 32, cpus & 0xffffffff);
}

/// Those that can be used, and those that there are.
std::string sets(Nodes nodes, Nodes complete) {
  return fmt::format(
      R"( cpuset="{}" complete_cpuset="{}" nodeset="0x{:08x}" complete_nodeset="0x{:08x}")",
      cpus_of(nodes), cpus_of(complete), nodes, complete);
}

template <typename Part>
std::string sets_of(const Part& part) {
  return sets(nodes_of(part), nodes_of(part));
}

const char* vendor_name(const std::string& ids) {
  const std::pair<const char*, const char*> names[] = {{"1d0f", "Amazon.com, Inc."},
                                                       {"10de", "NVIDIA Corporation"},
                                                       {"15b3", "Mellanox Technologies"},
                                                       {"8086", "Intel Corporation"},
                                                       {"1002", "AMD/ATI"}};
  for (const auto& [vendor, name] : names)
    if (ids.compare(0, 4, vendor) == 0) return name;
  return nullptr;
}

class Writer {
 public:
  explicit Writer(const Machine& machine) {
    text_ =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
        "<topology version=\"2.0\">\n";
    const Nodes nodes = nodes_of(machine);
    Nodes complete = nodes;
    for (int i = 0; i < machine.hidden; ++i) complete |= complete << 1;
    open("Machine", R"( os_index="0")" + sets(nodes, complete));
    info("OSName", "Linux");
    for (std::size_t i = 0; i < machine.packages.size(); ++i) write(machine.packages[i], i);
    for (const Function& root : machine.roots) write(root, 0);
    for (const OsDevice& each : machine.beside_pci) write(each);
    close();
    write_distances(machine);
    text_ += "</topology>\n";
  }

  std::string take() { return std::move(text_); }

 private:
  void line(const std::string& content) {
    text_.append(2 * depth_, ' ').append(content).append("\n");
  }
  void open(const char* type, const std::string& attributes) {
    line(fmt::format(R"(<object type="{}"{} gp_index="{}">)", type, attributes, ++objects_));
    ++depth_;
  }
  void close() {
    --depth_;
    line("</object>");
  }
  void info(const char* name, const std::string& value) {
    line(fmt::format(R"(<info name="{}" value="{}"/>)", name, value));
  }

  void write(const Package& package, std::size_t index) {
    open("Package", fmt::format(R"( os_index="{}")", index) + sets_of(package));
    // A node that is the whole of its socket has the socket's devices beside it; others form
    // groups.
    const bool grouped = package.nodes.size() > 1;
    for (const Node& node : package.nodes) {
      if (grouped) open("Group", sets_of(node) + R"( kind="1001" subkind="0")");
      open("NUMANode", fmt::format(R"( os_index="{}"{} local_memory="{}")", node.id, sets_of(node),
                                   node.bytes));
      line(fmt::format(R"(<page_type size="4096" count="{}"/>)", node.bytes / 4096));
      close();
      for (const Function& root : node.roots) write(root, 0);
      if (grouped) close();
    }
    close();
  }

  void write(const Function& function, unsigned bridges) {
    const std::string pci =
        fmt::format(R"( pci_busid="{}" pci_type="{} [{}] [0000:0000] 00" pci_link_speed="{:.6f}")",
                    function.pci, function.type, function.ids, function.link);
    if (function.pci.empty())
      open("Bridge",
           fmt::format(R"( bridge_type="0-1" depth="0" bridge_pci="{}")", buses_below(function)));
    else if (function.type == "0604")
      open("Bridge", fmt::format(R"( bridge_type="1-1" depth="{}" bridge_pci="{}"{})", bridges,
                                 buses_below(function), pci));
    else
      open("PCIDev", pci);
    if (const char* vendor = vendor_name(function.ids)) info("PCIVendor", vendor);
    if (!function.name.empty()) info("PCIDevice", function.name);
    for (const OsDevice& each : function.devices) write(each);
    for (const Function& each : function.below) write(each, bridges + 1);
    close();
  }

  void write(const OsDevice& device) {
    open("OSDev", fmt::format(R"( name="{}"{} osdev_type="{}")", device.name,
                              device.kind == Kind::disk ? R"( subtype="Disk")" : "",
                              static_cast<int>(device.kind)));
    if (device.gbps > 0) info("LinkGbps", fmt::format("{}", device.gbps));
    close();
  }

  void write_distances(const Machine& machine) {
    if (machine.distances.empty()) return;
    std::string indexes, values;
    for (const Package& package : machine.packages)
      for (const Node& node : package.nodes) indexes += fmt::format("{} ", node.id);
    for (const auto& row : machine.distances)
      for (const unsigned value : row) values += fmt::format("{} ", value);
    line(fmt::format(
        R"(<distances2 type="NUMANode" nbobjs="{}" kind="5" name="NUMALatency" indexing="os">)",
        machine.distances.size()));
    line(fmt::format(R"(  <indexes length="{}">{}</indexes>)", indexes.size(), indexes));
    line(fmt::format(R"(  <u64values length="{}">{}</u64values>)", values.size(), values));
    line("</distances2>");
  }

  std::string text_;
  std::size_t depth_ = 1, objects_ = 0;
};

}  // namespace

std::string hwloc_xml(const Machine& machine) {
  return Writer(machine).take();
}

TemporaryFile::TemporaryFile(const std::string& text) {
  std::string folder = (std::filesystem::temp_directory_path() / "weft-topo-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
  file_ = std::filesystem::path(folder) / "machine.xml";
  std::ofstream(file_, std::ios::binary) << text;
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove_all(file_.parent_path(), ignored);
}

}  // namespace weft::facts
