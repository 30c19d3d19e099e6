// A GPU behind the CUDA driver.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "base/sync.hpp"
#include "device/cuda/driver.hpp"
#include "device/cuda/hash_stage.hpp"
#include "device/device.hpp"

namespace weft::core::cuda {

/// From any thread; lives until the process ends. Works in the GPU's primary context, which the
/// runtime API and the frameworks use as well, and leaves the caller's current context as it is.
class Gpu final : public Device {
 public:
  /// The GPU that owns this memory; null if none does. Managed memory is a GPU's: the CPU might
  /// read it, but the driver moves its pages between the two, and what it copies by itself is
  /// right.
  static Result<const Gpu*> of(const void* memory, std::size_t bytes);

  Gpu(const Driver& driver, Ordinal ordinal, Context context, std::string pci)
      : driver_(driver),
        ordinal_(ordinal),
        context_(context),
        pci_(std::move(pci)),
        needs_flush_(attribute(device_writes_ordering) < ordering_owner) {}
  ~Gpu() override;

  const Driver& driver() const noexcept { return driver_; }
  Context context() const noexcept { return context_; }

  MemoryKind kind() const noexcept override { return MemoryKind::device; }
  const std::string& pci() const noexcept override { return pci_; }
  bool direct() const noexcept override { return false; }
  void copy(void*, const void*, std::size_t) const override {}
  Result<void> hash(Xxh3& hash, const void* memory, std::size_t bytes) const override;
  Result<std::unique_ptr<CopyQueue>> open_queue() const override;
  Result<std::unique_ptr<Pinned>> pin(void* host, std::size_t bytes) const override;
  Result<Lent> lend(const void* memory, std::size_t bytes) const override;
  Result<std::unique_ptr<Mapped>> map(const Lent& lent, std::size_t bytes) const override;
  bool may_be_remapped(const void* memory) const override;

  std::unique_ptr<providers::CurrentDevice> make_current() const override;

  // gpudirect.cpp
  providers::Hmem hmem() const noexcept override { return providers::Hmem::cuda; }
  Ordinal ordinal() const noexcept override { return ordinal_; }
  Result<void> check_gpudirect() const override;
  Result<std::shared_ptr<const providers::DmaBuf>> export_dmabuf(void* memory,
                                                                 std::size_t bytes) const override;
  Result<void> sync_memops(void* memory, std::size_t bytes) const override;
  bool needs_flush() const override { return needs_flush_; }
  Result<void> flush() const override;

 private:
  int attribute(int which) const;
  Result<void> check_capable(Address memory) const;
  Result<void> sync_memops_at(Address memory) const;
  Result<void> sync_memops_of_context() const;

  const Driver& driver_;
  const Ordinal ordinal_;
  const Context context_;
  const std::string pci_;
  const bool needs_flush_;
  mutable Mutex hash_mutex_;
  mutable std::unique_ptr<HashStage> hash_stage_ WEFT_GUARDED_BY(hash_mutex_);
};

inline Address address_of(const void* memory) {
  return reinterpret_cast<Address>(memory);
}

/// The driver's knowledge of the allocation around an address, or of the part of one that is
/// mapped.
struct Known {
  bool device = false;
  Ordinal ordinal = 0;
  Address start = 0;
  std::size_t size = 0;

  void keep_to(Address other, std::size_t bytes) {
    const Address end = std::min(start + size, other + bytes);
    start = std::max(start, other);
    size = end - std::min(start, end);
  }
};
/// No device: the driver knows no such address, which is then the CPU's.
Result<Known> look_up(const Driver& driver, Address address);

/// Makes a context current on this thread, outside of the application's captures, and gives the one
/// back that was before.
class InContext {
 public:
  explicit InContext(const Gpu& gpu) : InContext(gpu.driver(), gpu.context()) {}
  InContext(const Driver& driver, Context context)
      : driver_(driver), status_(driver.context_push(context)) {}
  ~InContext() {
    Context own = nullptr;
    if (status_ == success) driver_.context_pop(&own);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
  Status status() const noexcept { return status_; }

 private:
  const Driver& driver_;
  const OutsideCaptures outside_{driver_};
  const Status status_;
};

}  // namespace weft::core::cuda
