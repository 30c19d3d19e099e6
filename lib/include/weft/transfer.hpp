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
#include <weft/memory.hpp>
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

/// Pages of a paged cache: piece i is page `local_pages[i]` here and `remote_pages[i]` there. Page
/// p starts at `base + p * stride`. Both lists have the same length.
struct Paged {
  std::uint64_t page_bytes = 0;
  std::uint64_t local_base = 0;
  std::uint64_t local_stride = 0;
  std::uint64_t remote_base = 0;
  std::uint64_t remote_stride = 0;
  std::span<const std::uint32_t> local_pages;
  std::span<const std::uint32_t> remote_pages;
};

/// A list of pieces whose ranges and rights were checked once, to be submitted any number of times,
/// whole or by index. Holds a copy of the list. Cheap to copy; safe to use from several threads.
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

/// A counted notification at the target, raised once the data is visible there.
struct Signal {
  std::uint64_t id = 0;  ///< Chosen by the application; the peer expects the same number.
  Bytes bytes = {};      ///< Carried along; at most Config::max_message bytes; copied at the call.
};

/// How a transfer stands. The last four are final, and a transfer reaches exactly one of them.
enum class State : std::uint8_t { active, done, failed, cancelled, timed_out };

WEFT_API std::string_view to_string(State state) noexcept;

/// Which kind of transport carries the bytes.
enum class TransportKind : std::uint8_t {
  automatic,    ///< By a GPU's copies where that can be done, one-sided where both sides' memory
                ///< can be reached by a NIC, else the bounce-buffer transport.
  one_sided,    ///< RMA straight between the two segments.
  bounce,       ///< Messages through bounce buffers: two more copies, for memory no NIC can reach.
  device_copy,  ///< By the copy engine of this side's GPU from or to the GPU memory of another
                ///< process of the host, which lends it (Config::share_gpu_memory).
};

/// Which transfers to a peer go before which others. Within one class whoever has the earliest
/// deadline goes first, and transfers of one deadline take turns. No class starves: where all want
/// to go, each has a sixteenth of the bytes at least. What has been posted already is not called
/// back; class latency has a little room of its own beside it (Config::window).
enum class Priority : std::int8_t {
  latency = -1,  ///< Somebody waits for it: a few pages that the next token needs.
  normal = 0,
  bulk = 1,  ///< Whenever there is nothing better to do: prefetching, eviction.
};

/// What a callback learns.
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
  /// Called once at the end, on a thread of the engine's or inside the call that ends it (one that
  /// makes progress, a wait for any transfer, submit(), cancel(), disconnect(), close()): it must
  /// be short and must not wait. Afterwards it is let go, with all that it holds.
  std::function<void(const Ended&)> on_end = {};
  TransportKind transport = TransportKind::automatic;
  Priority priority = Priority::normal;
  /// What the path must be like, besides what Config asks for.
  std::optional<Policy> policy = {};
  /// Where Config::max_transfers are under way already, how long submit() waits until one of them
  /// has ended (making progress meanwhile, if that is the caller's to do); empty: it does not wait.
  /// In a callback it never waits.
  std::optional<Deadline> wait_for_room = {};
  /// Compare the bytes at both ends once they are placed, before the transfer ends and before its
  /// signal goes out: source and target compute their XXH3 (64 bits), each out of its own memory.
  /// If they differ the transfer fails as `corrupt` and the signal is withheld. Nobody may change
  /// them meanwhile, at either end. A GPU's memory is copied to its host for that. `unsupported` at
  /// submit() where the peer is of a version that does not check.
  bool verify = false;
  /// A CUDA event (CUevent or cudaEvent_t) that was recorded before this call: nothing is read or
  /// written before what it was recorded behind has ended, and nobody has to wait for that. It must
  /// be neither recorded anew nor destroyed before the transfer has ended. Its failure, and the
  /// transfer's deadline meanwhile, end the transfer. Null: at once.
  void* after_cuda_event = nullptr;
};

