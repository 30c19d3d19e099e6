#include "message/buffer_pool.hpp"

#include <fmt/format.h>

#include <new>
#include <utility>

namespace weft::core {

Result<void> BufferPool::grow(std::size_t count) {
  if (count == 0) return {};
  Slab slab;
  const std::size_t bytes = count * buffer_bytes_;
  slab.memory.reset(new (std::nothrow) std::byte[bytes]);
  if (!slab.memory)
    return fail(Code::out_of_memory,
                fmt::format("no memory for {} buffers of {} bytes", count, buffer_bytes_));
  if (endpoint_.capability().local_registration) {
    auto registration =
        endpoint_.register_memory(slab.memory.get(), bytes, providers::Access::messages);
    if (!registration) return fail(std::move(registration.error()));
    slab.registration = std::move(*registration);
  }
  for (std::size_t i = 0; i < count; ++i) {
    Buffer& buffer = buffers_.emplace_back();
    buffer.data = slab.memory.get() + i * buffer_bytes_;
    buffer.registration = slab.registration.get();
    free_.push_back(&buffer);
  }
  slabs_.push_back(std::move(slab));
  return {};
}

Buffer* BufferPool::take() noexcept {
  if (free_.empty()) return nullptr;
  Buffer* buffer = free_.back();
  free_.pop_back();
  return buffer;
}

}  // namespace weft::core
