// Where the rings and doorbells of a queue pair and of a completion queue lie in their shared
// memory: a page of doorbells, then the rings. Sizes of rings are powers of two.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <utility>

#include "queue_entries.hpp"
#include "shared_memory.hpp"

namespace weft::efa_sim {

constexpr std::size_t queue_page = 4096;
constexpr std::size_t whole_pages(std::size_t bytes) {
  return (bytes + queue_page - 1) / queue_page * queue_page;
}

/// A ring of entries that is addressed by ever growing 16-bit positions.
template <typename Entry>
struct Ring {
  Entry* entries = nullptr;
  std::uint32_t size = 0;

  Entry& at(std::uint16_t position) const { return entries[position & (size - 1)]; }
};

using Doorbell = std::atomic<std::uint32_t>;
static_assert(Doorbell::is_always_lock_free);

/// The rings of a queue pair. A doorbell holds the position after the last entry that was posted.
class QueuePairQueues {
 public:
  struct Sizes {
    std::uint32_t send = 0, receive = 0;
  };
  static constexpr std::size_t bytes_for(Sizes sizes) {
    return queue_page + whole_pages(sizes.send * sizeof(SendEntry)) +
           whole_pages(sizes.receive * sizeof(ReceiveEntry));
  }

  QueuePairQueues(SharedMemory memory, Sizes sizes) : memory_(std::move(memory)) {
    std::byte* const start = memory_.data() + queue_page;
    send = {reinterpret_cast<SendEntry*>(start), sizes.send};
    receive = {reinterpret_cast<ReceiveEntry*>(start + whole_pages(sizes.send * sizeof(SendEntry))),
               sizes.receive};
  }

  Doorbell& send_doorbell() const { return word(0); }
  Doorbell& receive_doorbell() const { return word(16); }
  /// No part of the hardware: the share of posts, in millionths, that the shim shall refuse.
  Doorbell& refused_posts() const { return word(32); }
  const SharedMemory& memory() const { return memory_; }

  Ring<SendEntry> send;
  Ring<ReceiveEntry> receive;

 private:
  Doorbell& word(std::size_t index) const {
    return reinterpret_cast<Doorbell*>(memory_.data())[index];
  }
  SharedMemory memory_;
};

class CompletionQueueQueues {
 public:
  static constexpr std::size_t bytes_for(std::uint32_t size) {
    return queue_page + whole_pages(size * sizeof(CompletionEntry));
  }

  CompletionQueueQueues(SharedMemory memory, std::uint32_t size)
      : ring{reinterpret_cast<CompletionEntry*>(memory.data() + queue_page), size},
        memory_(std::move(memory)) {}

  Doorbell& doorbell() const { return *reinterpret_cast<Doorbell*>(memory_.data()); }
  const SharedMemory& memory() const { return memory_; }
  /// The phase bit of the entry at a position: it turns over with every turn of the ring.
  std::uint8_t phase_at(std::uint32_t position) const {
    return (position / ring.size) % 2 == 0 ? completion_phase : 0;
  }

  Ring<CompletionEntry> ring;

 private:
  SharedMemory memory_;
};

/// What a process sees of the device besides its queues. A process that has rung a doorbell wakes
/// the device if it sleeps; one whose libfabric rings doorbells itself can't, so the device looks
/// from time to time.
struct DevicePage {
  std::atomic<std::uint32_t> asleep;
  // How often shims have rung the doorbells of send queues.
  std::atomic<std::uint64_t> doorbells;
};

}  // namespace weft::efa_sim
