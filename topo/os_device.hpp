// What is told of a network device or drive of the operating system: by a file, or by this
// machine's kernel.
#pragma once

#include <hwloc.h>

#include <cstdint>
#include <string_view>

#include "topo/devices.hpp"

namespace weft::topo {

PciIds ids_of(const hwloc_obj& pci_device);

/// Speed to the network in Gb/s; 0: unknown. `live`: it is of this machine.
double gbps_of(const hwloc_obj& os_device, bool live);

/// Whether it is told that none of its ports is active.
bool is_down(const hwloc_obj& os_device, bool live);

/// Whether an info of this name is a port's state, as hwloc has it.
bool is_port_state(std::string_view name);

/// Of a drive; 0: unknown.
std::uint64_t bytes_of_drive(const hwloc_obj& os_device);

/// Notes what the kernel tells of it, for a file.
void note_state(hwloc_obj& os_device);

}  // namespace weft::topo
