// hwloc's view of a machine, devices included.
#pragma once

#include <string>
#include <weft/error.hpp>

#include "hwloc.hpp"

namespace weft::topo {

/// This machine, or with a path that of an XML file. Whole, whatever part of it this process may
/// use.
Result<HwlocPtr> read_machine(const std::string& xml);

/// A value that was attached to an object; null if there is none of that name.
const char* info_of(const hwloc_obj& object, const char* name);

/// What a file holds of a NIC's speed: Gb/s.
inline constexpr const char* gbps_info = "LinkGbps";

}  // namespace weft::topo
