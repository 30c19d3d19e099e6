// Where drives are plugged in, as this machine's kernel tells.
#pragma once

#include <sys/types.h>

#include <string>

namespace weft::topo {

/// The NUMA node near to a block device, or to the one that a partition is of; -1: unknown, or
/// there is no device (tmpfs, network file systems).
int numa_node_of_drive(dev_t device, const std::string& sysfs);
int numa_node_of_drive(dev_t device);

}  // namespace weft::topo
