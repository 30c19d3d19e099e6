// From hwloc's objects to a Topology.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <weft/topology.hpp>

#include "topo/devices.hpp"
#include "topo/drive.hpp"
#include "topo/kernel.hpp"
#include "topo/os_device.hpp"
#include "topo/pci_tree.hpp"
#include "topo/read.hpp"

namespace weft {
namespace topo {
namespace {

using Objects = std::vector<hwloc_obj_t>;

/// Adds the operating system's devices below an object: those of the kind that is wanted.
void add_os_devices(const hwloc_obj& object, hwloc_obj_osdev_type_t wanted, Objects& found) {
  for (hwloc_obj_t child = object.io_first_child; child != nullptr; child = child->next_sibling) {
    if (child->type != HWLOC_OBJ_OS_DEVICE) continue;
    if (number_of(child->attr->osdev.type) == wanted && child->name != nullptr)
      found.push_back(child);
    add_os_devices(*child, wanted, found);
  }
}

Objects os_devices(const hwloc_obj& object, hwloc_obj_osdev_type_t wanted) {
  Objects found;
  add_os_devices(object, wanted, found);
  std::sort(found.begin(), found.end(), [](hwloc_obj_t a, hwloc_obj_t b) {
    return std::string_view(a->name) < std::string_view(b->name);
  });
  return found;
}

/// Those whose files stay: no tapes, and no media that people take out.
Objects drives_of(const hwloc_obj& device) {
  Objects found = os_devices(device, HWLOC_OBJ_OSDEV_BLOCK);
  std::erase_if(found, [](hwloc_obj_t each) {
    const std::string_view kind = each->subtype != nullptr ? each->subtype : "";
    return kind == "Tape" || kind == "Removable Media Device";
  });
  return found;
}

bool is_nic(const hwloc_obj& device) {
  return is_efa(ids_of(device)) || !os_devices(device, HWLOC_OBJ_OSDEV_OPENFABRICS).empty() ||
         !os_devices(device, HWLOC_OBJ_OSDEV_NETWORK).empty();
}

Objects pci_devices(hwloc_topology* machine) {
  Objects found;
  for (hwloc_obj_t each = hwloc_get_next_pcidev(machine, nullptr); each != nullptr;
       each = hwloc_get_next_pcidev(machine, each))
    if (is_gpu(ids_of(*each)) || is_nic(*each) || !drives_of(*each).empty()) found.push_back(each);
  std::sort(found.begin(), found.end(), [](hwloc_obj_t a, hwloc_obj_t b) {
    return address_of(a->attr->pcidev) < address_of(b->attr->pcidev);
  });
  return found;
}

std::vector<unsigned> distances_between(const hwloc_distances_s& all, unsigned from,
                                        const std::vector<NumaNode>& nodes) {
  std::map<unsigned, std::size_t> position;
  for (unsigned i = 0; i < all.nbobjs; ++i) position[all.objs[i]->os_index] = i;
  std::vector<unsigned> distances;
  const auto row = position.find(from);
  for (const NumaNode& to : nodes) {
    const auto column = position.find(static_cast<unsigned>(to.id));
    if (row == position.end() || column == position.end()) return {};
    distances.push_back(
        static_cast<unsigned>(all.values[row->second * all.nbobjs + column->second]));
  }
  return distances;
}

void read_distances(hwloc_topology* machine, std::vector<NumaNode>& nodes) {
  hwloc_distances_s* found = nullptr;
  unsigned count = 1;
  if (hwloc_distances_get_by_type(machine, HWLOC_OBJ_NUMANODE, &count, &found,
                                  HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) != 0 ||
      count == 0 || found == nullptr)
    return;
  for (NumaNode& node : nodes)
    node.distances = distances_between(*found, static_cast<unsigned>(node.id), nodes);
  hwloc_distances_release(machine, found);
}

/// As the system numbers them; in hwloc's order where it does not.
int number_of_package(const hwloc_obj& package) {
  return static_cast<int>(package.os_index == HWLOC_UNKNOWN_INDEX ? package.logical_index
                                                                  : package.os_index);
}

std::vector<NumaNode> numa_nodes(hwloc_topology* machine) {
  std::vector<NumaNode> nodes;
  for (hwloc_obj_t each = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_NUMANODE, nullptr);
       each != nullptr; each = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_NUMANODE, each)) {
    NumaNode node;
    node.id = static_cast<int>(each->os_index);
    node.bytes = each->attr->numanode.local_memory;
    if (const auto* package = hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_PACKAGE, each))
      node.package = number_of_package(*package);
    nodes.push_back(std::move(node));
  }
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  read_distances(machine, nodes);
  return nodes;
}

