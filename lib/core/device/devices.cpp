// The kinds of devices there are: asks each for the memory that it owns.
#include "device/cuda/gpu.hpp"
#include "device/device.hpp"

namespace weft::core {

bool has_devices() noexcept {
  return cuda::Driver::present() != nullptr;
}

// Others (ROCm, Neuron) would be asked here, each by a file of its own like cuda/gpu.cpp.
Result<const Device*> device_of(const void* memory, std::size_t bytes) {
  return cuda::Gpu::of(memory, bytes).map([](const Device* gpu) {
    return gpu != nullptr ? gpu : &host_device();
  });
}

bool device_driver_loaded() noexcept {
  return cuda::Driver::loaded();
}

Result<std::shared_ptr<const providers::DmaBuf>> Device::export_dmabuf(void*, std::size_t) const {
  return fail(Code::unsupported, "memory of this kind is no DMA buffer");
}

}  // namespace weft::core
