// A GPU's memory in other processes of the host: CUDA IPC.
#include <fmt/format.h>

#include <cstring>

#include "device/cuda/gpu.hpp"

namespace weft::core::cuda {
namespace {

class MappedByIpc final : public Device::Mapped {
 public:
  MappedByIpc(const Gpu& gpu, Address base, std::uint64_t offset)
      : gpu_(gpu), base_(base), offset_(offset) {}
  ~MappedByIpc() override {
    const InContext here(gpu_);
    gpu_.driver().ipc_close_handle(base_);
  }
  std::byte* address() const noexcept override {
    return reinterpret_cast<std::byte*>(base_ + offset_);
  }

 private:
  const Gpu& gpu_;
  const Address base_;
  const std::uint64_t offset_;
};

}  // namespace

/// A handle stands for the allocation that the memory is in: a piece of one, for handles have no
/// bounds of their own (CUDA driver API, cuIpcGetMemHandle).
Result<Lent> Gpu::lend(const void* memory, std::size_t bytes) const {
  const Address address = address_of(memory);
  const auto known = look_up(driver_, address);
  if (!known) return fail(known.error());
  if (!known->device || address + bytes > known->start + known->size)
    return fail(Code::unsupported, "the memory is in several allocations of the GPU's");
  const InContext here(*this);
  if (here.status() != success) return fail(driver_.error("cuCtxPushCurrent", here.status()));
  IpcHandle handle{};
  if (const Status status = driver_.ipc_get_handle(&handle, known->start); status != success)
    return fail(driver_.error("cuIpcGetMemHandle", status));
  Lent lent{Blob(sizeof handle), address - known->start, address};
  std::memcpy(lent.handle.data(), &handle, sizeof handle);
  return lent;
}

/// In the context that copies from it. Where the memory is another GPU's, the driver lets this one
/// at it, or says why not.
Result<std::unique_ptr<Device::Mapped>> Gpu::map(const Lent& lent, std::size_t bytes) const {
  IpcHandle handle{};
  if (lent.handle.size() != sizeof handle)
    return fail(Code::invalid_argument,
                fmt::format("{} bytes are no CUDA IPC handle", lent.handle.size()));
  std::memcpy(&handle, lent.handle.data(), sizeof handle);
  const InContext here(*this);
  if (here.status() != success) return fail(driver_.error("cuCtxPushCurrent", here.status()));
  Address base = 0;
  if (const Status status = driver_.ipc_open_handle(&base, handle, ipc_lazy_peer_access);
      status != success) {
    // Said of CUDA's handles in openucx/ucx#11513; the driver's own words do not tell.
    const Error error = driver_.error("cuIpcOpenMemHandle", status);
    return fail(error.code(), error.message() + " (both processes must be in one pid namespace)");
  }
  auto mapped = std::make_unique<MappedByIpc>(*this, base, lent.offset);
  // A wrong offset from a peer must not make this process's GPU fault.
  const auto known = look_up(driver_, base);
  if (!known) return fail(known.error());
  if (lent.offset > known->size || bytes > known->size - lent.offset)
    return fail(Code::invalid_argument, "the memory leaves the allocation that its handle is of");
  return mapped;
}

}  // namespace weft::core::cuda
