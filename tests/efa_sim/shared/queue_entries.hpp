// The entries of EFA's queues in memory, as the device and those who use it share them. The layouts
// are the device's own: rdma-core describes them in providers/efa/efa_io_defs.h.
#pragma once

#include <cstdint>

namespace weft::efa_sim {

enum class Opcode : std::uint8_t { send = 0, read = 1, write = 2 };

/// How an operation ended.
enum class Status : std::uint8_t {
  ok = 0,
  flushed = 1,
  qp_internal_error = 2,
  unsupported_operation = 3,
  invalid_address_handle = 4,
  invalid_local_key = 5,
  bad_length = 6,
  remote_bad_address = 7,
  remote_abort = 8,
  remote_bad_queue_pair = 9,
  remote_not_ready = 10,
  remote_bad_length = 11,
  remote_bad_status = 12,
  unresponsive_remote = 13,
  remote_unknown_peer = 14,
  unreachable_remote = 15,
};

constexpr std::uint64_t join_address(std::uint32_t low, std::uint32_t high) {
  return low | static_cast<std::uint64_t>(high) << 32;
}

/// Memory on the own side of an operation (the upper 8 bits of the key are reserved), or on the
/// other side.
struct BufferEntry {
  std::uint32_t length;
  std::uint32_t key;
  std::uint32_t address_low;
  std::uint32_t address_high;

  constexpr std::uint64_t address() const { return join_address(address_low, address_high); }
};
constexpr std::uint32_t local_key_mask = 0xffffff;

/// An entry of the send queue.
struct SendEntry {
  std::uint16_t request_id;
  std::uint8_t control1;  // bits 3:0 Opcode, and the flags below
  std::uint8_t control2;
  std::uint16_t destination_queue_pair;
  std::uint16_t length;  // of the inline data in bytes, or the number of buffers
  std::uint32_t immediate;
  std::uint16_t address_handle;
  std::uint8_t hints;
  std::uint8_t reserved;
  std::uint32_t queue_key;
  std::uint8_t reserved2[12];
  union {
    BufferEntry buffers[2];  // of a message
    std::uint8_t inlined[32];
    struct {
      BufferEntry remote;
      BufferEntry local;
    } rdma;
  };

  constexpr Opcode opcode() const { return static_cast<Opcode>(control1 & 0xf); }
};
static_assert(sizeof(SendEntry) == 64);

// Of SendEntry::control1.
constexpr std::uint8_t send_has_immediate = 1 << 4;
constexpr std::uint8_t send_is_inline = 1 << 5;
constexpr std::uint8_t send_is_metadata = 1 << 7;
// Of SendEntry::control2.
constexpr std::uint8_t send_phase = 1 << 0;
constexpr std::uint8_t send_first = 1 << 2;
constexpr std::uint8_t send_last = 1 << 3;
constexpr std::uint8_t send_wants_completion = 1 << 4;

/// A buffer of a receive; a receive takes one or more.
struct ReceiveEntry {
  std::uint32_t address_low;
  std::uint32_t address_high;
  std::uint16_t request_id;
  std::uint16_t length;
  std::uint32_t key_and_flags;  // bits 23:0 key, and the flags below

  constexpr std::uint64_t address() const { return join_address(address_low, address_high); }
};
static_assert(sizeof(ReceiveEntry) == 16);

constexpr std::uint32_t receive_first = 1u << 30;
constexpr std::uint32_t receive_last = 1u << 31;

/// An entry of a completion queue: of the long form, which serves sends and receives alike.
struct CompletionEntry {
  std::uint16_t request_id;
  Status status;
  std::uint8_t flags;  // bit 0 phase, 2:1 CompletionSource, 6:4 Opcode, and the flags below
  std::uint16_t queue_pair;
  // What follows is that of receives.
  std::uint16_t length;
  std::uint16_t address_handle;  // no_address_handle: see source
  std::uint16_t source_queue_pair;
  std::uint32_t immediate;
  union {
    std::uint16_t length_high;  // of a write
    std::uint8_t source[16];    // of a message from an unknown peer: its address
  };

  constexpr Opcode opcode() const { return static_cast<Opcode>(flags >> 4 & 7); }
};
static_assert(sizeof(CompletionEntry) == 32);

enum class CompletionSource : std::uint8_t { send_queue = 1, receive_queue = 2 };
constexpr CompletionSource source_of(const CompletionEntry& entry) {
  return static_cast<CompletionSource>(entry.flags >> 1 & 3);
}
constexpr std::uint8_t completion_flags(CompletionSource source, Opcode opcode) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(source) << 1 |
                                   static_cast<unsigned>(opcode) << 4);
}
constexpr std::uint8_t completion_phase = 1 << 0;
constexpr std::uint8_t completion_has_immediate = 1 << 3;
constexpr std::uint8_t completion_unsolicited = 1 << 7;
constexpr std::uint16_t no_address_handle = 0xffff;

// What is written to the doorbell of a completion queue: how many entries were consumed (modulo
// 2^16), a number that grows with every event taken, and whether an event is asked for.
constexpr std::uint32_t doorbell_consumed_mask = 0xffff;
constexpr std::uint32_t doorbell_sequence_shift = 29;
constexpr std::uint32_t doorbell_sequence_mask = 3u << doorbell_sequence_shift;
constexpr std::uint32_t doorbell_arm = 1u << 31;

}  // namespace weft::efa_sim
