// A GPU's memory on its way to being hashed by the CPU.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <weft/error.hpp>

#include "device/allocation.hpp"
#include "device/device.hpp"

namespace weft::core::cuda {

class Gpu;

/// One thread at a time.
class HashStage {
 public:
  static Result<std::unique_ptr<HashStage>> open(const Gpu& gpu);

  /// Waits for the GPU's copies, but not for ever. After an error one of them may still be under
  /// way: the stage has to be kept.
  Result<void> add(Xxh3& hash, const std::byte* memory, std::size_t bytes);

 private:
  HashStage(Allocation buffer, std::unique_ptr<Device::Pinned> pinned,
            std::unique_ptr<CopyQueue> queue)
      : buffer_(std::move(buffer)), pinned_(std::move(pinned)), queue_(std::move(queue)) {}
  Result<void> fetch(const std::byte* memory, std::size_t bytes);

  const Allocation buffer_;
  const std::unique_ptr<Device::Pinned> pinned_;
  const std::unique_ptr<CopyQueue> queue_;
};

}  // namespace weft::core::cuda
