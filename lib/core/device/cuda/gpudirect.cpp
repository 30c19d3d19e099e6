// A GPU's memory for NICs. What has to be seen to: "Design Considerations" of NVIDIA's GPUDirect
// RDMA documentation (synchronous copies), and cuFlushGPUDirectRDMAWrites of the driver API
// (order).
#include <unistd.h>

#include "device/cuda/gpu.hpp"

namespace weft::core::cuda {
namespace {

/// Descriptors are of whole pages of the host's.
struct Pages {
  Address begin = 0;
  std::size_t bytes = 0;
};

Pages pages_around(const void* memory, std::size_t bytes) {
  const auto page = static_cast<Address>(sysconf(_SC_PAGESIZE));
  const Address begin = address_of(memory) / page * page;
  const Address end = (address_of(memory) + bytes + page - 1) / page * page;
  return {begin, end - begin};
}

}  // namespace

/// 0 where the driver does not know the attribute.
int Gpu::attribute(int which) const {
  int value = 0;
  return driver_.device_attribute(&value, which, ordinal_) == success ? value : 0;
}

Result<void> Gpu::check_gpudirect() const {
  if (attribute(device_gpudirect_supported) == 0 && attribute(device_dmabuf_supported) == 0)
    return fail(Code::unsupported,
                "the GPU's driver offers neither GPUDirect RDMA nor DMA buffers");
  const bool flushes =
      driver_.flush_writes != nullptr && (attribute(device_flush_options) & flush_option_host) != 0;
  if (needs_flush() && !flushes)
    return fail(Code::unsupported,
                "the GPU does not see what NICs write in order, and its driver can't flush it");
  return {};
}

Result<std::shared_ptr<const providers::DmaBuf>> Gpu::export_dmabuf(void* memory,
                                                                    std::size_t bytes) const {
  if (driver_.range_handle == nullptr || attribute(device_dmabuf_supported) == 0)
    return fail(Code::unsupported, "no dmabuf from the driver");
  const InContext here(*this);
  if (here.status() != success) return fail(driver_.error("cuCtxPushCurrent", here.status()));
  const Pages pages = pages_around(memory, bytes);
  int descriptor = -1;
  const Status status =
      driver_.range_handle(&descriptor, pages.begin, pages.bytes, handle_dmabuf, 0);
  if (status != success) return fail(driver_.error("cuMemGetHandleForAddressRange", status));
  auto dmabuf = std::make_shared<providers::DmaBuf>();
  dmabuf->descriptor = Descriptor(descriptor);
  dmabuf->base = reinterpret_cast<std::byte*>(pages.begin);
  return dmabuf;
}

/// Pools' memory and managed memory are not, though the driver hands out DMA buffers of the first.
Result<void> Gpu::check_capable(Address memory) const {
  int capable = 1;
  const Status status = driver_.pointer_attribute(&capable, pointer_gpudirect_capable, memory);
  if (status != success) return fail(driver_.error("cuPointerGetAttribute", status));
  if (capable != 0 || attribute(device_gpudirect_supported) == 0) return {};
  return fail(Code::unsupported,
              "the driver reports that NICs can't access this memory (IS_GPU_DIRECT_RDMA_CAPABLE)");
}

/// Memory that was mapped in parts has no such attribute (seen of driver 580), but its context has.
Result<void> Gpu::sync_memops_at(Address memory) const {
  const unsigned on = 1;
  const Status status = driver_.set_pointer_attribute(&on, pointer_sync_memops, memory);
  if (status == success) return {};
  if (status == not_supported && driver_.set_context_flags != nullptr)
    return sync_memops_of_context();
  return fail(driver_.error("cuPointerSetAttribute(SYNC_MEMOPS)", status));
}

Result<void> Gpu::sync_memops_of_context() const {
  unsigned flags = 0;
  if (const Status status = driver_.context_flags(&flags); status != success)
    return fail(driver_.error("cuCtxGetFlags", status));
  if ((flags & context_sync_memops) != 0) return {};
  if (const Status status = driver_.set_context_flags(flags | context_sync_memops);
      status != success)
    return fail(driver_.error("cuCtxSetFlags(SYNC_MEMOPS)", status));
  return {};
}

Result<void> Gpu::sync_memops(void* memory, std::size_t bytes) const {
  const InContext here(*this);
  if (here.status() != success) return fail(driver_.error("cuCtxPushCurrent", here.status()));
  const Address end = address_of(memory) + bytes;
  for (Address at = address_of(memory); at < end;) {
    if (auto synced = check_capable(at).and_then([&] { return sync_memops_at(at); }); !synced)
      return synced;
    const auto known = look_up(driver_, at);
    if (!known) return fail(known.error());
    if (!known->device) return fail(Code::unavailable, "the GPU's memory was freed");
    at = known->start + known->size;
  }
  return {};
}

Result<void> Gpu::flush() const {
  const InContext here(*this);
  if (here.status() != success) return fail(driver_.error("cuCtxPushCurrent", here.status()));
  const Status status = driver_.flush_writes(flush_current_context, flush_to_owner);
  if (status != success) return fail(driver_.error("cuFlushGPUDirectRDMAWrites", status));
  return {};
}

}  // namespace weft::core::cuda
