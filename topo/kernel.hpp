// Facts about this machine's NICs that Linux knows and hwloc does not.
#pragma once

#include <string>
#include <vector>

namespace weft::topo {

/// Where the kernel tells of devices. rdma-core, which finds RDMA NICs, takes another place from
/// the same variable (SYSFS_PATH).
std::string sysfs();

/// Of the first port of an RDMA device, else of a network interface, in Gb/s; 0 if it is not told.
double rdma_gbps(const std::string& device);
double interface_gbps(const std::string& interface);

/// Whether the kernel says that it carries nothing now.
bool interface_is_down(const std::string& interface);

/// A software RDMA device (soft-RoCE), which has no place in the PCI tree.
struct SoftwareRdma {
  std::string name;
  std::string interface;  // that it is on; empty where the kernel does not tell
};
std::vector<SoftwareRdma> software_rdma();

}  // namespace weft::topo
