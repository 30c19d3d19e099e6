#include "shared/gpu_side.hpp"

#include <dlfcn.h>

#include <vector>
#include <weft/deadline.hpp>

#include "device/cuda/driver.hpp"

namespace weft::perf {
namespace {

using core::cuda::Address;
using core::cuda::Context;
using core::cuda::Driver;
using core::cuda::Status;
using core::cuda::Stream;

Result<void> check(const Driver& driver, const char* symbol, Status status) {
  if (status != core::cuda::success) return fail(driver.error(symbol, status));
  return {};
}

/// From now on, and on this thread.
Result<const Driver*> enter(int gpu) {
  const auto driver = Driver::load();
  if (!driver) return driver;
  Context context = nullptr;
  return check(**driver, "cuDevicePrimaryCtxRetain", (*driver)->primary_retain(&context, gpu))
      .and_then(
          [&] { return check(**driver, "cuCtxPushCurrent", (*driver)->context_push(context)); })
      .map([&] { return *driver; });
}

Result<Address> allocate(int gpu, std::size_t bytes) {
  const auto driver = enter(gpu);
  if (!driver) return fail(driver.error());
  // The library has no use for this one.
  void* const handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto call = reinterpret_cast<Status (*)(Address*, std::size_t)>(
      handle != nullptr ? dlsym(handle, "cuMemAlloc_v2") : nullptr);
  if (call == nullptr) return fail(Code::unavailable, "the CUDA driver lacks cuMemAlloc");
  Address address = 0;
  return check(**driver, "cuMemAlloc", call(&address, bytes)).map([&] { return address; });
}

/// A stream with what it copies.
struct Way {
  Stream stream = nullptr;
  Address from = 0, pinned = 0, to = 0;
};

/// `pinned`: room for a copy.
Result<Way> open_way(const PlainCopies& copies, std::byte* pinned) {
  const auto from = allocate(copies.from, copies.size), to = allocate(copies.to, copies.size);
  if (!from || !to) return fail(from ? to.error() : from.error());
  const auto driver = enter(copies.from);
  if (!driver) return fail(driver.error());
  Way way{nullptr, *from, reinterpret_cast<Address>(pinned), *to};
  return check(**driver, "cuStreamCreate",
               (*driver)->stream_create(&way.stream, core::cuda::stream_non_blocking))
      .map([&] { return way; });
}

Result<void> begin(const Driver& driver, const PlainCopies& copies, const Way& way) {
  Status status = core::cuda::success;
  if (copies.straight)
    return check(driver, "cuMemcpyAsync",
                 driver.copy_async(way.to, way.from, copies.size, way.stream));
  if (copies.out) status = driver.copy_async(way.pinned, way.from, copies.size, way.stream);
  if (status == core::cuda::success && copies.in)
    status = driver.copy_async(way.to, way.pinned, copies.size, way.stream);
  return check(driver, "cuMemcpyAsync", status);
}

/// Keeps all ways busy, and returns how many copies ended.
Result<std::uint64_t> stream(const Driver& driver, const PlainCopies& copies,
                             const std::vector<Way>& ways, Deadline until) {
  std::uint64_t count = 0;
  for (const Way& way : ways)
    if (auto begun = begin(driver, copies, way); !begun) return fail(begun.error());
  for (bool last = false; !last;) {
    last = until.passed();
    for (const Way& way : ways) {
      auto next = check(driver, "cuStreamSynchronize", driver.stream_synchronize(way.stream));
      ++count;
      if (next && !last) next = begin(driver, copies, way);
      if (!next) return fail(next.error());
    }
  }
  return count;
}

}  // namespace

Result<int> count_gpus() {
  const auto driver = Driver::load();
  if (!driver) return fail(driver.error());
  int count = 0;
  if (auto asked = check(**driver, "cuDeviceGetCount", (*driver)->device_count(&count)); !asked)
    return fail(asked.error());
  if (count == 0) return fail(Code::unavailable, "there is no GPU");
  return count;
}

Result<Memory> gpu_memory(int gpu, std::size_t bytes) {
  return allocate(gpu, bytes).map([&](Address address) {
    return Memory::adopt(reinterpret_cast<void*>(address), bytes);
  });
}

Result<double> copy_plainly(const PlainCopies& copies) {
  const auto driver = enter(copies.from);
  if (!driver) return fail(driver.error());
  // In one piece: what is pinned is pages, of which no two pieces may have one in common.
  std::vector<std::byte> host(copies.window * copies.size);
  if (auto pinned = check(
          **driver, "cuMemHostRegister",
          (*driver)->host_register(host.data(), host.size(), core::cuda::host_register_portable));
      !pinned)
    return fail(pinned.error());
  std::vector<Way> ways;
  for (unsigned i = 0; i < copies.window; ++i) {
    auto way = open_way(copies, host.data() + i * copies.size);
    if (!way) return fail(way.error());
    ways.push_back(*way);
  }
  if (auto warm = stream(**driver, copies, ways, Deadline::in(copies.time / 5)); !warm)
    return fail(warm.error());
  const auto start = Clock::now();
  const auto count = stream(**driver, copies, ways, Deadline::in(copies.time));
  if (!count) return fail(count.error());
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  (*driver)->host_unregister(host.data());
  return static_cast<double>(*count * copies.size) / seconds / 1e9;
}

}  // namespace weft::perf
