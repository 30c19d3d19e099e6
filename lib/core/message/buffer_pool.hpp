// Registered buffers of equal size on one endpoint.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <list>
#include <memory>
#include <optional>
#include <vector>
#include <weft/error.hpp>

#include "device/device.hpp"
#include "providers/endpoint.hpp"

namespace weft::core {

struct BufferSlab;

/// One buffer, ready to be posted. `number` is for the user of the pool.
struct Buffer : providers::Posted {
  std::byte* data = nullptr;
  const providers::Registration* registration = nullptr;  // null where none is needed
  std::uint64_t number = 0;
  BufferSlab* slab = nullptr;  // the pool's, like `taken`
  bool taken = false;
  bool called_back = false;  // the Receives', while the provider may still end it for that
};

/// Memory of some buffers, which come and go together.
struct BufferSlab {
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte[], Free> memory;  // whole pages: a device pins no less
  std::size_t bytes = 0;
  std::unique_ptr<providers::Registration> registration;
  std::unique_ptr<Device::Pinned> pinned;
  std::vector<Buffer> buffers;  // as many as there ever are
  std::size_t out = 0;          // of these, taken
  bool retired = false;
};

/// Grows by slabs when asked to, and gives slabs back. Used by one thread at a time.
class BufferPool {
 public:
  /// `least`: buffers in a slab; slabs of a large pool have more. `head`: what is behind so many
  /// bytes of a buffer begins at a page; 0: it may begin anywhere.
  BufferPool(providers::Endpoint& endpoint, std::size_t buffer_bytes, std::size_t least,
             std::size_t head = 0)
      : endpoint_(endpoint), buffer_bytes_(buffer_bytes), least_(least), head_(head) {}

  std::size_t buffer_bytes() const noexcept { return buffer_bytes_; }
  /// Makes the pool hold so many buffers at least, and not more than `most`. May block for
  /// registration. After a failure it fails without a try, until the next retire().
  Result<void> grow_to(std::size_t count, std::size_t most);
  /// Pins all buffers for that device's copies, those that come later as well. May block.
  Result<void> pin(const Device& device);
  /// Their memory is never freed, because something may always touch it. Afterwards only the
  /// destructor may be called.
  void leak();
  /// A free buffer; null if there is none.
  Buffer* take() noexcept;
  /// The same, for which the pool grows up to `most` buffers. Then it may block.
  Buffer* take_or_grow(std::size_t most);
  /// Its slab goes with it, if that was retired and this was the last to come back.
  void put_back(Buffer& buffer);
  std::size_t free() const noexcept { return free_.size(); }
  // From any thread.
  /// Buffers, but for those of retired slabs.
  std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  /// Bytes of all slabs.
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

  /// Lets slabs go that hold `surplus` buffers at most together. Their buffers that are taken are
  /// handed to `visit(Buffer&)`; the memory of each slab goes when all are back.
  template <typename Visit>
  void retire(std::size_t surplus, Visit&& visit);
  /// Lets slabs go that nothing needed since the last call, as long as `keep` buffers stay.
  void tidy(std::size_t keep);
  static bool retired(const Buffer& buffer) noexcept { return buffer.slab->retired; }

 private:
  using Slabs = std::list<BufferSlab>;
  Result<void> add(std::size_t count);
  void revive(std::size_t count);
  void drop(const BufferSlab& slab);
  static Result<void> pin(const Device& device, BufferSlab& slab);

  providers::Endpoint& endpoint_;
  const std::size_t buffer_bytes_, least_, head_;
  const Device* device_ = nullptr;  // the first that the buffers were pinned for
  Slabs slabs_;
  std::vector<Buffer*> free_;   // but for those of retired slabs
  std::size_t least_free_ = 0;  // since the last tidy()
  std::optional<Error> failure_;
  std::atomic<std::size_t> size_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

template <typename Visit>
void BufferPool::retire(std::size_t surplus, Visit&& visit) {
  failure_.reset();
  for (auto next = slabs_.end(); next != slabs_.begin() && surplus > 0;) {
    BufferSlab& slab = *--next;
    if (slab.retired || slab.buffers.size() > surplus) continue;
    surplus -= slab.buffers.size();
    size_ -= slab.buffers.size();
    slab.retired = true;
    std::erase_if(free_, [&](const Buffer* buffer) { return buffer->slab == &slab; });
    ++slab.out;  // it stays while it is visited
    for (Buffer& buffer : slab.buffers)
      if (buffer.taken) visit(buffer);
    if (--slab.out > 0) continue;
    bytes_ -= slab.bytes;
    next = slabs_.erase(next);
  }
}

}  // namespace weft::core
