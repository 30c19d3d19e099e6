/// @file
/// The path of a transfer's bytes, and its copies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include <weft/capability.hpp>
#include <weft/export.hpp>
#include <weft/transfer.hpp>

namespace weft {

/// The side that a place or a copy belongs to.
enum class PathSide : std::uint8_t { local, remote, between };

/// A place on the way of bytes.
struct Stop {
  enum class Kind : std::uint8_t {
    host,             ///< Host memory of a segment.
    device,           ///< A GPU's memory.
    bounce_buffer,    ///< Of the bounce-buffer transport: host memory that NICs and GPUs reach.
    provider_buffer,  ///< Host memory of the provider.
    socket_buffer,    ///< Host memory of the kernel.
    nic,
    wire,
    file,         ///< A file, or a block device (Memory::file).
    file_buffer,  ///< Host memory that a drive reads and writes: whole pages.
  };
  Kind kind = Kind::host;
  PathSide side = PathSide::local;
  int numa_node = -1;  ///< Of the memory; -1: unknown.
  int device = -1;     ///< Index in Topology::gpus of the memory's GPU, or of a near one; -1: none.
  std::string name = {};  ///< Of NICs that are known: "rdmap79s0, rdmap80s0".
};

/// One step of the way.
struct Hop {
  Stop from, to;
  Mover by = Mover::nic;
  PathSide side = PathSide::local;  ///< The side that makes it.

  /// Whether it is a copy from memory to memory. What a NIC or a drive reads or writes is not a
  /// copy.
  bool copies() const noexcept { return by != Mover::nic && by != Mover::drive; }
  /// Whether a CPU makes that copy.
  bool busies_cpu() const noexcept { return by == Mover::cpu || by == Mover::kernel; }
};

/// What a transfer would do, as the providers declare it. Nothing is measured.
struct Path {
  Direction direction = Direction::write;
  TransportKind transport = TransportKind::one_sided;  ///< Never `automatic`.
  std::string provider;            ///< Of the rails, as in Config::providers: "tcp".
  std::vector<std::string> rails;  ///< Rails of this engine that may carry it.
  bool same_host = false;          ///< Both sides are proven to be on one machine.

  std::vector<Hop> hops;  ///< From source to destination, whichever side began the transfer.
  unsigned copies = 0;    ///< Of each byte, on both sides together.
  unsigned copies_local = 0, copies_remote = 0;
  unsigned cpu_copies = 0;  ///< The copies that a CPU makes.
  /// Pieces of fewer bytes are also bounced by the CPU through buffers of the provider, so often as
  /// the two numbers below say. 0: no piece is.
  std::uint64_t bounced_below = 0;
  unsigned bounces_local = 0, bounces_remote = 0;

  /// Whether the memory of a side is a GPU's, and a NIC reads or writes it itself.
  bool gpudirect_local = false, gpudirect_remote = false;

  /// Speed of the slowest link on the way, in Gb/s; 0: unknown.
  double gbps = 0;
  std::string limit;  ///< That link, or why the speed is unknown: "4 NICs of this engine's".

  /// Better paths that are not used, with the reason: "shm: another host", "GPUDirect: ...".
  std::vector<std::string> not_used;
  /// The policy that does not allow it, and why: submit() would fail with this sentence. Empty: all
  /// policies allow it.
  std::string refused;
};

/// "memory of GPU 3", "the peer's host memory on node 1", "NIC rdmap79s0".
WEFT_API std::string to_string(const Stop& stop);
WEFT_API std::string_view to_string(Stop::Kind kind) noexcept;
WEFT_API std::string_view to_string(PathSide side) noexcept;

}  // namespace weft
