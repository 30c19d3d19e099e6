// The vendors of GPUs that there are: asks each in turn.
#include <algorithm>
#include <array>

#include "device/cuda/vendor.hpp"
#include "device/device.hpp"
#include "device/event.hpp"

namespace weft::core {
namespace {

/// Others (ROCm, Neuron) get a folder like cuda/, and a line here.
const std::array<const Vendor*, 1>& vendors() noexcept {
  static const std::array<const Vendor*, 1> all{
      &cuda::vendor(),
  };
  return all;
}

/// The one whose driver this process uses; an error names what it can't have otherwise.
Result<const Vendor*> present_vendor(const char* things) {
  for (const Vendor* vendor : vendors())
    if (vendor->present()) return vendor;
  return fail(Code::unavailable,
              std::string("this process has loaded no GPU's driver, and has no ") + things);
}

}  // namespace

bool has_devices() noexcept {
  return std::ranges::any_of(vendors(), [](const Vendor* each) { return each->present(); });
}

bool device_driver_loaded() noexcept {
  return std::ranges::any_of(vendors(), [](const Vendor* each) { return each->loaded(); });
}

Result<const Device*> device_of(const void* memory, std::size_t bytes) {
  for (const Vendor* vendor : vendors()) {
    if (!vendor->present()) continue;
    auto gpu = vendor->device_of(memory, bytes);
    if (!gpu || *gpu != nullptr) return gpu;
  }
  return &host_device();
}

Result<bool> event_happened(void* event) {
  return present_vendor("events").and_then(
      [event](const Vendor* vendor) { return vendor->event_happened(event); });
}

Result<std::unique_ptr<StreamGate>> hold_stream(void* stream) {
  return present_vendor("streams").and_then(
      [stream](const Vendor* vendor) { return vendor->hold_stream(stream); });
}

Result<std::shared_ptr<const providers::DmaBuf>> Device::export_dmabuf(void*, std::size_t) const {
  return fail(Code::unsupported, "memory of this kind is no DMA buffer");
}

}  // namespace weft::core
