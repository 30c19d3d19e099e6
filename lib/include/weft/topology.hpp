/// @file
/// The machine as it matters to transfers: where memory, GPUs and NICs lie, and what is between
/// them. Plain data, made by load_topology(); everything below it is a pure function of that data,
/// and so the same wherever it is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <weft/error.hpp>
#include <weft/export.hpp>
#include <weft/memory.hpp>

namespace weft {

struct NumaNode {
  int id = 0;        ///< As the system numbers it; Place::numa_node and the others mean this.
  int package = -1;  ///< Its socket; -1 where it can't be told.
  std::uint64_t bytes = 0;  ///< Of memory.
  /// To each of Topology::nodes, as the firmware rates them: 10 is the node itself (ACPI's SLIT).
  /// Empty where it does not.
  std::vector<unsigned> distances;
};

/// A root complex, or a PCIe switch below which GPUs and NICs part ways: those below one reach each
/// other without its uplink.
struct PciSwitch {
  std::string pci;         ///< "0000:44:00.0"; of a root complex its buses, "0000:[44-54]".
  int above = -1;          ///< Index in Topology::switches; -1: it is a root complex.
  int numa_node = -1;      ///< -1 where it can't be told.
  double uplink_gbps = 0;  ///< Of the narrowest link up to `above`, Gb/s each way; 0: unknown.
};

enum class NicKind : std::uint8_t {
  efa,
  rdma,     ///< InfiniBand, RoCE, iWARP: an OpenFabrics device.
  network,  ///< A network interface and no more: for tcp.
};

struct Nic {
  NicKind kind = NicKind::network;
  std::string name;       ///< Of the device, as libfabric's domain: "rdmap79s0", "mlx5_0", "eth0".
  std::string interface;  ///< The network interface of the same function, where there is one.
  std::string pci;        ///< "0000:4f:00.0"; empty if it has no place in the PCI tree.
  int pci_switch = -1;    ///< Index in Topology::switches; -1: none.
  int numa_node = -1;     ///< The first of its socket's, if it is on no one; -1: can't be told.
  double gbps = 0;        ///< Speed to the network, Gb/s each way; 0: unknown.
};

/// A GPU or another accelerator with memory of its own.
struct Gpu {
  std::string pci;
  std::string name;      ///< "GH100 [H100 SXM5 80GB]"; by PCI ids where no better one is known.
  int pci_switch = -1;   ///< Index in Topology::switches; -1: none.
  int numa_node = -1;    ///< As a NIC's.
  double link_gbps = 0;  ///< Of its PCIe link, Gb/s each way; 0: unknown.
};

/// Something that has no place in the tree.
struct Unplaced {
  std::string name;
  std::string reason;  ///< As a sentence.
};

/// All lists but the last are in the order of PCI addresses (nodes: of ids; switches: parents
/// first), whatever order the system lists them in; NICs without an address follow, by name.
struct Topology {
  std::vector<NumaNode> nodes;  ///< At least one.
  std::vector<PciSwitch> switches;
  std::vector<Gpu> gpus;  ///< Place::device is an index in it.
  std::vector<Nic> nics;
  std::vector<Unplaced> unplaced;
};

/// This machine, or what hwloc has written of another one (`xml`, the path of a file in hwloc's XML
/// format, version 2). Without libxml2 in hwloc a file must not begin with a comment, nor have a
/// raw '>' in an attribute. Reads speeds of this machine's NICs from the kernel; a file may hold
/// them, else they are taken from a table by device.
WEFT_API Result<Topology> load_topology(const std::string& xml = {});

/// This machine as the text of a file for load_topology() elsewhere: to be attached to a bug
/// report. Without serial numbers, addresses of NICs, names of hosts, or processes.
WEFT_API Result<std::string> capture_topology();

/// The NICs that transfers use by preference, as indices: all EFA and RDMA NICs, or where there
/// are none, all others.
WEFT_API std::vector<std::size_t> preferred_nics(const Topology& topology);

/// The GPU at a PCI address, as its index: "0000:53:00.0", "53:00.0", or as CUDA writes it. Fails
/// with `not_found`, and says which there are.
WEFT_API Result<int> find_gpu(const Topology& topology, std::string_view pci);

/// What two devices, or a device and memory, have in common at the lowest level.
enum class Nearness : std::uint8_t { pci_switch, root_complex, numa_node, machine };

/// A NIC as seen from some memory.
struct NicCost {
  std::size_t nic = 0;  ///< Index in Topology::nics.
  Nearness nearness = Nearness::machine;
  /// Of the narrowest part of the way: the NIC's own speed, the uplinks of the switches on it, and
  /// the link between sockets. Not the GPU's own link, which says less while it is idle. A NIC of
  /// unknown speed counts as the slowest of known speed, or as 1 Gb/s.
  double gbps = 0;
  double cost = 0;  ///< Of a byte, relative to others; see topo/cost.hpp.
};

/// Which NICs serve some memory.
struct Affinity {
  std::vector<NicCost> order;  ///< All NICs that may be used: those that serve, then by cost.
  std::size_t serving = 0;     ///< So many of them, from the first on, serve it.
  std::string reason;          ///< Where these are: "below one switch with GPU 0000:53:00.0".
};

/// Which of `nics` serve the memory at `place`; those that are also in `missing` can't be used, and
/// what they would serve moves to others, while all the rest stays.
///
/// GPUs that have a switch in common share its NICs evenly, in bus order. A GPU without a NIC of
/// its own is served by farther ones, at a higher cost; so is one whose near NICs are so much
/// slower that the far ones are cheaper. Host memory is spread over the NICs of its node, up to
/// what the uplinks of their switches carry; memory whose node is unknown over those of all nodes.
/// Nothing is served only if there is no NIC. Places that are not in the topology count as unknown.
WEFT_API Affinity affinity(const Topology& topology, const Place& place,
                           std::span<const std::size_t> nics,
                           std::span<const std::size_t> missing = {});

/// How much of a NIC's traffic goes to one NIC of the other side.
struct NicShare {
  std::size_t nic = 0;       ///< Position in the other side's list.
  std::uint64_t weight = 0;  ///< Relative to the same NIC's other shares.
};

/// Pairs the NICs of two sides, given by their speeds in Gb/s (0: unknown, taken as the slowest of
/// those known), so that each carries what it can: for each own NIC, those of the peer that it
/// talks to and how much. Nobody idles, and no NIC gets more than in proportion to its speed. The
/// other side computes the same pairs from the same lists. Empty if one of them is.
WEFT_API std::vector<std::vector<NicShare>> pair_nics(std::span<const double> own,
                                                      std::span<const double> peer);

WEFT_API std::string_view to_string(NicKind kind) noexcept;
WEFT_API std::string_view to_string(Nearness nearness) noexcept;

}  // namespace weft