/// What a transfer did so far, or in all once it has ended.
struct Report {
  State state = State::active;
  std::optional<Error> error;
  std::uint64_t bytes = 0;       ///< Asked for.
  std::uint64_t bytes_done = 0;  ///< Completed.
  std::uint64_t ranges = 0;      ///< Pieces asked for.
  std::uint64_t runs = 0;        ///< Pieces after coalescing neighbours.
  std::uint64_t operations = 0;  ///< Chunks handed to transports.
  TransportKind transport = TransportKind::one_sided;
  /// Which rails carried it.
  struct RailShare {
    std::string rail;
    std::uint64_t operations = 0;
    std::uint64_t bytes = 0;
  };
  std::vector<RailShare> rails;
  /// A copy of its bytes from memory to memory: one that a NIC makes by reading or writing is none.
  struct Copied {
    enum class Known : std::uint8_t {
      counted,   ///< By this engine, which made it or had it made.
      declared,  ///< By what the provider says of itself, times the bytes that were carried.
      unknown,   ///< It may have been made; nobody tells how often. `bytes` is 0.
    };
    Known known = Known::unknown;
    Mover by = Mover::cpu;
    bool at_peer = false;  ///< On the peer's side; else on this one, or between the two.
    std::uint64_t bytes = 0;
  };
  std::vector<Copied> copied;
  /// Bytes that were copied, on both sides, for each that was carried, as far as known; 0 if none
  /// was carried.
  double amplification = 0;
  std::uint64_t retries = 0;  ///< Chunks that came back, and were offered once more.
  Nanoseconds queued{};       ///< From submission until the first chunk was taken.
  Nanoseconds carried{};      ///< From then until the last one was home, as far as it got; then
                              ///< come proofs, the check and the signal, until the end.
  std::string fallback;       ///< Why slower ways were taken (Peer::fallback); empty if none was.
  Nanoseconds elapsed{};      ///< From submission to the end, or to now.
};

/// What became of one piece.
enum class Placed : std::uint8_t {
  all,      ///< Every byte is in its place, for sure.
  none,     ///< Not one byte was moved.
  unknown,  ///< Some bytes may be in their place, or still come while it is not quiescent.
};

/// One batch of pieces on its way. Destroying the handle neither waits nor cancels.
class WEFT_API Transfer {
 public:
  Transfer(Transfer&&) noexcept;
  Transfer& operator=(Transfer&&) noexcept;
  ~Transfer();

  /// As soon as it is not active any more there is room for another (Config::max_transfers).
  State state() const noexcept;
  /// True when nothing can touch the local memory on behalf of this transfer any more. A transfer
  /// that has ended may still be not quiescent, for example after its deadline passed.
  bool quiescent() const noexcept;
  /// Waits for the end. Ok when done; otherwise the error that ended it, or `timed_out` if
  /// `deadline` passes first, in which case the transfer goes on. May carry some of it and of
  /// others meanwhile (Config::inline_copy_bytes), and so call on_end of any.
  Result<void> wait(Deadline deadline);
  /// As wait(), then until quiescent().
  Result<void> wait_quiescent(Deadline deadline);
  /// Asks for an early end: pieces not yet posted stay unposted, posted ones drain, then the
  /// transfer ends as `cancelled` (or `done`, if nothing was left to stop). Never blocks.
  void cancel();
  Report report() const;
  /// What became of each piece, in the order of the submission, once the transfer has ended (before
  /// that none of them is known to be placed). After an end other than `done` the pieces that are
  /// placed need not be sent again, and those that were read and are placed may be used, unless the
  /// transfer ended as `stale`: then none is. May change from `unknown` to `all` until quiescent().
  std::vector<Placed> placed() const;

 private:
  friend class Engine;
  explicit Transfer(std::shared_ptr<core::Submitted> state);
  std::shared_ptr<core::Submitted> state_;
};

}  // namespace weft
