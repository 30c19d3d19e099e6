// Registered buffers of equal size on one endpoint.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>
#include <weft/error.hpp>

#include "device/device.hpp"
#include "providers/endpoint.hpp"

namespace weft::core {

/// One buffer, ready to be posted. `number` is for the user of the pool.
struct Buffer : providers::Posted {
  std::byte* data = nullptr;
  const providers::Registration* registration = nullptr;  // null where none is needed
  std::uint64_t number = 0;
};

/// Grows by slabs when asked to, and never shrinks. Not safe for several threads.
class BufferPool {
 public:
  BufferPool(providers::Endpoint& endpoint, std::size_t buffer_bytes)
      : endpoint_(endpoint), buffer_bytes_(buffer_bytes) {}

  std::size_t buffer_bytes() const noexcept { return buffer_bytes_; }
  /// Adds `count` free buffers. May block for registration.
  Result<void> grow(std::size_t count);
  /// Pins all buffers for that device's copies, those that come later as well. May block.
  Result<void> pin(const Device& device);
  /// Their memory is never freed, because something may always touch it. Afterwards only the
  /// destructor may be called.
  void leak();
  /// A free buffer; null if there is none.
  Buffer* take() noexcept;
  void put_back(Buffer& buffer) { free_.push_back(&buffer); }
  std::size_t free() const noexcept { return free_.size(); }

 private:
  struct Slab {
    struct Free {
      void operator()(std::byte* memory) const { std::free(memory); }
    };
    std::unique_ptr<std::byte[], Free> memory;  // whole pages: a device pins no less
    std::size_t bytes = 0;
    std::unique_ptr<providers::Registration> registration;
    std::unique_ptr<Device::Pinned> pinned;
  };
  static Result<void> pin(const Device& device, Slab& slab);

  providers::Endpoint& endpoint_;
  const std::size_t buffer_bytes_;
  const Device* device_ = nullptr;  // the first that the buffers were pinned for
  std::vector<Slab> slabs_;
  std::deque<Buffer> buffers_;
  std::vector<Buffer*> free_;
};

}  // namespace weft::core
