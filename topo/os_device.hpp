// What is told of a network device of the operating system: by a file, or by this machine's kernel.
#pragma once

#include <hwloc.h>

#include "topo/devices.hpp"

namespace weft::topo {

PciIds ids_of(const hwloc_obj& pci_device);

/// Speed to the network in Gb/s; 0: unknown. `live`: it is of this machine.
double gbps_of(const hwloc_obj& os_device, bool live);

/// Whether it is told that none of its ports is active.
bool is_down(const hwloc_obj& os_device, bool live);

/// Whether an info of this name is a port's state, as hwloc has it.
bool is_port_state(std::string_view name);

/// Notes what the kernel tells of it, for a file.
void note_state(hwloc_obj& os_device);

}  // namespace weft::topo
