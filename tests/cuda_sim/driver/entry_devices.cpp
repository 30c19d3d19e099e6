// The devices.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "driver/entry.hpp"

namespace weft::cuda_sim {

namespace {

/// With its end, cut where the room ends.
void give_text(const std::string& text, char* room, int size) {
  require(room != nullptr && size > 0);
  std::snprintf(room, static_cast<std::size_t>(size), "%s", text.c_str());
}

struct PciAddress {
  unsigned domain = 0, bus = 0, slot = 0;
};

PciAddress pci_of(const Device& device) {
  PciAddress address;
  std::sscanf(device.pci.c_str(), "%x:%x:%x", &address.domain, &address.bus, &address.slot);
  return address;
}

int attribute_of(const Device& device, int attribute, const Settings& settings) {
  switch (attribute) {
    case device_unified_addressing:
    case device_managed_memory:
      return 1;
    case device_dmabuf_supported:
      return settings.dmabuf;
    case device_gpudirect_supported:
      return settings.gpudirect;
    case device_flush_options:
      return settings.of(device.ordinal).flushes ? flush_option_host : 0;
    case device_writes_ordering:
      return settings.of(device.ordinal).writes_ordering;
    case device_pci_domain:
      return static_cast<int>(pci_of(device).domain);
    case device_pci_bus:
      return static_cast<int>(pci_of(device).bus);
    case device_pci_slot:
      return static_cast<int>(pci_of(device).slot);
    default:
      return 0;
  }
}

}  // namespace

WEFT_CUDA_EXPORT Status cuDeviceGetCount(int* count) {
  return enter("cuDeviceGetCount", [&](Lock&) {
    require(count != nullptr);
    *count = static_cast<int>(simulator().devices.size());
  });
}

WEFT_CUDA_EXPORT Status cuDeviceGet(Ordinal* device, int ordinal) {
  return enter("cuDeviceGet", [&](Lock&) {
    require(device != nullptr);
    *device = simulator().device(ordinal).ordinal;
  });
}

WEFT_CUDA_EXPORT Status cuDeviceGetAttribute(int* value, int attribute, Ordinal device) {
  return enter("cuDeviceGetAttribute", [&](Lock&) {
    require(value != nullptr && attribute > 0);
    *value = attribute_of(simulator().device(device), attribute, simulator().settings);
  });
}

WEFT_CUDA_EXPORT Status cuDeviceGetPCIBusId(char* text, int size, Ordinal device) {
  return enter("cuDeviceGetPCIBusId",
               [&](Lock&) { give_text(simulator().device(device).pci, text, size); });
}

WEFT_CUDA_EXPORT Status cuDeviceGetName(char* text, int size, Ordinal device) {
  return enter("cuDeviceGetName",
               [&](Lock&) { give_text(simulator().device(device).name(), text, size); });
}

WEFT_CUDA_EXPORT Status cuDeviceGetUuid(Uuid* uuid, Ordinal device) {
  return enter("cuDeviceGetUuid", [&](Lock&) {
    require(uuid != nullptr);
    *uuid = simulator().device(device).uuid();
  });
}

WEFT_CUDA_EXPORT Status cuDeviceTotalMem_v2(std::size_t* bytes, Ordinal device) {
  return enter("cuDeviceTotalMem_v2", [&](Lock&) {
    require(bytes != nullptr);
    *bytes = simulator().device(device).memory;
  });
}

WEFT_CUDA_EXPORT Status cuDeviceCanAccessPeer(int* can, Ordinal device, Ordinal peer) {
  return enter("cuDeviceCanAccessPeer", [&](Lock&) {
    Simulator& s = simulator();
    require(can != nullptr);
    *can = s.device(device).ordinal != s.device(peer).ordinal && s.settings.peer;
  });
}

}  // namespace weft::cuda_sim
