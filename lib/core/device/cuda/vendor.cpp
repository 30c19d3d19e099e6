#include "device/cuda/vendor.hpp"

#include "device/cuda/gpu.hpp"

namespace weft::core::cuda {
namespace {

class Nvidia final : public Vendor {
 public:
  bool loaded() const noexcept override { return Driver::loaded(); }
  bool present() const noexcept override { return Driver::present() != nullptr; }
  Result<const Device*> device_of(const void* memory, std::size_t bytes) const override {
    return Gpu::of(memory, bytes).map([](const Gpu* gpu) -> const Device* { return gpu; });
  }
  Result<bool> event_happened(void* event) const override {
    const Driver& driver = *Driver::present();
    const OutsideCaptures outside(driver);
    const Status status = driver.event_query(static_cast<Event>(event));
    if (status == success) return true;
    if (status == not_ready) return false;
    return fail(driver.error("cuEventQuery", status));
  }
  Result<std::unique_ptr<StreamGate>> hold_stream(void* stream) const override {
    return cuda::hold_stream(stream);
  }
};

}  // namespace

const Vendor& vendor() noexcept {
  static const auto& nvidia = *new Nvidia;  // as long as the process: threads outlive exit()
  return nvidia;
}

}  // namespace weft::core::cuda
