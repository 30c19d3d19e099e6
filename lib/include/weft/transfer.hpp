/// @file
/// Moving bytes between local segments and granted remote memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <weft/capability.hpp>
#include <weft/deadline.hpp>
#include <weft/error.hpp>
#include <weft/export.hpp>
#include <weft/place.hpp>
#include <weft/policy.hpp>

namespace weft {

namespace core {
class PreparedState;
class Submitted;
}  // namespace core

enum class Direction : std::uint8_t {
  write,  ///< From the local segment into the peer's.
  read,   ///< From the peer's segment into the local one.
};

/// One piece of a transfer: `length` bytes at offset `local` of the local segment and at offset
/// `remote` of the peer's. Pairs of one transfer must not overlap on the side that is written.
struct Pair {
  std::uint64_t local = 0;
  std::uint64_t remote = 0;
  std::uint64_t length = 0;
};

/// `count` pieces of equal length at constant distances, e.g. the same rows of two matrices.
struct Strided {
  Pair first;
  std::uint64_t count = 0;
  std::uint64_t local_stride = 0;  ///< Bytes between the starts of neighbouring pieces.
  std::uint64_t remote_stride = 0;
};

/// Pages of a paged cache: piece i is page `local_pages[i]` here and page `remote_pages[i]` there.
/// Page p starts at `base + p * stride`. Both lists have the same length.
struct Paged {
  std::uint64_t page_bytes = 0;
  std::uint64_t local_base = 0;
  std::uint64_t local_stride = 0;
  std::uint64_t remote_base = 0;
  std::uint64_t remote_stride = 0;
  std::span<const std::uint32_t> local_pages;
  std::span<const std::uint32_t> remote_pages;
};

/// A list of pieces whose ranges and rights are checked. It may be submitted any number of times,
/// whole or by index. Holds a copy of the list. Cheap to copy. Several threads may use it.
class WEFT_API Prepared {
 public:
  Prepared(const Prepared&) = default;  // moving copies too: a handle is never empty
  Prepared& operator=(const Prepared&) = default;

  /// Number of pieces.
  std::size_t size() const noexcept;
  /// Bytes in all pieces together.
  std::uint64_t bytes() const noexcept;

