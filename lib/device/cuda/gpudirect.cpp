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

Result<void> Gpu::sync_memops(void* memory, std::size_t bytes) const {
  const InContext here(*this);
  if (here.status() != success) return fail(driver_.error("cuCtxPushCurrent", here.status()));
  const Address end = address_of(memory) + bytes;
  for (Address at = address_of(memory); at < end;) {
    const unsigned on = 1;
    if (const Status status = driver_.set_pointer_attribute(&on, pointer_sync_memops, at);
        status != success)
      return fail(driver_.error("cuPointerSetAttribute(SYNC_MEMOPS)", status));
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
