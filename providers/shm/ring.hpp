// Bytes in and out of a slot's ring. One process writes and one reads, and neither trusts the
// other's count further than the ring.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "providers/shm/region.hpp"

namespace weft::providers::shm {

/// The one end, which keeps its own count: the other process could change the shared one.
class RingWriter {
 public:
  /// Bytes that fit now.
  std::size_t room(const Slot& slot) const noexcept {
    const std::uint64_t under_way = written_ - slot.consumed.load(std::memory_order_acquire);
    return under_way <= ring_bytes ? ring_bytes - under_way : 0;
  }
  /// Writes the first bytes, as many as fit; publish() shows them to the reader.
  std::size_t write(Slot& slot, std::span<const std::byte> bytes) noexcept {
    const std::size_t count = std::min(room(slot), bytes.size());
    const std::size_t at = written_ % ring_bytes;
    const std::size_t straight = std::min(count, ring_bytes - at);
    std::memcpy(slot.ring.data() + at, bytes.data(), straight);
    std::memcpy(slot.ring.data(), bytes.data() + straight, count - straight);
    written_ += count;
    return count;
  }
  void publish(Slot& slot) const noexcept {
    slot.written.store(written_, std::memory_order_seq_cst);
  }
  std::uint64_t written() const noexcept { return written_; }

 private:
  std::uint64_t written_ = 0;
};

/// The other end.
class RingReader {
 public:
  /// Bytes that can be read; nothing if the writer's count makes no sense.
  std::optional<std::size_t> available(const Slot& slot) const noexcept {
    const std::uint64_t there = slot.written.load(std::memory_order_acquire) - consumed_;
    if (there > ring_bytes) return std::nullopt;
    return static_cast<std::size_t>(there);
  }
  /// Takes out `into.size()` bytes, which must be available.
  void read(const Slot& slot, std::span<std::byte> into) noexcept {
    const std::size_t at = consumed_ % ring_bytes;
    const std::size_t straight = std::min(into.size(), ring_bytes - at);
    std::memcpy(into.data(), slot.ring.data() + at, straight);
    std::memcpy(into.data() + straight, slot.ring.data(), into.size() - straight);
    skip(into.size());
  }
  void skip(std::size_t count) noexcept { consumed_ += count; }
  void publish(Slot& slot) const noexcept {
    slot.consumed.store(consumed_, std::memory_order_seq_cst);
  }

 private:
  std::uint64_t consumed_ = 0;
};

}  // namespace weft::providers::shm
