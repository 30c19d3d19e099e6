// What a machine is made of, as far as it matters to transfers: written down by hand for known
// machines (machines.cpp), at random for unknown ones (random_topology.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::facts {

enum class Kind : std::uint8_t { disk = 0, network = 2, rdma = 3 };  ///< Numbered as hwloc does.

/// What the system makes of a PCI function: "eth0", "mlx5_0", "nvme0n1".
struct OsDevice {
  Kind kind;
  std::string name;
  double gbps = 0;  ///< To the network, where it is not to be told from the PCI ids; 0: unknown.
};

/// A PCI function, a bridge with what is below it, or (without an address) a root complex.
struct Function {
  std::string pci;   ///< "0000:4f:00.0"
  std::string type;  ///< Class and subclass: "0302".
  std::string ids;   ///< "10de:2330"
  double link = 0;   ///< Of its PCIe link, in GB/s each way, as hwloc has it; 0: not told.
  std::string name;  ///< "GH100 [H100 SXM5 80GB]"; may be empty.
  std::vector<OsDevice> devices = {};
  std::vector<Function> below = {};
};

struct Node {
  int id = 0;
  std::uint64_t bytes = 0;
  std::vector<Function> roots = {};
};

struct Package {
  std::vector<Node> nodes;
};

struct Machine {
  std::string name;
  std::string about;  ///< In a sentence.
  std::vector<Package> packages;
  std::vector<Function> roots = {};                   ///< Those whose NUMA node is not told.
  std::vector<std::vector<unsigned>> distances = {};  ///< Between all nodes; may be empty.
  std::vector<OsDevice> beside_pci = {};              ///< Network devices that are on no PCI bus.
  int hidden = 0;  ///< So many further nodes exist that a container does not get to see.
};

// PCIe, in GB/s each way: rails x rate x 128/130 (8/10 for the first two generations).
inline constexpr double gen1_x8 = 2.0, gen3_x4 = 3.938462, gen3_x16 = 15.753846,
                        gen4_x16 = 31.507692, gen5_x16 = 63.015385;

std::string address(unsigned bus, unsigned device = 0, unsigned function = 0);
/// The number of the bus, and of the device on it, in an address.
unsigned bus_of(const std::string& pci);
unsigned device_of(const std::string& pci);

/// Of a root complex or bridge, "0000:[44-54]": from the first to the last bus of what is below it.
std::string buses_below(const Function& bridge);

Function root_complex(std::vector<Function> below);
/// A switch or a port; without ids of its own it is Amazon's.
Function bridge(std::string pci, double link, std::vector<Function> below,
                std::string ids = "1d0f:0200");

}  // namespace weft::facts
