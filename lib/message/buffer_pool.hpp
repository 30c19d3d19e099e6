// Registered buffers of equal size on one endpoint.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "endpoint.hpp"

namespace weft::core {

/// One buffer, ready to be posted. `owner` and `number` are the user's.
struct Buffer : providers::Posted {
  std::byte* data = nullptr;
  void* descriptor = nullptr;
  std::uint64_t number = 0;
  bool out = false;  // taken, and not put back
};

/// Grows by slabs when asked to, and never shrinks. Not safe for several threads.
class BufferPool {
 public:
  BufferPool(providers::Endpoint& endpoint, std::size_t buffer_bytes)
      : endpoint_(endpoint), buffer_bytes_(buffer_bytes) {}

  std::size_t buffer_bytes() const noexcept { return buffer_bytes_; }
  /// Adds `count` free buffers. May block for registration.
  Result<void> grow(std::size_t count);
  /// A free buffer; null if there is none.
  Buffer* take() noexcept;
  void put_back(Buffer& buffer) {
    buffer.out = false;
    free_.push_back(&buffer);
  }
  /// After a failure: it rests before it is taken again, since some providers report a failed
  /// operation more than once (efa in libfabric 1.17, for each of its packets), and what uses it
  /// next would be taken to have failed while it is still being sent.
  void put_back_failed(Buffer& buffer) {
    buffer.out = false;
    resting_.push_back({&buffer, Clock::now() + rest});
  }
  /// Those that can be taken now.
  std::size_t free() const noexcept;

  /// Packets of one operation are given up within this time of each other.
  static constexpr Nanoseconds rest = std::chrono::seconds(1);

 private:
  struct Slab {
    std::unique_ptr<std::byte[]> memory;
    std::unique_ptr<providers::Registration> registration;
  };
  providers::Endpoint& endpoint_;
  const std::size_t buffer_bytes_;
  std::vector<Slab> slabs_;
  std::deque<Buffer> buffers_;
  struct Resting {
    Buffer* buffer;
    Clock::time_point until;
  };
  std::vector<Buffer*> free_;
  std::deque<Resting> resting_;  // in order of time
};

}  // namespace weft::core
