// Which PCI functions are GPUs and NICs, and what is known of them beforehand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <weft/topology.hpp>

namespace weft::topo {

/// As PCI has it.
struct PciIds {
  std::uint16_t vendor = 0, device = 0;
  std::uint16_t type = 0;  // class and subclass: 0x0302
};

/// Whether it has memory that transfers may concern; not so chips that only drive a display.
bool is_gpu(const PciIds& ids);

/// For one that the system has no name for.
std::string name_of_gpu(const PciIds& ids);

bool is_efa(const PciIds& ids);

/// Where neither the kernel nor a file tells: in Gb/s; 0 if it is not known.
double usual_gbps(const PciIds& ids);

/// The speed of a NIC whose driver tells `told`, in Gb/s; 0 if it is not known.
double gbps_by_driver(const PciIds& ids, double told);

}  // namespace weft::topo
