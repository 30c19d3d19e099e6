// An operation on its way: what was posted, and how far it got.
#pragma once

#include <cstddef>
#include <memory>

#include "completion_queue.hpp"
#include "process_memory.hpp"
#include "shared/queue_entries.hpp"
#include "shared/wire.hpp"

namespace weft::efa_sim {

class QueuePair;

/// Memory on the own side, with its key.
struct LocalPiece {
  std::uint32_t key;
  Piece piece;
};

/// The queue pair at which an operation aims.
struct Destination {
  Gid gid;
  std::uint16_t queue_pair;
  auto operator<=>(const Destination&) const = default;
};

struct Operation {
  // As posted.
  std::uint16_t id = 0;
  Opcode opcode = Opcode::send;
  bool has_immediate = false;
  std::uint32_t immediate = 0;
  std::uint32_t queue_key = 0;
  std::uint16_t address_handle = 0;
  Destination destination{};
  std::uint64_t remote_address = 0;
  std::uint32_t remote_key = 0;
  std::vector<LocalPiece> local;
  bool is_inline = false;
  std::vector<std::byte> inlined;
  std::uint64_t length = 0;

  // How far it got.
  QueuePair* owner = nullptr;
  bool ended = false;
  Time silent_since{};
  std::uint64_t cut = 0;        // so much of it became packets
  std::uint64_t limit = 0;      // so much of it will: less than length if it is to fail
  std::uint64_t in_flight = 0;  // packets that were cut and not carried
  std::uint64_t last_carried = 0;
  std::uint64_t carried = 0;
  // What is to go wrong with it.
  Status failure = Status::ok;
  bool not_ready_decided = false;
  Time not_ready_until{};
  std::uint32_t tries = 0;
  bool duplicated = false;
  std::uint64_t duplicate_offset = 0;
  std::vector<std::byte> duplicate;  // the bytes of a packet that will come a second time

  std::vector<Piece> local_pieces() const {
    std::vector<Piece> pieces;
    for (const LocalPiece& each : local) pieces.push_back(each.piece);
    return pieces;
  }
};

struct Packet {
  std::shared_ptr<Operation> operation;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  bool carried = false;  // its bytes are there, only the message could not be delivered yet
};

}  // namespace weft::efa_sim
