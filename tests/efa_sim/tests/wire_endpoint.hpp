// An endpoint as its device sees it: rings in which entries are written by hand. Both sides and the
// fabric between them are in the test's own process, and so is the time.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <vector>

#include "device/fabric.hpp"

namespace weft::efa_sim {

class WireEndpoint {
 public:
  static constexpr std::size_t bytes = 1 << 20;
  static constexpr QueuePairQueues::Sizes sizes{64, 64};

  WireEndpoint(Fabric& fabric, std::uint32_t host, bool unsolicited = true,
               pid_t process = getpid())
      : nic(fabric.nic(host, 0)),
        domain{host + 1, process},
        completions(nic.create_completion_queue(256, {}, 0)),
        queue_pair(
            *nic.create_queue_pair({domain, &completions, &completions, sizes, unsolicited})),
        queues_(SharedMemory::map(Descriptor(dup(queue_pair.memory().descriptor())),
                                  QueuePairQueues::bytes_for(sizes)),
                sizes),
        entries_(SharedMemory::map(Descriptor(dup(completions.memory().descriptor())),
                                   CompletionQueueQueues::bytes_for(256)),
                 256) {
    queue_pair.state = QueuePairState::sends;
    key = add_region(local_write | remote_write | remote_read);
  }

  std::uint32_t add_region(std::uint32_t rights) {
    return nic.regions.add({domain, address(), bytes, rights},
                           nic.settings.on(Setting::reuse_keys));
  }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(memory.data()); }

  /// The entry of an operation on all of an other endpoint's memory from an offset on.
  SendEntry entry(Opcode opcode, const WireEndpoint& other, std::uint32_t length) {
    SendEntry entry{};
    entry.request_id = ids_++;
    entry.control1 = static_cast<std::uint8_t>(opcode) | send_is_metadata;
    entry.destination_queue_pair = other.queue_pair.number;
    entry.queue_key = other.queue_pair.queue_key;
    entry.address_handle = nic.addresses.add(domain, other.nic.gid);
    entry.length = 1;
    if (opcode == Opcode::send) {
      entry.buffers[0] = buffer(length, key, address());
    } else {
      entry.rdma.local = buffer(length, key, address());
      entry.rdma.remote = buffer(length, other.key, other.address());
    }
    return entry;
  }
  void post(const SendEntry& entry) {
    queues_.send.at(sent_++) = entry;
    queues_.send_doorbell().store(sent_);
  }
  void post_receive(std::uint16_t id, std::vector<std::uint16_t> lengths) {
    std::uint64_t at = address();
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const std::uint32_t flags =
          (i == 0 ? receive_first : 0) | (i + 1 == lengths.size() ? receive_last : 0);
      queues_.receive.at(received_++) = {static_cast<std::uint32_t>(at),
                                         static_cast<std::uint32_t>(at >> 32), id, lengths[i],
                                         key | flags};
      at += lengths[i];
    }
    queues_.receive_doorbell().store(received_);
  }
  std::optional<CompletionEntry> poll() {
    const CompletionEntry entry = entries_.ring.at(read_);
    if ((entry.flags & completion_phase) != entries_.phase_at(read_)) return std::nullopt;
    entries_.doorbell().store(++read_);
    return entry;
  }

  static BufferEntry buffer(std::uint32_t length, std::uint32_t key, std::uint64_t address) {
    return {length, key, static_cast<std::uint32_t>(address),
            static_cast<std::uint32_t>(address >> 32)};
  }

  Nic& nic;
  const Domain domain;
  std::vector<std::byte> memory = std::vector<std::byte>(bytes);
  std::uint32_t key = 0;
  CompletionQueue& completions;
  QueuePair& queue_pair;

 private:
  QueuePairQueues queues_;
  CompletionQueueQueues entries_;
  std::uint16_t sent_ = 0, received_ = 0, read_ = 0, ids_ = 0;
};

}  // namespace weft::efa_sim
