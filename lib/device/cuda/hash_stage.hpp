// A GPU's memory on its way to being hashed by the CPU.
#pragma once

#include <cstddef>
#include <memory>
#include <weft/error.hpp>

#include "device/device.hpp"

namespace weft::core::cuda {

class Gpu;

/// One thread at a time.
class HashStage {
 public:
  static Result<std::unique_ptr<HashStage>> open(const Gpu& gpu);
  ~HashStage();
  HashStage(const HashStage&) = delete;
  HashStage& operator=(const HashStage&) = delete;

  /// Waits for the GPU's copies, but not for ever. After an error one of them may still be under
  /// way: the stage has to be kept.
  Result<void> add(Xxh3& hash, const std::byte* memory, std::size_t bytes);

 private:
  explicit HashStage(std::byte* buffer) : buffer_(buffer) {}
  Result<void> fetch(const std::byte* memory, std::size_t bytes);

  std::byte* const buffer_;
  std::unique_ptr<Device::Pinned> pinned_;
  std::unique_ptr<CopyQueue> queue_;
};

}  // namespace weft::core::cuda
