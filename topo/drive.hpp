// Where drives are plugged in, as this machine's kernel tells.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <weft/topology.hpp>

namespace weft::topo {

/// What the bytes of a block device lie on.
struct DrivePlace {
  std::string name = {};  // of the drive: "nvme0n1"; empty: there are several, or none
  int numa_node = -1;     // near to all of them; -1: there is none, or it is unknown
};

/// Of a partition its drive, of what device-mapper and md make the drives below. A file system may
/// have no block device of its own (tmpfs, network file systems, btrfs); and a loop device, whose
/// file may be anywhere, stands for itself and has no node.
DrivePlace place_of_drive(dev_t device, const std::string& sysfs);
DrivePlace place_of_drive(dev_t device);

/// "nvme0n1", also of a path to it: a drive with several ports, or that could have them, is a
/// device of no controller, and each controller's path to it has a name of its own, "nvme0c1n1".
std::string name_of_drive(std::string_view block_device);

/// Its index; -1: it is not in the topology, or more than once (a drive with two ports).
int find_drive(const Topology& topology, std::string_view name);

}  // namespace weft::topo