/// As Linux numbers them: each its own, below 1024 (MAX_NUMNODES).
bool are_numbered(const std::vector<NumaNode>& nodes) {
  constexpr int most = 1024;
  int last = -1;
  for (const NumaNode& node : nodes)
    if (node.id <= std::exchange(last, node.id) || node.id >= most) return false;
  return !nodes.empty();
}

/// Reads one machine.
class Reader {
 public:
  /// `live`: it is this one, and the kernel may be asked.
  Reader(hwloc_topology* machine, bool live) : machine_(machine), live_(live) {}

  Topology read() {
    result_.nodes = numa_nodes(machine_);
    const Objects devices = pci_devices(machine_);
    const PciTree tree(devices, [this](const hwloc_obj& each) { return numa_node_of(each); });
    result_.switches = tree.switches();
    for (const hwloc_obj_t each : devices) {
      if (is_gpu(ids_of(*each)))
        add_gpu(*each, tree);
      else if (is_nic(*each))
        add_nics_of(*each, tree);
      add_drives_of(*each, tree);
    }
    add_nics_beside_pci();
    if (live_) add_software_rdma();
    return std::move(result_);
  }

 private:
  /// A socket may have several nodes, and a group several sockets: the first node stands for them.
  int numa_node_of(const hwloc_obj& object) const {
    const hwloc_obj_t place =
        hwloc_get_non_io_ancestor_obj(machine_, const_cast<hwloc_obj_t>(&object));
    if (place == nullptr || place->nodeset == nullptr) return -1;
    if (place->parent == nullptr && !is_one_socket(*place)) return -1;
    for (const NumaNode& node : result_.nodes)
      if (hwloc_bitmap_isset(place->nodeset, static_cast<unsigned>(node.id)) != 0) return node.id;
    return -1;
  }

  /// Otherwise devices of the whole machine are those whose place is not told, and in a container
  /// those of sockets that it does not see.
  bool is_one_socket(const hwloc_obj& whole) const {
    if (hwloc_bitmap_isequal(whole.nodeset, whole.complete_nodeset) == 0) return false;
    const auto& nodes = result_.nodes;
    return nodes.size() == 1 || std::all_of(nodes.begin(), nodes.end(), [&](const NumaNode& each) {
             return each.package >= 0 && each.package == nodes.front().package;
           });
  }

  void add_gpu(const hwloc_obj& device, const PciTree& tree) {
    Gpu gpu;
    gpu.pci = text_of(address_of(device.attr->pcidev));
    const char* name = info_of(device, "PCIDevice");
    gpu.name = name != nullptr ? name : name_of_gpu(ids_of(device));
    gpu.pci_switch = tree.switch_of(device);
    gpu.numa_node = numa_node_of(device);
    gpu.link_gbps = gbps_of(device.attr->pcidev);
    result_.gpus.push_back(std::move(gpu));
  }

  void add_nics_of(const hwloc_obj& device, const PciTree& tree) {
    const PciIds ids = ids_of(device);
    const Objects rdma = os_devices(device, HWLOC_OBJ_OSDEV_OPENFABRICS);
    const Objects interfaces = os_devices(device, HWLOC_OBJ_OSDEV_NETWORK);
    Nic nic;
    nic.kind = is_efa(ids) ? NicKind::efa : rdma.empty() ? NicKind::network : NicKind::rdma;
    nic.pci = text_of(address_of(device.attr->pcidev));
    nic.name = nic.pci;  // of an EFA that this container may not use
    nic.pci_switch = tree.switch_of(device);
    nic.numa_node = numa_node_of(device);
    nic.gbps = usual_gbps(ids);
    nic.link_gbps = tree.link_of(device);
    if (!interfaces.empty()) nic.interface = interfaces.front()->name;
    for (const hwloc_obj_t each : rdma.empty() ? interfaces : rdma) {
      Nic& named = result_.nics.emplace_back(nic);
      named.name = each->name;
      if (rdma.empty()) named.interface = each->name;
      if (const double gbps = gbps_of(*each, live_); gbps > 0) named.gbps = gbps;
      named.down = is_down(*each, live_);
    }
    if (rdma.empty() && interfaces.empty()) result_.nics.push_back(std::move(nic));
  }

