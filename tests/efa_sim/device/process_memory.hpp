// Copies between the memories of processes that use the device, as a NIC's DMA would: the processes
// themselves take no part, and may be stopped.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::efa_sim {

/// A piece of a process's memory.
struct Piece {
  std::uint64_t address;
  std::uint64_t length;
};

/// The part of a list of pieces, seen as one row of bytes, that begins at an offset.
std::vector<Piece> part_of(const std::vector<Piece>& pieces, std::uint64_t offset,
                           std::uint64_t length);

/// What became of a copy. A process that has ended is without memory before its sockets close.
enum class Copied { all, not_all, process_gone };

Copied read_from(pid_t process, const std::vector<Piece>& pieces, std::byte* into);
Copied write_to(pid_t process, const std::vector<Piece>& pieces, const std::byte* from);

}  // namespace weft::efa_sim
