// Where a transfer goes: over which rails, in how large parts, and which thread copies. The policy
// is here, as functions of plain values: no locks, no clocks, no allocations. Providers give
// numbers (weft::Tuning), the engine gathers the load and carries out what is decided. Chunks may
// be smaller yet: by Transport::chunk_limit(), and by TransferState::even_chunk() below that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <weft/capability.hpp>
#include <weft/deadline.hpp>
#include <weft/transfer.hpp>

namespace weft::core {

// Opening a NIC.

/// What the operator fixed (Config), and the machine.
struct RailOptions {
  unsigned rails = 0;             // over each NIC; 0: automatic
  std::uint64_t chunk_bytes = 0;  // 0: automatic
  std::size_t window = 0;         // 0: automatic
  unsigned cores = 1;             // that the process may use
  bool polls = false;             // the application takes one of them
};

/// What may be in flight on a rail. Each peer has its own window: a peer that takes nothing,
/// because it is frozen or slow, must not hold up the others.
struct Window {
  std::size_t operations = 0;                                 // to one peer
  std::uint64_t bytes = 0;                                    // to one peer
  std::size_t all_operations = static_cast<std::size_t>(-1);  // to all peers together
  // On top, to one peer, for class latency when the above is full: the others never take all.
  std::size_t spare_operations = 0;
  std::uint64_t spare_bytes = 0;
  // The provider may have no room at all for so long. Then other rails carry what waits for it.
  Nanoseconds patience = Nanoseconds::max();
  std::uint64_t bytes_on_host = 0;  // to a peer of this machine; 0: `bytes`

  std::uint64_t bytes_to(bool same_host) const noexcept {
    return same_host && bytes_on_host > 0 ? bytes_on_host : bytes;
  }
};

/// How the rails over one NIC are set up, and the numbers by which transfers are placed on them.
struct RailPlan {
  unsigned rails = 1;           // over the NIC
  bool one_for_mapped = false;  // mapped memory keeps to the first rail
  bool one_core = false;        // the rail's thread keeps to one core
  bool maps_memory = false;     // as Capability
  std::uint64_t chunk = 0;      // most bytes of an operation
  std::uint64_t share = 1;      // bytes queued on one rail from which another one helps
  std::uint64_t part = 0;  // bytes worth a rail of their own where nothing is queued; 0: a chunk
  Window window;
};

RailPlan plan_rails(const Capability& record, const RailOptions& options);

// Submitting a transfer.

struct TransferShape {
  std::uint64_t bytes = 0;
  std::size_t pieces = 1;
  Priority priority = Priority::normal;
  TransportKind transport = TransportKind::one_sided;
  std::size_t rails = 1;  // that may carry it
  bool mapped = false;    // the remote memory is mapped here
  bool staged = false;    // no NICs reach the memory on both sides
  bool contact = false;   // it has no bytes, and all rails that may carry it ask for an answer
  bool parted = false;    // some rail may carry only a part of it
  bool followed = false;  // by a signal or a check
  bool event = false;     // the caller polls for its end, and may never look at the transfer
  bool waits = false;     // for a GPU's event
  bool in_time = true;    // neither its deadline nor its lease has passed
};

/// The thread that submits, and what is known of its application.
struct Caller {
  std::uint64_t inline_bytes = 0;  // Config::inline_copy_bytes
  bool drives = false;             // Progress::manual
  bool drives_rail = false;        // polls, and so makes the steps of the path's first rail
  bool in_callback = false;        // must not wait, and may be called by such a transfer itself
  bool idle = false;    // has nothing else under way, and has looked at each end, or let go of it
  bool prompt = false;  // waits for large transfers as soon as it has submitted them
};

/// Whether the caller copies all of it before submit() returns. `on_trust`: it does because the
/// application was prompt before, which is believed a few times.
enum class InlineCopies : std::uint8_t { none, all, on_trust };
InlineCopies copies_inline(const TransferShape& shape, const RailPlan& rail, const Caller& caller);

/// Most bytes that a caller copies whatever else is under way.
std::uint64_t always_inline(Priority priority, std::uint64_t inline_bytes);
/// Most bytes that a caller copies where it waits for each transfer.
std::uint64_t waited_inline(const Caller& caller);

/// What waits on one of the rails that may carry it.
struct RailLoad {
  std::size_t rail = 0;         // its index
  bool aside = false;           // to be taken only where there is no other
  std::uint64_t queued = 0;     // bytes of this class and more urgent ones
  std::uint64_t in_flight = 0;  // operations
};

struct Placement {
  std::size_t rails = 1;       // the first so many of the loads carry it
  std::uint64_t part = 0;      // most bytes that a rail takes at a time
  bool even = false;           // its end waits for these rails alone, which share it evenly
  bool posted_inline = false;  // the caller posts it before submit() returns
  bool waiters_help = false;   // threads that wait copy what the rail's thread has not begun
};

/// For what the caller does not copy inline. `loads`: one for each rail of the path, in the order
/// of preference; reordered, so that the chosen ones come first. A single load need not be filled.
Placement place(const TransferShape& shape, const RailPlan& rail, const Caller& caller,
                std::span<RailLoad> loads);

// Pulling chunks.

/// Chunks of at most `chunk` bytes that fit a window, if nothing may start beyond its limits.
std::size_t chunks_within(std::size_t operations, std::size_t most_operations, std::uint64_t bytes,
                          std::uint64_t most_bytes, std::uint64_t chunk);

/// Chunks that a rail takes of a transfer in a turn, one of `takers` that carry it: no more than
/// its part. Where posting takes as long as the others take to wake up, as over sockets, the first
/// one awake would leave them nothing of a transfer of few chunks.
std::size_t chunks_a_turn(std::uint64_t bytes, std::size_t takers, std::uint64_t chunk,
                          std::size_t most);

/// What a rail takes of a transfer in a turn, in posts of one chunk each. Small pieces count by
/// themselves: rails share them evenly, and each takes several with one ring of its doorbell.
struct TurnShare {
  std::size_t posts = 0;
  std::uint64_t bytes = 0;
};
TurnShare share_of_turn(std::uint64_t bytes, std::uint64_t pieces, std::size_t takers,
                        std::uint64_t chunk, std::size_t most);

}  // namespace weft::core
