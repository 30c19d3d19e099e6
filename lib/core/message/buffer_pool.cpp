#include "message/buffer_pool.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/leak.hpp"
#include "base/log.hpp"

namespace weft::core {

Result<void> BufferPool::grow_to(std::size_t count, std::size_t most) {
  if (count > size()) revive(count);
  if (count <= size()) return {};
  if (failure_) return fail(Error(*failure_));
  // Few slabs for many buffers: each is a registration.
  const std::size_t slab = std::max({count - size(), least_, size() / 4});
  auto added = add(std::min(slab, std::max(most, count) - size()));
  if (!added) {
    log(LogLevel::warning, "no buffers: {}", added.error().to_string());
    failure_ = added.error();
  }
  return added;
}

Result<void> BufferPool::add(std::size_t count) {
  BufferSlab slab;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto pages = [&](std::size_t bytes) { return (bytes + page - 1) / page * page; };
  const std::size_t first = pages(head_) - head_;
  const std::size_t each = head_ > 0 ? pages(buffer_bytes_) : buffer_bytes_;
  const std::size_t bytes = pages(first + count * each);
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
  BufferSlab& added = slabs_.emplace_back(std::move(slab));
  added.buffers = std::vector<Buffer>(count);
  for (std::size_t i = 0; i < count; ++i) {
    Buffer& buffer = added.buffers[i];
    buffer.data = added.memory.get() + first + i * each;
    buffer.registration = added.registration.get();
    buffer.slab = &added;
    free_.push_back(&buffer);
  }
  size_ += count;
  bytes_ += bytes;
  return {};
}

/// Retired slabs that are still there serve again.
void BufferPool::revive(std::size_t count) {
  for (BufferSlab& slab : slabs_) {
    if (size() >= count) return;
    if (!slab.retired) continue;
    slab.retired = false;
    size_ += slab.buffers.size();
    for (Buffer& buffer : slab.buffers)
      if (!buffer.taken) free_.push_back(&buffer);
  }
}

void BufferPool::drop(const BufferSlab& slab) {
  bytes_ -= slab.bytes;
  slabs_.remove_if([&](const BufferSlab& each) { return &each == &slab; });
}

Result<void> BufferPool::pin(const Device& device, BufferSlab& slab) {
  return device.pin(slab.memory.get(), slab.bytes)
      .map([&](std::unique_ptr<Device::Pinned>&& pinned) { slab.pinned = std::move(pinned); });
}

/// Memory that one device has pinned is pinned for all (Device::pin).
Result<void> BufferPool::pin(const Device& device) {
  if (device_ != nullptr) return {};
  for (BufferSlab& slab : slabs_) {
    if (slab.pinned) continue;  // by an attempt that failed later
    if (auto pinned = pin(device, slab); !pinned) return pinned;
  }
  device_ = &device;
  return {};
}

void BufferPool::leak() {
  for (BufferSlab& slab : slabs_)
    core::leak(std::pair(std::move(slab.memory), std::move(slab.pinned)));
}

Buffer* BufferPool::take() noexcept {
  if (free_.empty()) return nullptr;
  Buffer* buffer = free_.back();
  free_.pop_back();
  least_free_ = std::min(least_free_, free_.size());
  buffer->taken = true;
  ++buffer->slab->out;
  return buffer;
}

void BufferPool::tidy(std::size_t keep) {
  const std::size_t unneeded = std::min(least_free_, size() - std::min(size(), keep));
  retire(unneeded, [](Buffer&) {});
  least_free_ = free_.size();
}

Buffer* BufferPool::take_or_grow(std::size_t most) {
  if (Buffer* buffer = take()) return buffer;
  if (size() >= most || !grow_to(size() + 1, most)) return nullptr;
  return take();
}

void BufferPool::put_back(Buffer& buffer) {
  BufferSlab& slab = *buffer.slab;
  buffer.taken = false;
  --slab.out;
  if (!slab.retired)
    free_.push_back(&buffer);
  else if (slab.out == 0)
    drop(slab);
}

}  // namespace weft::core
