// What can be asked of an address. None of it takes a context but where the driver says so.
#include "driver/entry.hpp"

namespace weft::cuda_sim {

namespace {

/// Writes the attribute's value, of the type that it has in the driver; false for one that the
/// stand-in does not know.
bool give_attribute(const Region& region, int attribute, Address address, void* value) {
  const auto give = [value]<typename T>(T known) {
    *static_cast<T*>(value) = known;
    return true;
  };
  switch (attribute) {
    case pointer_context:
      return give(region.context);
    case pointer_memory_type:
      return give(region.on_device() ? memory_device : memory_host);
    case pointer_device_pointer:
      return give(address);
    case pointer_host_pointer:
      require(region.kind >= Kind::managed);
      return give(reinterpret_cast<void*>(address));
    case pointer_sync_memops:
      return give(static_cast<int>(region.sync_memops));
    case pointer_buffer_id:
      return give(region.tag);
    case pointer_is_managed:
      return give(static_cast<int>(region.kind == Kind::managed));
    case pointer_device_ordinal:
      return give(region.device);
    case pointer_legacy_ipc_capable:
      return give(static_cast<int>(region.kind == Kind::device && simulator().settings.ipc));
    case pointer_range_start:
      return give(region.base);
    case pointer_range_size:
      return give(region.bytes);
    case pointer_mapped:
      return give(1);
    case pointer_gpudirect_capable:
      return give(static_cast<int>(region.kind == Kind::device && simulator().settings.gpudirect));
    default:
      return false;
  }
}

void give_default(int attribute, void* value) {
  switch (attribute) {
    case pointer_context:
    case pointer_device_pointer:
    case pointer_host_pointer:
    case pointer_buffer_id:
    case pointer_range_start:
    case pointer_range_size:
      *static_cast<std::uint64_t*>(value) = 0;
      return;
    case pointer_device_ordinal:
      *static_cast<int*>(value) = -2;  // CU_DEVICE_INVALID
      return;
    default:
      *static_cast<int*>(value) = 0;
  }
}

RegionPtr region_at(Address address, Status otherwise) {
  RegionPtr region = simulator().memory.find(address);
  require(region != nullptr, otherwise);
  const Status lost = simulator().device(region->device).lost;
  require(lost == success, lost);
  return region;
}

}  // namespace

WEFT_CUDA_EXPORT Status cuPointerGetAttribute(void* value, int attribute, Address address) {
  return enter("cuPointerGetAttribute", [&](Lock&) {
    require(value != nullptr);
    require(give_attribute(*region_at(address, invalid_value), attribute, address, value));
  });
}

// Of an address that the driver doesn't know this gives zeros, where the one above fails.
WEFT_CUDA_EXPORT Status cuPointerGetAttributes(unsigned count, int* attributes, void** values,
                                               Address address) {
  return enter("cuPointerGetAttributes", [&](Lock&) {
    require(count > 0 && attributes != nullptr && values != nullptr);
    const RegionPtr region = simulator().memory.find(address);
    for (unsigned i = 0; i < count; ++i) {
      give_default(attributes[i], values[i]);
      const bool no_host_side =
          attributes[i] == pointer_host_pointer && region && region->kind < Kind::managed;
      if (region && !no_host_side)
        require(give_attribute(*region, attributes[i], address, values[i]));
    }
  });
}

WEFT_CUDA_EXPORT Status cuPointerSetAttribute(const void* value, int attribute, Address address) {
  return enter("cuPointerSetAttribute", [&](Lock& lock) {
    current(lock);
    require(value != nullptr && attribute == pointer_sync_memops);
    const RegionPtr region = region_at(address, invalid_value);
    region->sync_memops = *static_cast<const unsigned*>(value) != 0;
  });
}

WEFT_CUDA_EXPORT Status cuMemGetAddressRange_v2(Address* base, std::size_t* bytes,
                                                Address address) {
  return enter("cuMemGetAddressRange_v2", [&](Lock& lock) {
    current(lock);
    const RegionPtr region = region_at(address, not_found);
    require(region->on_device(), not_found);
    if (base != nullptr) *base = region->base;
    if (bytes != nullptr) *bytes = region->bytes;
  });
}

}  // namespace weft::cuda_sim
