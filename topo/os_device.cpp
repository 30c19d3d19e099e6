#include "topo/os_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>

#include "topo/hwloc.hpp"
#include "topo/kernel.hpp"
#include "topo/read.hpp"

namespace weft::topo {
namespace {

// Names of infos in Weft's own captures; hwloc has none for either.
constexpr const char* gbps_info = "LinkGbps";
constexpr const char* state_info = "LinkState";
constexpr std::string_view down_state = "down";

// Files may say anything.
constexpr std::uint64_t most_kib = std::numeric_limits<std::uint64_t>::max() >> 10;

bool is_rdma(const hwloc_obj& os_device) {
  return number_of(os_device.attr->osdev.type) == HWLOC_OBJ_OSDEV_OPENFABRICS;
}

bool is_network(const hwloc_obj& os_device) {
  return number_of(os_device.attr->osdev.type) == HWLOC_OBJ_OSDEV_NETWORK;
}

/// All zero for a device on another bus.
PciIds ids_above(const hwloc_obj& os_device) {
  hwloc_obj_t above = os_device.parent;
  while (above != nullptr && above->type == HWLOC_OBJ_OS_DEVICE) above = above->parent;
  return above != nullptr && above->type == HWLOC_OBJ_PCI_DEVICE ? ids_of(*above) : PciIds();
}

double gbps_by_kernel(const hwloc_obj& os_device) {
  if (is_rdma(os_device)) return gbps_by_driver(ids_above(os_device), rdma_gbps(os_device.name));
  return is_network(os_device) ? interface_gbps(os_device.name) : 0;
}

/// By the states of its ports, as libibverbs numbers them (ibv_port_state).
bool has_no_active_port(const hwloc_obj& os_device) {
  constexpr double first_inactive = 1, first_active = 4;  // 1 to 3: down, initializing, armed
  bool inactive = false;
  for (unsigned i = 0; i < os_device.infos_count; ++i) {
    const hwloc_info_s& info = os_device.infos[i];
    if (!is_port_state(info.name)) continue;
    const double state = number_in(info.value);
    if (state >= first_active) return false;
    inactive = inactive || state >= first_inactive;
  }
  return inactive;
}

}  // namespace

PciIds ids_of(const hwloc_obj& pci_device) {
  const auto& pci = pci_device.attr->pcidev;
  return {pci.vendor_id, pci.device_id, pci.class_id};
}

double gbps_of(const hwloc_obj& os_device, bool live) {
  if (const char* told = info_of(os_device, gbps_info)) return std::max(0.0, number_in(told));
  return live ? gbps_by_kernel(os_device) : usual_gbps(ids_above(os_device));
}

bool is_down(const hwloc_obj& os_device, bool live) {
  if (is_rdma(os_device)) return has_no_active_port(os_device);
  if (const char* told = info_of(os_device, state_info)) return told == down_state;
  return live && interface_is_down(os_device.name);
}

bool is_port_state(std::string_view name) {
  return name.starts_with("Port") && name.ends_with("State");  // "Port1State"
}

std::uint64_t bytes_of_drive(const hwloc_obj& os_device) {
  const char* told = info_of(os_device, "Size");  // in KiB
  std::uint64_t kib = 0;                          // also where it is no number
  if (told != nullptr) std::from_chars(told, told + std::strlen(told), kib);
  return kib > most_kib ? 0 : kib << 10;
}

void note_state(hwloc_obj& os_device) {
  const double gbps = gbps_by_kernel(os_device);
  if (gbps > 0) hwloc_obj_add_info(&os_device, gbps_info, fmt::format("{}", gbps).c_str());
  if (is_network(os_device) && interface_is_down(os_device.name))
    hwloc_obj_add_info(&os_device, state_info, std::string(down_state).c_str());
}

}  // namespace weft::topo