 private:
  friend class Engine;
  explicit Prepared(std::shared_ptr<const core::PreparedState> state);
  std::shared_ptr<const core::PreparedState> state_;
};

/// A counted notification at the target, raised after the data is visible there.
struct Signal {
  std::uint64_t id = 0;  ///< Chosen by the application; the peer expects the same number.
  Bytes bytes = {};      ///< Payload, at most Config::max_message bytes. Copied at the call.
};

/// The state of a transfer. It ends in exactly one of the last four.
enum class State : std::uint8_t { active, done, failed, cancelled, timed_out };

WEFT_API std::string_view to_string(State state) noexcept;

/// The kind of transport that carries the bytes.
enum class TransportKind : std::uint8_t {
  automatic,  ///< A GPU's copies where possible; else one-sided, if rails reach the memory of both
              ///< sides; else bounce buffers.
  one_sided,  ///< RMA straight between the two segments.
  bounce,     ///< The bounce-buffer transport: messages, and two more copies of each byte. For
              ///< memory that no NIC reaches.
  device_copy,  ///< The copy engine of this side's GPU, to or from GPU memory that another process
                ///< of the host lends (Config::share_gpu_memory).
};

/// The order of transfers to one peer. Within a class the transfer with the earliest deadline goes
/// first; transfers with the same deadline take turns. No class starves: each class that waits gets
/// at least a sixteenth of the bytes. Posted operations are not called back; class latency has some
/// room of its own beside them (Config::window).
enum class Priority : std::int8_t {
  latency = -1,  ///< A request waits for it, such as pages that the next token needs.
  normal = 0,
  bulk = 1,  ///< When nothing else is waiting: prefetching, eviction.
};

/// The end of a transfer, as a callback gets it.
struct Ended {
  State state = State::active;
  std::uint64_t cookie = 0;
  const Error* error = nullptr;  ///< Null when done. Valid during the call only.
};

struct TransferOptions {
  /// When to give up; Config::default_timeout from the submission if empty.
  std::optional<Deadline> deadline = {};
  /// Raised at the target after all bytes are visible there.
  std::optional<Signal> signal = {};
  /// Returned in the callback and the event.
  std::uint64_t cookie = 0;
  /// Also put an Event into the engine's queue at the end.
  bool event = false;
  /// Called once at the end, on an engine thread or inside the call that ends the transfer
  /// (progress, a wait for any transfer, submit(), cancel(), disconnect(), close()). It must be
  /// short and must not wait. It is destroyed afterwards, with all that it holds.
  std::function<void(const Ended&)> on_end = {};
  TransportKind transport = TransportKind::automatic;
  Priority priority = Priority::normal;
  /// Must hold besides the policies in Config.
  std::optional<Policy> policy = {};
  /// How long submit() waits for room if Config::max_transfers are under way. With manual progress
  /// it makes progress meanwhile. Empty: it does not wait. In a callback it never waits.
  std::optional<Deadline> wait_for_room = {};
  /// Compares the bytes at both ends before the transfer ends and before its signal goes out.
  /// Source and target each compute the XXH3 (64 bits) of their own memory. If they differ, the
  /// transfer fails as `corrupt` and the signal is withheld. Neither end may change the bytes
  /// meanwhile. GPU memory is copied to the host for it.
  bool verify = false;
  /// A CUDA event (CUevent or cudaEvent_t) that was recorded before this call. The transfer begins
  /// when the work before the event has ended; no thread waits for that. The event must be neither
  /// recorded again nor destroyed before the transfer has ended. If the event fails, or the
  /// deadline passes first, the transfer ends. Null: the transfer begins immediately.
  void* after_gpu_event = nullptr;
};

/// The work of a transfer so far, or in all once it has ended.
struct Report {
  State state = State::active;
  std::optional<Error> error;
  std::uint64_t bytes = 0;       ///< Requested.
  std::uint64_t bytes_done = 0;  ///< Completed.
  std::uint64_t ranges = 0;      ///< Requested pieces.
  std::uint64_t runs = 0;        ///< Pieces after coalescing of neighbours.
  std::uint64_t operations = 0;  ///< Chunks handed to transports.
  TransportKind transport = TransportKind::one_sided;
  /// The share of each rail.
  struct RailShare {
    std::string rail;
    std::uint64_t operations = 0;
    std::uint64_t bytes = 0;
  };
  std::vector<RailShare> rails;
  /// A copy of bytes from memory to memory. What a NIC reads or writes is not a copy.
  struct Copied {
    enum class Known : std::uint8_t {
      counted,   ///< This engine made the copy, or had it made.
      declared,  ///< The provider says that it copies; times the bytes that were carried.
      unknown,   ///< It may have been made; how often is unknown. `bytes` is 0.
    };
    Known known = Known::unknown;
    Mover by = Mover::cpu;
    bool at_peer = false;  ///< On the peer's side; else on this side, or between the two.
    std::uint64_t bytes = 0;
  };
  std::vector<Copied> copied;
  /// Copied bytes on both sides for each byte that was carried, as far as known; 0 if none was.
  double amplification = 0;
  std::uint64_t retries = 0;  ///< Chunks that failed and were offered again.
  Nanoseconds queued{};       ///< From submission until a rail took the first chunk.
  Nanoseconds carried{};      ///< From then until the last chunk completed. Proofs, the check and
                              ///< the signal follow, until the end.
  std::string fallback;       ///< Why slower rails were used (Peer::fallback); empty if none were.
  Nanoseconds elapsed{};      ///< From submission to the end, or to now.
};

WEFT_API std::string_view to_string(Report::Copied::Known known) noexcept;

/// The outcome of one piece.
enum class Placed : std::uint8_t {
  all,      ///< Every byte is in its place.
  none,     ///< No byte was moved.
  unknown,  ///< Some bytes may be in place, or may still arrive until the transfer is quiescent.
};

/// One batch of pieces. Destroying the handle neither waits nor cancels.
class WEFT_API Transfer {
 public:
  Transfer(Transfer&&) noexcept;
  Transfer& operator=(Transfer&&) noexcept;
  ~Transfer();

  /// Once it is not active, there is room for another transfer (Config::max_transfers).
  State state() const noexcept;
  /// True when nothing touches the local memory for this transfer any more. A transfer that has
  /// ended may still not be quiescent, for example after its deadline.
  bool quiescent() const noexcept;
  /// Waits for the end. Succeeds if the transfer is done; otherwise returns the error that ended
  /// it. Returns `timed_out` if `deadline` passes first; then the transfer goes on. The caller
  /// makes progress meanwhile, with this and other transfers, and so may call on_end of any: it
  /// polls if it waits again and again with a deadline that has passed. Progress threads leave the
  /// work to it then, and go on a millisecond after it last did.
  Result<void> wait(Deadline deadline);
  /// As wait(), then until quiescent().
  Result<void> wait_quiescent(Deadline deadline);
  /// Asks for an early end. Unposted pieces are dropped, posted ones complete; then the
  /// transfer ends as `cancelled`, or as `done` if all had been posted. Never blocks.
  void cancel();
  Report report() const;
  /// The outcome of each piece, in the order of submission, once the transfer has ended; before
  /// that all are `unknown`. After an end other than `done`, pieces that are placed need not be
  /// sent again, and placed pieces of a read may be used. If the transfer ended as `stale`, no
  /// piece is placed. May change from `unknown` to `all` until quiescent().
  std::vector<Placed> placed() const;

 private:
  friend class Engine;
  explicit Transfer(std::shared_ptr<core::Submitted> state);
  std::shared_ptr<core::Submitted> state_;
};

}  // namespace weft
