// The hardware counters of RDMA devices, in the kernel's files.
#pragma once

#include <optional>
#include <string>
#include <weft/nic_counters.hpp>

namespace weft::topo {

/// Of all ports of a device below `sysfs`; none if there is no such device. A driver may ask its
/// device for them.
std::optional<NicCounters> read_nic_counters(const std::string& sysfs, const std::string& device);

}  // namespace weft::topo
