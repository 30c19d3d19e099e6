#include "device/cuda/hash_stage.hpp"

#include <algorithm>
#include <thread>
#include <weft/deadline.hpp>

#include "base/leak.hpp"
#include "base/sync.hpp"
#include "base/xxh3.hpp"
#include "device/cuda/gpu.hpp"

namespace weft::core::cuda {
namespace {

// As much as is hashed between two looks at whether it is still wanted (Hasher::slice).
constexpr std::size_t stage_bytes = std::size_t{4} << 20;
// Of one such copy: far more than any GPU takes that is alive.
constexpr auto longest_fetch = std::chrono::seconds(5);

}  // namespace

Result<std::unique_ptr<HashStage>> HashStage::open(const Gpu& gpu) {
  auto buffer = Allocation::make(Memory::own(stage_bytes));
  if (!buffer) return fail(std::move(buffer.error()));
  auto pinned = gpu.pin(buffer->address(), stage_bytes);
  if (!pinned) return fail(std::move(pinned.error()));
  return gpu.open_queue().map([&](std::unique_ptr<CopyQueue>&& queue) {
    return std::unique_ptr<HashStage>(
        new HashStage(std::move(*buffer), std::move(*pinned), std::move(queue)));
  });
}

Result<void> HashStage::add(Xxh3& hash, const std::byte* memory, std::size_t bytes) {
  while (bytes > 0) {
    const std::size_t length = std::min(bytes, stage_bytes);
    if (auto fetched = fetch(memory, length); !fetched) return fetched;
    hash.add(buffer_.address(), length);
    memory += length;
    bytes -= length;
  }
  return {};
}

Result<void> HashStage::fetch(const std::byte* memory, std::size_t bytes) {
  const Copy copy{buffer_.address(), memory, bytes};
  const auto begun = queue_->copy({&copy, 1}, Priority::bulk);
  if (begun.error) return fail(*begun.error);
  const Deadline deadline = Deadline::in(longest_fetch);
  // Drivers can't be waited for until a deadline.
  constexpr auto pause = std::chrono::microseconds(20);
  for (;; std::this_thread::sleep_for(pause)) {
    const auto ended = queue_->ended();
    if (!ended) return fail(ended.error());
    if (*ended >= begun.number) return {};
    if (deadline.passed())
      return fail(Code::unavailable, "a GPU does not end a copy of what is to be hashed");
  }
}

/// The stage is made when it is first needed.
Result<void> Gpu::hash(Xxh3& hash, const void* memory, std::size_t bytes) const {
  const Lock lock(hash_mutex_);
  if (!hash_stage_) {
    auto opened = HashStage::open(*this);
    if (!opened) return fail(std::move(opened.error()));
    hash_stage_ = std::move(*opened);
  }
  auto added = hash_stage_->add(hash, static_cast<const std::byte*>(memory), bytes);
  if (!added) leak(std::move(hash_stage_));
  return added;
}

Gpu::~Gpu() = default;

}  // namespace weft::core::cuda
