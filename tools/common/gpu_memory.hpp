// Memory of a GPU, by the CUDA driver that the loader finds. The driver does not outlive a fork:
// child processes have to be new programs.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <weft/error.hpp>
#include <weft/place.hpp>

namespace weft::tool {

/// The PCI address of a GPU as the driver counts, as Config::gpus takes it. `unavailable` where
/// there is no driver or no such GPU.
Result<std::string> gpu_pci(int gpu);

/// Freed with its owner.
class GpuMemory {
 public:
  /// `gpu`: as the driver counts. `unavailable` where there is no driver or no such GPU.
  static Result<GpuMemory> allocate(int gpu, std::size_t bytes);
  GpuMemory(GpuMemory&& other) noexcept;
  GpuMemory& operator=(GpuMemory&&) = delete;
  ~GpuMemory();

  /// Not for the CPU to follow.
  void* address() const noexcept { return reinterpret_cast<void*>(address_); }
  std::size_t size() const noexcept { return bytes_; }
  /// Copies these ranges from `image`, which is as long as the memory. What was written is there
  /// when the call returns.
  Result<void> write(std::span<const std::byte> image, std::span<const Range> ranges);
  /// Copies them into `image`.
  Result<void> read(std::span<std::byte> image, std::span<const Range> ranges) const;
  /// All of it.
  Result<void> write(std::span<const std::byte> image);
  Result<void> read(std::span<std::byte> image) const;
  /// It stays for as long as the process lives: something may still touch it.
  void abandon() noexcept { address_ = 0; }

 private:
  GpuMemory(int gpu, unsigned long long address, std::size_t bytes)
      : gpu_(gpu), address_(address), bytes_(bytes) {}

  int gpu_;
  unsigned long long address_;  // 0: none.
  std::size_t bytes_;
};

}  // namespace weft::tool
