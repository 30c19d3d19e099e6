#include "common/gpu_memory.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <utility>

#include "common/units.hpp"

// As the library has them: a sanitizer compares the types of functions with those of the driver's
// stand-in.
namespace weft::core::cuda {
struct ContextObject;
struct StreamObject;
}  // namespace weft::core::cuda

namespace weft::tool {
namespace {

using Status = int;                          // CUresult
using Address = unsigned long long;          // CUdeviceptr
using Context = core::cuda::ContextObject*;  // CUcontext
using Stream = core::cuda::StreamObject*;    // CUstream

/// What of the driver is called here, named as there.
struct Calls {
  Status (*cuInit)(unsigned) = nullptr;
  Status (*cuGetErrorName)(Status, const char**) = nullptr;
  Status (*cuDeviceGetCount)(int*) = nullptr;
  Status (*cuDeviceGetPCIBusId)(char*, int, int) = nullptr;
  Status (*cuDevicePrimaryCtxRetain)(Context*, int) = nullptr;
  Status (*cuCtxPushCurrent_v2)(Context) = nullptr;
  Status (*cuCtxPopCurrent_v2)(Context*) = nullptr;
  Status (*cuMemAlloc_v2)(Address*, std::size_t) = nullptr;
  Status (*cuMemFree_v2)(Address) = nullptr;
  Status (*cuMemcpyHtoD_v2)(Address, const void*, std::size_t) = nullptr;
  Status (*cuMemcpyDtoH_v2)(void*, Address, std::size_t) = nullptr;
  Status (*cuStreamSynchronize)(Stream) = nullptr;

  Result<void> check(const char* call, Status status) const {
    if (status == 0) return {};
    const char* name = nullptr;
    cuGetErrorName(status, &name);
    return fail(Code::unavailable, fmt::format("{} failed: {} ({})", call,
                                               name != nullptr ? name : "unknown", status));
  }
};

Result<Calls> load() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr)
    return fail(Code::unavailable, fmt::format("there is no CUDA driver: {}", dlerror()));
  Calls calls;
  const char* missing = nullptr;
  const auto find = [&](auto& call, const char* symbol) {
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(dlsym(driver, symbol));
    if (call == nullptr) missing = symbol;
  };
#define WEFT_FIND(symbol) find(calls.symbol, #symbol)
  WEFT_FIND(cuInit);
  WEFT_FIND(cuGetErrorName);
  WEFT_FIND(cuDeviceGetCount);
  WEFT_FIND(cuDeviceGetPCIBusId);
  WEFT_FIND(cuDevicePrimaryCtxRetain);
  WEFT_FIND(cuCtxPushCurrent_v2);
  WEFT_FIND(cuCtxPopCurrent_v2);
  WEFT_FIND(cuMemAlloc_v2);
  WEFT_FIND(cuMemFree_v2);
  WEFT_FIND(cuMemcpyHtoD_v2);
  WEFT_FIND(cuMemcpyDtoH_v2);
  WEFT_FIND(cuStreamSynchronize);
#undef WEFT_FIND
  if (missing != nullptr)
    return fail(Code::unavailable, fmt::format("the CUDA driver lacks {}", missing));
  return calls.check("cuInit", calls.cuInit(0)).map([&] { return calls; });
}

const Result<Calls>& driver() {
  static const Result<Calls> loaded = load();
  return loaded;
}

/// The driver, if it has so many GPUs.
Result<Calls> driver_with(int gpu) {
  const auto& calls = driver();
  if (!calls) return fail(calls.error());
  int count = 0;
  if (auto counted = calls->check("cuDeviceGetCount", calls->cuDeviceGetCount(&count)); !counted)
    return fail(std::move(counted.error()));
  if (gpu >= count)
    return fail(Code::unavailable, fmt::format("there is no GPU {}: there are {}", gpu, count));
  return calls;
}

/// Calls `work` with the GPU's primary context, which is kept for good, current on this thread.
template <typename Work>
Result<void> on_gpu(int gpu, Work&& work) {
  const auto& calls = driver();
  if (!calls) return fail(calls.error());
  Context context = nullptr;
  return calls->check("cuDevicePrimaryCtxRetain", calls->cuDevicePrimaryCtxRetain(&context, gpu))
      .and_then(
          [&] { return calls->check("cuCtxPushCurrent", calls->cuCtxPushCurrent_v2(context)); })
      .and_then([&]() -> Result<void> {
        auto done = work(*calls);
        calls->cuCtxPopCurrent_v2(&context);
        return done;
      });
}

}  // namespace

Result<std::string> gpu_pci(int gpu) {
  const auto calls = driver_with(gpu);
  if (!calls) return fail(calls.error());
  char address[32] = {};
  return calls
      ->check("cuDeviceGetPCIBusId", calls->cuDeviceGetPCIBusId(address, sizeof address, gpu))
      .map([&] { return std::string(address); });
}

Result<GpuMemory> GpuMemory::allocate(int gpu, std::size_t bytes) {
  const auto calls = driver_with(gpu);
  if (!calls) return fail(calls.error());
  Address address = 0;
  return on_gpu(gpu,
                [&](const Calls& of) {
                  const std::string call =
                      fmt::format("cuMemAlloc of {} on GPU {}", binary_bytes(bytes), gpu);
                  return of.check(call.c_str(), of.cuMemAlloc_v2(&address, bytes));
                })
      .map([&] { return GpuMemory(gpu, address, bytes); });
}

GpuMemory::GpuMemory(GpuMemory&& other) noexcept
    : gpu_(other.gpu_), address_(std::exchange(other.address_, 0)), bytes_(other.bytes_) {}

GpuMemory::~GpuMemory() {
  if (address_ == 0) return;
  (void)on_gpu(gpu_,
               [&](const Calls& of) { return of.check("cuMemFree", of.cuMemFree_v2(address_)); });
}

Result<void> GpuMemory::write(std::span<const std::byte> image, std::span<const Range> ranges) {
  return on_gpu(gpu_, [&](const Calls& of) {
    for (const Range& each : ranges) {
      const Status status =
          of.cuMemcpyHtoD_v2(address_ + each.offset, image.data() + each.offset, each.length);
      if (auto copied = of.check("cuMemcpyHtoD", status); !copied) return copied;
    }
    // From pageable memory they may return before the bytes are there.
    return of.check("cuStreamSynchronize", of.cuStreamSynchronize(nullptr));
  });
}

Result<void> GpuMemory::read(std::span<std::byte> image, std::span<const Range> ranges) const {
  return on_gpu(gpu_, [&](const Calls& of) -> Result<void> {
    for (const Range& each : ranges) {
      const Status status =
          of.cuMemcpyDtoH_v2(image.data() + each.offset, address_ + each.offset, each.length);
      if (auto copied = of.check("cuMemcpyDtoH", status); !copied) return copied;
    }
    return {};
  });
}

Result<void> GpuMemory::write(std::span<const std::byte> image) {
  const Range whole{0, bytes_};
  return write(image, {&whole, 1});
}

Result<void> GpuMemory::read(std::span<std::byte> image) const {
  const Range whole{0, bytes_};
  return read(image, {&whole, 1});
}

}  // namespace weft::tool
