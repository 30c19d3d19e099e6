// A side's memory in the tests on GPUs, and what it should hold.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <weft/memory.hpp>
#include <weft/transfer.hpp>

#include "mapped_memory.hpp"

namespace weft::test {

/// `length` bytes of stream `seed`, from its byte `from` on, that lie at `to`.
struct Landed {
  std::uint64_t seed = 0, to = 0, from = 0, length = 0;
};
/// What pieces are for the side that is written, from one that is stream `seed`.
std::vector<Landed> landed(Direction direction, std::span<const Pair> pairs, std::uint64_t seed);

/// Memory that is filled and checked by kernels where there are some (WEFT_GPU_KERNELS), else by
/// copies. To be ended by the thread that made it.
class Store {
 public:
  /// Of a GPU, or of the CPU (no ordinal).
  Store(std::optional<int> gpu, std::size_t bytes);
  /// Of the first GPU, where there are such parts.
  static Store in_parts(std::size_t bytes) { return {InParts{}, bytes}; }
  Memory memory() { return Memory::adopt(address(), bytes_); }
  std::size_t size() const { return bytes_; }
  cuda_sim::Address device_address() const { return on_gpu()->address(); }

  void fill(std::uint64_t seed);
  /// All of it is stream `seed`, but where pieces have landed.
  testing::AssertionResult holds(std::uint64_t seed, std::vector<Landed> pieces = {}) const;

 private:
  struct InParts {};
  Store(InParts, std::size_t bytes);
  void* address() { return on_gpu() != nullptr ? on_gpu()->pointer() : host_.data(); }
  /// Null: it is the CPU's.
  const cuda_sim::DeviceBytes* on_gpu() const {
    if (device_) return &*device_;
    return parts_ ? &*parts_ : nullptr;
  }
  testing::AssertionResult holds_at(std::uint64_t at, std::uint64_t length, std::uint64_t seed,
                                    std::uint64_t offset) const;
  const std::size_t bytes_;
  Blob host_;
  std::optional<cuda_sim::CurrentContext> context_;
  std::optional<cuda_sim::DeviceMemory> device_;
  std::optional<MappedMemory> parts_;
};

/// How many GPUs there are; an error where there is no driver, or none.
int gpus();

}  // namespace weft::test
