// Device memory for other processes and other devices: IPC handles and dmabuf.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "driver/entry.hpp"
#include "driver/ipc.hpp"

namespace weft::cuda_sim {

namespace {

constexpr std::size_t host_page = 4096;

Device& device_with(const Uuid& uuid) {
  std::vector<Device>& devices = simulator().devices;
  const auto found = std::ranges::find_if(devices, [&](const Device& each) {
    const Uuid own = each.uuid();
    return std::memcmp(&own, &uuid, sizeof uuid) == 0;
  });
  require(found != devices.end(), map_failed);
  return *found;
}

/// What the context has open already; null if it has not.
RegionPtr opened_before(std::uint64_t tag, const ContextObject& context) {
  for (const auto& [base, region] : simulator().memory.regions())
    if (region->kind == Kind::opened && region->tag == tag && region->context == &context)
      return region;
  return nullptr;
}

/// The region with whole pages that begin at an address; its last one may be begun only.
RegionPtr region_of_pages(Address address, std::size_t bytes) {
  const RegionPtr region = simulator().memory.find(address);
  require(region != nullptr && bytes > 0);
  const std::size_t rest = region->base + region->bytes - address;
  require(bytes <= (rest + host_page - 1) / host_page * host_page);
  return region;
}

/// The memory's file with a position of its own, which says where in it the range begins: a file
/// can't be cut.
int export_from(const Region& region, Address address) {
  const std::string path = "/proc/self/fd/" + std::to_string(region.backing.descriptor());
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  require(descriptor >= 0, operating_system);
  lseek(descriptor, static_cast<off_t>(address - region.base), SEEK_SET);
  return descriptor;
}

RegionPtr open_exported(const Exported& exported, ContextObject& context) {
  if (RegionPtr region = opened_before(exported.tag, context)) return region;
  const Device& device = device_with(exported.device);
  RegionPtr region = simulator().memory.open(
      Backing::open(exported.process, exported.descriptor, exported.bytes, exported.tag),
      exported.bytes, exported.tag);
  region->context = &context;
  region->device = device.ordinal;
  return region;
}

}  // namespace

WEFT_CUDA_EXPORT Status cuIpcGetMemHandle(IpcHandle* handle, Address address) {
  return enter("cuIpcGetMemHandle", [&](Lock& lock) {
    Simulator& s = simulator();
    current(lock);
    require(s.settings.ipc, not_supported);
    const RegionPtr region = s.memory.find(address);
    require(handle != nullptr && region && region->kind == Kind::device);
    *handle = handle_of(*region, s.device(region->device).uuid());
  });
}

WEFT_CUDA_EXPORT Status cuIpcOpenMemHandle_v2(Address* address, IpcHandle handle, unsigned flags) {
  return enter("cuIpcOpenMemHandle_v2", [&](Lock& lock) {
    ContextObject& context = current(lock);
    require(simulator().settings.ipc, not_supported);
    require(address != nullptr && flags == ipc_lazy_peer_access);
    const Exported exported = read_handle(handle);
    require(exported.process != getpid(), invalid_context);
    const RegionPtr region = open_exported(exported, context);
    ++region->opened;
    *address = region->base;
  });
}

WEFT_CUDA_EXPORT Status cuIpcCloseMemHandle(Address address) {
  return enter("cuIpcCloseMemHandle", [&](Lock& lock) {
    ContextObject& context = current(lock);
    const RegionPtr region = simulator().memory.find(address);
    require(region && region->base == address && region->kind == Kind::opened);
    require(region->context == &context, invalid_context);
    if (--region->opened == 0) take_away(region, lock);
  });
}

WEFT_CUDA_EXPORT Status cuMemGetHandleForAddressRange(void* handle, Address address,
                                                      std::size_t bytes, int type,
                                                      unsigned long long flags) {
  return enter("cuMemGetHandleForAddressRange", [&](Lock& lock) {
    Simulator& s = simulator();
    current(lock);
    require(s.settings.dmabuf && flags == 0, not_supported);
    require(handle != nullptr && type == handle_dmabuf);
    require(bytes > 0 && address % host_page == 0 && bytes % host_page == 0);
    const RegionPtr region = region_of_pages(address, bytes);
    require(region->kind == Kind::device);
    *static_cast<int*>(handle) = export_from(*region, address);
  });
}

WEFT_CUDA_EXPORT Status cuFlushGPUDirectRDMAWrites(int target, int scope) {
  return enter("cuFlushGPUDirectRDMAWrites", [&](Lock& lock) {
    Simulator& s = simulator();
    require(s.settings.of(current(lock).device).flushes, not_supported);
    require(target == flush_current_context && scope == flush_to_owner);
    ++s.log.counters().flushes;
  });
}

}  // namespace weft::cuda_sim
