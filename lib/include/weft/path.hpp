/// @file
/// The way that the bytes of a transfer take, and what it costs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include <weft/capability.hpp>
#include <weft/export.hpp>
#include <weft/transfer.hpp>

namespace weft {

/// Whose a place or a copy is.
enum class PathSide : std::uint8_t { local, remote, between };

/// Something that bytes come to on their way.
struct Stop {
  enum class Kind : std::uint8_t {
    host,           ///< Host memory of a segment.
    device,         ///< A GPU's memory.
    bounce_buffer,  ///< The bounce-buffer transport's, in host memory that NICs and GPUs can reach.
    provider_buffer,  ///< Host memory of the provider's.
    socket_buffer,    ///< Host memory of the kernel's.
    nic,
    wire,
  };
  Kind kind = Kind::host;
  PathSide side = PathSide::local;
  int numa_node = -1;  ///< Of the memory; -1 where it can't be told.
  int device = -1;     ///< The GPU that the memory is of or near to, in Topology::gpus; -1: none.
  std::string name = {};  ///< Of NICs, where they are known: "rdmap79s0, rdmap80s0".
};

/// One step of the way.
struct Hop {
  Stop from, to;
  Mover by = Mover::nic;
  PathSide side = PathSide::local;  ///< That it is made on.

  /// Whether it is a copy from memory to memory. What a NIC takes or brings is none.
  bool copies() const noexcept { return by != Mover::nic; }
  /// Whether a CPU makes that copy.
  bool busies_cpu() const noexcept { return by == Mover::cpu || by == Mover::kernel; }
};

/// What a transfer would do: what is known of it before it runs, declared by the providers and not
/// measured.
struct Path {
  Direction direction = Direction::write;
  TransportKind transport = TransportKind::one_sided;  ///< Never `automatic`.
  std::string provider;            ///< The rails', as in Config::providers: "tcp".
  std::vector<std::string> rails;  ///< Of this engine's, that may carry it.
  bool same_host = false;          ///< Both sides were proven to be on one machine.

  std::vector<Hop> hops;  ///< From where the bytes lie to where they go; whoever began it.
  unsigned copies = 0;    ///< Of each byte, on both sides in sum.
  unsigned copies_local = 0, copies_remote = 0;
  unsigned cpu_copies = 0;  ///< Those of them that a CPU makes.
  /// Pieces of fewer bytes are copied this often on top, by the CPU, through buffers of the
  /// provider's. 0: none are.
  std::uint64_t bounced_below = 0;
  unsigned bounces_local = 0, bounces_remote = 0;

  /// Whether this side's memory is a GPU's, and a NIC reads or writes it itself.
  bool gpudirect_local = false, gpudirect_remote = false;

  /// What the slowest link on the way carries, in Gb/s; 0: not known.
  double gbps = 0;
  std::string limit;  ///< What sets it, or why it is not known: "4 NICs of this engine's".

  /// Why better paths are not taken: "shm: another host", "GPUDirect: ...".
  std::vector<std::string> passed_over;
  /// Which policy does not allow it, and why: submit() would fail with this sentence. Empty: all
  /// that are in force allow it.
  std::string refused;
};

/// "memory of GPU 3", "the peer's host memory on node 1", "NIC rdmap79s0".
WEFT_API std::string to_string(const Stop& stop);
WEFT_API std::string_view to_string(Stop::Kind kind) noexcept;
WEFT_API std::string_view to_string(PathSide side) noexcept;

}  // namespace weft
