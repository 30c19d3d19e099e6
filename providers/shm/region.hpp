// The memory that an shm endpoint shares with the processes around it: its identity, the memory
// that they may reach, and a mail slot for each peer that sends to it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <weft/error.hpp>

#include "providers/shm/backing.hpp"
#include "providers/shm/descriptor.hpp"

namespace weft::providers::shm {

/// Changes whenever the layout below does: rails of different layouts do not pair.
constexpr std::uint32_t layout_version = 6;

/// Peers that can send to one endpoint at a time. Slots are sparse: an unused one costs
/// address space only.
constexpr std::size_t slot_count = 1024;
/// Registrations of one endpoint. 18 bits of a key say which one.
constexpr unsigned index_bits = 18;
constexpr std::size_t entry_count = std::size_t{1} << index_bits;
/// Bytes under way from one peer; small enough to stay in a core's cache.
constexpr std::size_t ring_bytes = std::size_t{64} << 10;
/// Threads that copy by one endpoint at a time.
constexpr std::size_t copier_count = 8;
constexpr std::size_t cache_line = 64;

/// One registration. `key` is 0 while the entry is closed; the rest is written before it.
struct Entry {
  std::atomic<std::uint64_t> key;
  std::uint64_t address;
  std::uint64_t length;
  std::uint64_t access;  // providers::Access
  Backing backing;
};

/// The key of the entry that one of the peer's copiers copies to or from just now. Closing an entry
/// waits for that.
struct alignas(cache_line) Copying {
  std::atomic<std::uint64_t> key;
};

/// The identity of the peer that has a slot.
struct alignas(cache_line) Claim {
  std::atomic<std::uint64_t> owner;  // the nonce of its endpoint; 0: free, `left`: see below
  std::atomic<std::uint32_t> pid;    // in its pid namespace
  /// Not 0: it maps files that entries lie in, and wants to hear when such an entry was closed.
  std::atomic<std::uint32_t> maps;
  std::atomic<std::uint64_t> pid_namespace;
  std::array<Copying, copier_count> copying;
};
/// A number of this process's pid namespace, the same for all processes in it; 0: not known.
std::uint64_t own_pid_namespace() noexcept;

/// The sender is gone for good; the owner of the region frees the slot once it has seen this.
constexpr std::uint64_t left = 1;

struct Head {
  std::uint64_t nonce;  // this endpoint's, and never another's
  std::atomic<std::uint32_t> closed;
  std::atomic<std::uint32_t> claimed;   // slots that were ever used: those below this number
  std::atomic<std::uint64_t> closings;  // of entries that peers may have mapped, so far
  /// Set by the owner while it sleeps: a sender then rings.
  alignas(cache_line) std::atomic<std::uint32_t> asleep;
  /// A bit for each slot that has something new.
  alignas(cache_line) std::array<std::atomic<std::uint64_t>, slot_count / 64> pending;
  std::array<Claim, slot_count> claims;
  std::array<Entry, entry_count> entries;
};

/// Messages of one sender: a stream of bytes in a ring that one side writes and one side reads.
/// Both counts only grow; a byte's place is its number modulo the ring.
struct Slot {
  alignas(cache_line) std::atomic<std::uint64_t> written;
  alignas(cache_line) std::atomic<std::uint64_t> consumed;
  alignas(cache_line) std::array<std::byte, ring_bytes> ring;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// What is mapped begins at a multiple of the kernel's page: 4 KiB, and up to 64 KiB on arm64
/// (kernel-64k) and POWER. The largest, so that the layout is one.
constexpr std::size_t most_page_bytes = std::size_t{64} << 10;
constexpr std::size_t whole_pages(std::size_t bytes) {
  return (bytes + most_page_bytes - 1) / most_page_bytes * most_page_bytes;
}
constexpr std::size_t head_bytes = whole_pages(sizeof(Head));
constexpr std::size_t slot_bytes = whole_pages(sizeof(Slot));
constexpr std::size_t region_bytes = head_bytes + slot_count * slot_bytes;

/// A part of a region, mapped.
template <typename Part>
class Mapped {
 public:
  Mapped() = default;
  static Result<Mapped> of(const Descriptor& region, std::size_t offset);
  Part* operator->() const noexcept { return part_.get(); }
  Part& operator*() const noexcept { return *part_; }
  explicit operator bool() const noexcept { return part_ != nullptr; }

 private:
  struct Unmap {
    void operator()(Part* part) const noexcept;
  };
  std::unique_ptr<Part, Unmap> part_;
};
extern template class Mapped<Head>;
extern template class Mapped<Slot>;

/// Wakes the owner of a region if it sleeps. The sleeper takes its flag down itself: a sender
/// that took it down and died before it rang would leave the others silent.
void ring(const Head& head, const Descriptor& bell) noexcept;

/// A new region of a size that can't be changed.
Result<Descriptor> create_region();
/// A descriptor from another process, if it is a region that can't shrink under its readers.
Result<void> check_region(const Descriptor& region);

inline Result<Mapped<Head>> map_head(const Descriptor& region) {
  return Mapped<Head>::of(region, 0);
}
inline Result<Mapped<Slot>> map_slot(const Descriptor& region, std::size_t index) {
  return Mapped<Slot>::of(region, head_bytes + index * slot_bytes);
}

}  // namespace weft::providers::shm