  void add_drives_of(const hwloc_obj& device, const PciTree& tree) {
    for (const hwloc_obj_t each : drives_of(device)) {
      Drive drive;
      drive.name = name_of_drive(each->name);
      drive.pci = text_of(address_of(device.attr->pcidev));
      if (const char* model = info_of(*each, "Model")) drive.model = model;
      drive.bytes = bytes_of_drive(*each);
      drive.pci_switch = tree.switch_of(device);
      drive.numa_node = numa_node_of(device);
      drive.link_gbps = tree.link_of(device);
      result_.drives.push_back(std::move(drive));
    }
  }

  /// Such as those of virtual machines on Azure, which are on another bus.
  void add_nics_beside_pci() {
    std::vector<Nic> found;
    for (hwloc_obj_t each = hwloc_get_next_osdev(machine_, nullptr); each != nullptr;
         each = hwloc_get_next_osdev(machine_, each)) {
      const auto type = number_of(each->attr->osdev.type);
      const bool rdma = type == HWLOC_OBJ_OSDEV_OPENFABRICS;
      if (each->name == nullptr || (!rdma && type != HWLOC_OBJ_OSDEV_NETWORK)) continue;
      hwloc_obj_t above = each->parent;
      while (above != nullptr && above->type == HWLOC_OBJ_OS_DEVICE) above = above->parent;
      if (above != nullptr && above->type == HWLOC_OBJ_PCI_DEVICE) continue;
      Nic nic;
      nic.kind = rdma ? NicKind::rdma : NicKind::network;
      nic.name = each->name;
      if (!rdma) nic.interface = each->name;
      nic.numa_node = numa_node_of(*each);
      nic.gbps = gbps_of(*each, live_);
      nic.down = is_down(*each, live_);
      found.push_back(std::move(nic));
    }
    std::sort(found.begin(), found.end(),
              [](const Nic& a, const Nic& b) { return a.name < b.name; });
    std::move(found.begin(), found.end(), std::back_inserter(result_.nics));
  }

  /// They are where their interfaces are.
  void add_software_rdma() {
    for (const SoftwareRdma& each : software_rdma()) {
      const auto on = std::find_if(result_.nics.begin(), result_.nics.end(), [&](const Nic& nic) {
        return nic.kind == NicKind::network && nic.name == each.interface;
      });
      if (on == result_.nics.end()) {
        result_.unplaced.push_back(
            {each.name,
             each.interface.empty()
                 ? "the kernel does not tell which network interface it is on"
                 : "its network interface, " + each.interface + ", has no place in the PCI tree"});
        continue;
      }
      Nic nic = *on;
      nic.kind = NicKind::rdma;
      nic.name = each.name;
      if (const double gbps = rdma_gbps(each.name); gbps > 0) nic.gbps = gbps;
      result_.nics.insert(on + 1, std::move(nic));
    }
  }

  hwloc_topology* const machine_;
  const bool live_;
  Topology result_;
};

}  // namespace
}  // namespace topo

Result<Topology> load_topology(const std::string& xml) {
  auto machine = topo::read_machine(xml);
  if (!machine) return fail(std::move(machine.error()));
  Topology topology = topo::Reader(machine->get(), xml.empty()).read();
  if (!topo::are_numbered(topology.nodes))
    return fail(Code::invalid_argument,
                fmt::format("no topology in {}: its NUMA nodes have no numbers of their own", xml));
  return topology;
}

}  // namespace weft
