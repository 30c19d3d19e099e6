#include "device/cuda/gpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "base/sync.hpp"
#include "device/cuda/copy_stream.hpp"

namespace weft::core::cuda {
namespace {

/// As the kernel writes it: lower case.
Result<std::string> pci_of(const Driver& driver, Ordinal ordinal) {
  std::array<char, 32> text{};
  if (const Status status =
          driver.device_pci(text.data(), static_cast<int>(text.size()) - 1, ordinal);
      status != success)
    return fail(driver.error("cuDeviceGetPCIBusId", status));
  std::string pci(text.data());
  std::transform(pci.begin(), pci.end(), pci.begin(),
                 [](unsigned char each) { return static_cast<char>(std::tolower(each)); });
  return pci;
}

Result<std::unique_ptr<Gpu>> open_gpu(const Driver& driver, Ordinal ordinal) {
  auto pci = pci_of(driver, ordinal);
  if (!pci) return fail(std::move(pci.error()));
  const OutsideCaptures outside(driver);
  Context context = nullptr;
  if (const Status status = driver.primary_retain(&context, ordinal); status != success)
    return fail(driver.error("cuDevicePrimaryCtxRetain", status));
  return std::make_unique<Gpu>(driver, ordinal, context, std::move(*pci));
}

/// Opened when it is first met.
Result<const Gpu*> gpu_of(const Driver& driver, Ordinal ordinal) {
  static Mutex mutex;
  static auto& known = *new std::map<Ordinal, std::unique_ptr<Gpu>>;  // as long as the process
  const Lock lock(mutex);
  auto& gpu = known[ordinal];
  if (!gpu) {
    auto opened = open_gpu(driver, ordinal);
    if (!opened) return fail(std::move(opened.error()));
    gpu = std::move(*opened);
  }
  return gpu.get();
}

}  // namespace

Result<Known> look_up(const Driver& driver, Address address) {
  unsigned type = 0, managed = 0;
  Known known;
  const Status status = driver.pointer_attribute(&type, pointer_memory_type, address);
  if (status == invalid_value || status == invalid_context) return known;
  if (status != success) return fail(driver.error("cuPointerGetAttribute", status));
  const auto ask = [&](void* into, int attribute) {
    return driver.pointer_attribute(into, attribute, address);
  };
  if (const Status answer = ask(&managed, pointer_is_managed); answer != success)
    return fail(driver.error("cuPointerGetAttribute", answer));
  known.device = type == memory_device || managed != 0;
  if (!known.device) return known;
  for (const Status answer :
       {ask(&known.ordinal, pointer_device_ordinal), ask(&known.start, pointer_range_start),
        ask(&known.size, pointer_range_size)})
    if (answer != success) return fail(driver.error("cuPointerGetAttribute", answer));
  // The range of what was mapped in parts is all that was reserved for it (seen of driver 580),
  // also where nothing is mapped. Of what was allocated the mapping is the larger one.
  Address mapped = 0;
  std::size_t size = 0;
  if (ask(&mapped, pointer_mapping_start) == success && ask(&size, pointer_mapping_size) == success)
    known.keep_to(mapped, size);
  return known;
}

namespace {

/// Whether memory of that GPU's goes on from there up to `end`. It may be mapped in several parts
/// (cuMemMap), as caching allocators do that grow by and by.
Result<void> covers(const Driver& driver, const Known& from, Address end) {
  for (Address reached = from.start + from.size; reached < end;) {
    const auto next = look_up(driver, reached);
    if (!next) return fail(next.error());
    if (!next->device || next->ordinal != from.ordinal || next->start + next->size <= reached)
      return fail(Code::invalid_argument,
                  fmt::format("{} bytes at the end leave the GPU's memory", end - reached));
    reached = next->start + next->size;
  }
  return {};
}

}  // namespace

Result<const Gpu*> Gpu::of(const void* memory, std::size_t bytes) {
  const Driver* driver = Driver::present();
  if (driver == nullptr || bytes == 0) return nullptr;
  const Address first = address_of(memory);
  const auto known = look_up(*driver, first);
  if (!known) return fail(known.error());
  if (!known->device) {
    // Host memory that runs into a GPU's would be read by the CPU.
    const auto end = look_up(*driver, first + bytes - 1);
    if (!end) return fail(end.error());
    if (end->device) return fail(Code::invalid_argument, "the range spans both CPU and GPU memory");
    return nullptr;
  }
  if (auto covered = covers(*driver, *known, first + bytes); !covered)
    return fail(std::move(covered.error()));
  return gpu_of(*driver, known->ordinal);
}

/// Only memory that was mapped (cuMemMap) has a handle at an address.
bool Gpu::may_be_remapped(const void* memory) const {
  if (driver_.retain_memory_handle == nullptr || driver_.release_memory_handle == nullptr)
    return false;
  const OutsideCaptures outside(driver_);
  MemoryHandle handle = 0;
  if (driver_.retain_memory_handle(&handle, const_cast<void*>(memory)) != success) return false;
  driver_.release_memory_handle(handle);
  return true;
}

namespace {

class MadeCurrent final : public providers::CurrentDevice {
 public:
  explicit MadeCurrent(const Gpu& gpu) : here_(gpu) {}

 private:
  const InContext here_;
};

}  // namespace

std::unique_ptr<providers::CurrentDevice> Gpu::make_current() const {
  return std::make_unique<MadeCurrent>(*this);
}

Result<std::unique_ptr<CopyQueue>> Gpu::open_queue() const {
  return CopyStream::open(*this);
}

namespace {

class PinnedByCuda final : public Device::Pinned {
 public:
  PinnedByCuda(const Gpu& gpu, void* host) : gpu_(gpu), host_(host) {}
  ~PinnedByCuda() override {
    const InContext here(gpu_);
    gpu_.driver().host_unregister(host_);
  }

 private:
  const Gpu& gpu_;
  void* const host_;
};

}  // namespace

Result<std::unique_ptr<Device::Pinned>> Gpu::pin(void* host, std::size_t bytes) const {
  const InContext here(*this);
  if (here.status() != success) return fail(driver_.error("cuCtxPushCurrent", here.status()));
  // Portable: pinned for all GPUs of the process at once.
  const Status status = driver_.host_register(host, bytes, host_register_portable);
  if (status == host_memory_already_registered) return std::make_unique<Pinned>();
  if (status != success) return fail(driver_.error("cuMemHostRegister", status));
  return std::make_unique<PinnedByCuda>(*this, host);
}

}  // namespace weft::core::cuda
