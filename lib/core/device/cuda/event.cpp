#include "device/event.hpp"

#include "device/cuda/driver.hpp"

namespace weft::core {

Result<bool> cuda_event_happened(void* event) {
  const cuda::Driver* driver = cuda::Driver::present();
  if (driver == nullptr)
    return fail(Code::unavailable, "this process has loaded no CUDA driver, and has no events");
  const cuda::OutsideCaptures outside(*driver);
  const cuda::Status status = driver->event_query(static_cast<cuda::Event>(event));
  if (status == cuda::success) return true;
  if (status == cuda::not_ready) return false;
  return fail(driver->error("cuEventQuery", status));
}

}  // namespace weft::core
