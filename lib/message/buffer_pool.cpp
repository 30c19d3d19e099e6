#include "message/buffer_pool.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/leak.hpp"

namespace weft::core {

Result<void> BufferPool::grow(std::size_t count) {
  if (count == 0) return {};
  Slab slab;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t bytes = (count * buffer_bytes_ + page - 1) / page * page;
  slab.bytes = bytes;
  slab.memory.reset(static_cast<std::byte*>(std::aligned_alloc(page, bytes)));
  if (!slab.memory)
    return fail(Code::out_of_memory,
                fmt::format("no memory for {} buffers of {} bytes", count, buffer_bytes_));
  if (endpoint_.capability().local_registration) {
    auto registration =
        endpoint_.register_memory({slab.memory.get(), bytes}, providers::Access::messages);
    if (!registration) return fail(std::move(registration.error()));
    slab.registration = std::move(*registration);
  }
  if (device_ != nullptr)
    if (auto pinned = pin(*device_, slab); !pinned) return pinned;
  for (std::size_t i = 0; i < count; ++i) {
    Buffer& buffer = buffers_.emplace_back();
    buffer.data = slab.memory.get() + i * buffer_bytes_;
    buffer.registration = slab.registration.get();
    free_.push_back(&buffer);
  }
  slabs_.push_back(std::move(slab));
  return {};
}

Result<void> BufferPool::pin(const Device& device, Slab& slab) {
  return device.pin(slab.memory.get(), slab.bytes)
      .map([&](std::unique_ptr<Device::Pinned>&& pinned) { slab.pinned = std::move(pinned); });
}

/// Memory that one device has pinned is pinned for all (Device::pin).
Result<void> BufferPool::pin(const Device& device) {
  if (device_ != nullptr) return {};
  for (Slab& slab : slabs_) {
    if (slab.pinned) continue;  // by an attempt that failed later
    if (auto pinned = pin(device, slab); !pinned) return pinned;
  }
  device_ = &device;
  return {};
}

void BufferPool::leak() {
  for (Slab& slab : slabs_) core::leak(std::pair(std::move(slab.memory), std::move(slab.pinned)));
}

Buffer* BufferPool::take() noexcept {
  if (free_.empty()) return nullptr;
  Buffer* buffer = free_.back();
  free_.pop_back();
  return buffer;
}

}  // namespace weft::core
