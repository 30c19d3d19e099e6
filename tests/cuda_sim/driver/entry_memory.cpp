// Memory: allocated, freed, pinned.
#include "driver/entry.hpp"

namespace weft::cuda_sim {

namespace {

std::size_t used_on(Ordinal device) {
  std::size_t used = 0;
  for (const auto& [base, region] : simulator().memory.regions())
    if (region->on_device() && region->kind != Kind::opened && region->device == device)
      used += region->bytes;
  return used;
}

std::size_t free_on(Ordinal device) {
  return simulator().device(device).memory - used_on(device);
}

Address give_to(ContextObject& context, const RegionPtr& region) {
  region->context = &context;
  region->device = context.device;
  return region->base;
}

/// The region that begins there and is of the kind.
RegionPtr begun_at(Address base, Kind kind, Status otherwise) {
  RegionPtr region = simulator().memory.find(base);
  require(region && region->base == base && region->kind == kind, otherwise);
  return region;
}

void allocate_host(void** memory, std::size_t bytes, Lock& lock) {
  ContextObject& context = current(lock);
  require(memory != nullptr && bytes > 0);
  const RegionPtr region = simulator().memory.allocate_pinned(bytes);
  give_to(context, region);
  *memory = region->host.data();
}

}  // namespace

WEFT_CUDA_EXPORT Status cuMemAlloc_v2(Address* address, std::size_t bytes) {
  return enter("cuMemAlloc_v2", [&](Lock& lock) {
    ContextObject& context = current(lock);
    require(address != nullptr && bytes > 0);
    require(bytes <= free_on(context.device), out_of_memory);
    *address = give_to(context, simulator().memory.allocate_device(bytes));
  });
}

WEFT_CUDA_EXPORT Status cuMemAllocManaged(Address* address, std::size_t bytes, unsigned flags) {
  return enter("cuMemAllocManaged", [&](Lock& lock) {
    ContextObject& context = current(lock);
    require(address != nullptr && bytes > 0 && (flags == 1 || flags == 2));
    require(bytes <= free_on(context.device), out_of_memory);
    *address = give_to(context, simulator().memory.allocate_managed(bytes));
  });
}

WEFT_CUDA_EXPORT Status cuMemFree_v2(Address address) {
  return enter("cuMemFree_v2", [&](Lock& lock) {
    Simulator& s = simulator();
    ContextObject& context = current(lock);
    if (address == 0) return;
    const auto owned = [&] {
      RegionPtr region = s.memory.find(address);
      require(region && region->base == address &&
              (region->kind == Kind::device || region->kind == Kind::managed));
      return region;
    };
    // As the real driver, which frees nothing under the copies that were queued before.
    drain(*owned()->context, lock);
    check_health(context, lock);
    const RegionPtr region = owned();
    s.memory.remove(*region);
    if (region->backing.retire()) ++s.log.counters().freed_while_open;
  });
}

WEFT_CUDA_EXPORT Status cuMemAllocHost_v2(void** memory, std::size_t bytes) {
  return enter("cuMemAllocHost_v2", [&](Lock& lock) { allocate_host(memory, bytes, lock); });
}

WEFT_CUDA_EXPORT Status cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return enter("cuMemHostAlloc", [&](Lock& lock) { allocate_host(memory, bytes, lock); });
}

WEFT_CUDA_EXPORT Status cuMemFreeHost(void* memory) {
  return enter("cuMemFreeHost", [&](Lock& lock) {
    current(lock);
    take_away(begun_at(reinterpret_cast<Address>(memory), Kind::pinned, invalid_value), lock);
  });
}

WEFT_CUDA_EXPORT Status cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned flags) {
  return enter("cuMemHostRegister_v2", [&](Lock& lock) {
    ContextObject& context = current(lock);
    require(memory != nullptr && flags <= 0xf);
    give_to(context, simulator().memory.register_host(reinterpret_cast<Address>(memory), bytes));
  });
}

/// All memory has one address, for the CPU and for GPUs.
WEFT_CUDA_EXPORT Status cuMemHostGetDevicePointer_v2(Address* address, void* memory,
                                                     unsigned flags) {
  return enter("cuMemHostGetDevicePointer_v2", [&](Lock& lock) {
    current(lock);
    require(address != nullptr && flags == 0);
    const RegionPtr region = simulator().memory.find(reinterpret_cast<Address>(memory));
    require(region && (region->kind == Kind::pinned || region->kind == Kind::registered));
    *address = reinterpret_cast<Address>(memory);
  });
}

WEFT_CUDA_EXPORT Status cuMemHostUnregister(void* memory) {
  return enter("cuMemHostUnregister", [&](Lock& lock) {
    current(lock);
    take_away(
        begun_at(reinterpret_cast<Address>(memory), Kind::registered, host_memory_not_registered),
        lock);
  });
}

WEFT_CUDA_EXPORT Status cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return enter("cuMemGetInfo_v2", [&](Lock& lock) {
    const Ordinal device = current(lock).device;
    if (free != nullptr) *free = free_on(device);
    if (total != nullptr) *total = simulator().device(device).memory;
  });
}

WEFT_CUDA_EXPORT Status cuMemRetainAllocationHandle(MemoryHandle* handle, void* address) {
  return enter("cuMemRetainAllocationHandle", [&](Lock&) {
    Simulator& s = simulator();
    const RegionPtr region = s.memory.find(reinterpret_cast<Address>(address));
    require(handle != nullptr && region != nullptr && region->mapped);
    *handle = region->tag;
    ++s.handles;
  });
}

WEFT_CUDA_EXPORT Status cuMemRelease(MemoryHandle) {
  return enter("cuMemRelease", [&](Lock&) {
    require(simulator().handles > 0);
    --simulator().handles;
  });
}

}  // namespace weft::cuda_sim
