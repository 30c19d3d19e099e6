/// @file
/// The machine as transfers see it: memory, GPUs, drives, NICs, and the links between them.
/// load_topology() makes plain data; everything below is a pure function of it, with the same
/// result on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <weft/error.hpp>
#include <weft/export.hpp>
#include <weft/place.hpp>

namespace weft {

struct NumaNode {
  int id = 0;               ///< The system's number, as in Place::numa_node.
  int package = -1;         ///< Its socket; -1: unknown.
  std::uint64_t bytes = 0;  ///< Of memory.
  /// Distances to each of Topology::nodes, as the firmware rates them: 10 is the node itself
  /// (ACPI's SLIT). Empty if it does not.
  std::vector<unsigned> distances;
};

/// A root complex, or a PCIe switch with several devices below it. These reach each other without
/// its uplink.
struct PciSwitch {
  std::string pci;         ///< "0000:44:00.0"; of a root complex its buses, "0000:[44-54]".
  int above = -1;          ///< Index in Topology::switches; -1: it is a root complex.
  int numa_node = -1;      ///< -1: unknown.
  double uplink_gbps = 0;  ///< Of the slowest link up to `above`, Gb/s each way; 0: unknown.
};

enum class NicKind : std::uint8_t {
  efa,
  rdma,     ///< InfiniBand, RoCE, iWARP: an OpenFabrics device.
  network,  ///< A plain network interface, for tcp.
};

struct Nic {
  NicKind kind = NicKind::network;
  std::string name;       ///< Of the device, as libfabric's domain: "rdmap79s0", "mlx5_0", "eth0".
  std::string interface;  ///< The network interface of the same function, if there is one.
  std::string pci;        ///< "0000:4f:00.0"; empty if it has no place in the PCI tree.
  int pci_switch = -1;    ///< Index in Topology::switches; -1: none.
  int numa_node = -1;     ///< If it belongs to a socket, the first node there; -1: unknown.
  double gbps = 0;        ///< Speed to the network, Gb/s each way; 0: unknown.
  /// Of the narrowest PCIe link between it and its switch, Gb/s each way, as the bus reports it; 0:
  /// unknown. All functions of a card share it. Virtual machines' buses may report too little.
  double link_gbps = 0;
  bool down = false;  ///< None of its ports is active: it serves nothing.
};

/// A GPU or another accelerator with memory of its own; no chip that only drives a display.
struct Gpu {
  std::string pci;
  std::string name;      ///< "GH100 [H100 SXM5 80GB]"; PCI ids if no name is known.
  int pci_switch = -1;   ///< Index in Topology::switches; -1: none.
  int numa_node = -1;    ///< As a NIC's.
  double link_gbps = 0;  ///< Of its PCIe link, Gb/s each way; 0: unknown.
};

/// A drive that is on the PCI bus: an NVMe namespace, or a disk of a controller. Those that are
/// not, such as namespaces over fabrics, are no part of the topology; nor are partitions, and what
/// the kernel makes of drives (device-mapper, md).
struct Drive {
  std::string name;         ///< Of the block device: "nvme0n1".
  std::string pci;          ///< Of its controller: "0000:54:00.0".
  std::string model;        ///< Empty: unknown.
  std::uint64_t bytes = 0;  ///< 0: unknown.
  int pci_switch = -1;      ///< Index in Topology::switches; -1: none.
  int numa_node = -1;       ///< As a NIC's.
  double link_gbps = 0;     ///< Of the narrowest PCIe link to its switch, as a NIC's.
};

/// A device that has no place in the tree.
struct Unplaced {
  std::string name;
  std::string reason;  ///< As a sentence.
};

/// The lists are in the order of PCI addresses, whatever order the system lists them in (nodes: of
/// ids; switches: parents first). NICs without an address follow, by name.
struct Topology {
  std::vector<NumaNode> nodes;  ///< At least one.
  std::vector<PciSwitch> switches;
  std::vector<Gpu> gpus;  ///< Place::device is an index in it.
  std::vector<Nic> nics;
  std::vector<Drive> drives;  ///< Place::drive is an index in it. Those of one controller by name.
  std::vector<Unplaced> unplaced;
};

/// This machine, or another one from a file in hwloc's XML format, version 2 (`xml`: its path). An
/// hwloc without libxml2 does not read files that have a raw '>' in an attribute. Speeds of this
/// machine's NICs come from the kernel. A file may hold speeds; otherwise they come from a table of
/// devices.
WEFT_API Result<Topology> load_topology(const std::string& xml = {});

/// This machine as the text of a file for load_topology() elsewhere, such as for a bug report.
/// Without serial numbers, addresses of NICs, names of hosts, or processes.
WEFT_API Result<std::string> capture_topology();

/// Indices of the NICs that transfers prefer: those of the first kind that there is, of EFA, RDMA
/// and network. Where the speed of some RDMA or network NICs is known, those whose speed is not are
/// left out: they may be ports for management or storage. So are NICs that are down.
WEFT_API std::vector<std::size_t> preferred_nics(const Topology& topology);

/// The index of the GPU at a PCI address: "0000:53:00.0", "53:00.0", or as CUDA writes it. Fails
/// with `not_found`, and lists the GPUs.
WEFT_API Result<int> find_gpu(const Topology& topology, std::string_view pci);

/// What is made of each PCIe link that reports less than a NIC has, in sentences; virtual machines'
/// buses often report too little. A NIC counts as its own link, down to half of its speed; less is
/// not believed. An uplink below the speed of one NIC behind it is not believed, unless another
/// switch of that level, with as fast a NIC behind it, reports enough.
WEFT_API std::vector<std::string> notes_on_links(const Topology& topology);

/// The lowest level that two devices, or a device and memory, have in common.
enum class Nearness : std::uint8_t { pci_switch, root_complex, numa_node, machine };

/// A NIC as seen from some memory.
struct NicCost {
  std::size_t nic = 0;  ///< Index in Topology::nics.
  Nearness nearness = Nearness::machine;
  /// Speed of the slowest part of the way: the NIC itself, its PCIe link, uplinks of switches, the
  /// link between sockets; without links whose report is not believed (notes_on_links()). Not the
  /// GPU's own link, which may report less while it is idle. A NIC of unknown speed counts as its
  /// share of its card's PCIe link, but at most as the slowest NIC of known speed; where nothing is
  /// known, as 1 Gb/s.
  double gbps = 0;
  /// Of a byte, relative to other NICs; see topo/cost.hpp. The link of a NIC of known speed does
  /// not count.
  double cost = 0;
};

/// The NICs that serve some memory.
struct Affinity {
  std::vector<NicCost> order;      ///< All usable NICs: those that serve it first, then by cost.
  std::size_t serving = 0;         ///< The number of NICs at the front of `order` that serve it.
  std::string reason;              ///< Why these: "below one switch with GPU 0000:53:00.0".
  std::vector<std::string> notes;  ///< Those of notes_on_links() on the way to those that serve.
};

/// Which of `nics` serve the memory at `place`. NICs in `missing` can't be used: their share moves
/// to others, and all else stays. NICs that are down do not count.
///
/// GPUs that share a switch share its NICs evenly, in bus order. A GPU without a near NIC is served
/// by farther ones, at a higher cost; so is a GPU whose near NICs are so slow that far ones are
/// cheaper. Drives share NICs among themselves by the same rules. Host memory is spread over the
/// NICs of its node, up to what the uplinks of their switches carry. Memory whose node is unknown
/// is spread over the NICs of all nodes. Every place is served unless there is no NIC. Places that
/// are not in the topology count as unknown.
WEFT_API Affinity affinity(const Topology& topology, const Place& place,
                           std::span<const std::size_t> nics,
                           std::span<const std::size_t> missing = {});

/// The share of a NIC's traffic that goes to one NIC of the other side.
struct NicShare {
  std::size_t nic = 0;       ///< Position in the other side's list.
  std::uint64_t weight = 0;  ///< Relative to the same NIC's other shares.
};

/// Pairs the NICs of two sides by their speeds in Gb/s (0: unknown, taken as the slowest known
/// speed). Returns for each own NIC the peer's NICs that it talks to, and their shares. No NIC
/// idles, and none gets more than in proportion to its speed. The other side computes the same
/// pairs from the same lists. Empty if one of the lists is.
WEFT_API std::vector<std::vector<NicShare>> pair_nics(std::span<const double> own,
                                                      std::span<const double> peer);

WEFT_API std::string_view to_string(NicKind kind) noexcept;
WEFT_API std::string_view to_string(Nearness nearness) noexcept;

}  // namespace weft
