// One transfer from its submission to its end.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include <weft/transfer.hpp>

#include "base/sync.hpp"
#include "transfer/chunk_table.hpp"
#include "transfer/host.hpp"
#include "transfer/inline_copied.hpp"
#include "transfer/submission.hpp"
#include "transfer/submitted.hpp"

namespace weft::core {

/// Shared by the rails that carry it and the application, which may do so too while it waits.
/// Chunks that were taken are outstanding until they are completed, failed or given back; the
/// transfer keeps itself alive while there are any. From any thread.
class TransferState final : public Submitted, public std::enable_shared_from_this<TransferState> {
 public:
  TransferState(Submission submission, TransferHost& host);
  ~TransferState() override { TransferState::see(); }

  // For the rails that carry it: in transfer_chunks.cpp.
  static constexpr std::uint64_t all_bytes = std::numeric_limits<std::uint64_t>::max();
  /// Takes up to `into.size()` chunks of at most `limit` bytes, and `all` bytes together, for this
  /// rail. 0: nothing to take now.
  std::size_t take(std::size_t rail, std::span<Chunk> into, std::uint64_t limit,
                   std::uint64_t all = all_bytes, Clock::time_point now = Clock::now());
  /// One chunk, for a thread that waits and copies by way of this rail.
  std::optional<Chunk> take_one(std::size_t rail, std::uint64_t limit);
  /// Whether there are chunks to be taken by this rail, or proofs, as things are.
  bool has_more(std::size_t rail) const;
  /// Whether there are chunks to be taken.
  bool has_chunks() const;
  /// The kind of proof that this rail may carry now; empty if there is none.
  std::optional<Chunk::Kind> owed_proof(std::size_t rail) const;
  /// Takes one of that kind; false if another rail was faster.
  bool take_proof(std::size_t rail, Chunk::Kind kind, Chunk& into);
  /// Returns what this rail is to carry next, without a turn: the proof that a read counts.
  std::optional<Chunk> completed(std::size_t rail, const Chunk& chunk);
  /// The chunks were certainly not carried out, or may be carried out again, by any rail; a proof
  /// by its own.
  void give_back(std::span<const Chunk> chunks);
  void give_back(const Chunk& chunk) { give_back({&chunk, 1}); }
  /// The chunk failed, and with it the transfer.
  void failed(const Chunk& chunk, Error error);
  /// It has ended, or was asked to: nothing of it shall go out any more.
  bool stopped() const;
  /// The rail can't carry it. When the last one leaves, another takes over; if there is none, the
  /// transfer fails. Where rails reach only parts of it, it fails once bytes are left that none of
  /// those that stay may carry.
  void rail_leaves(std::size_t rail, const Error& why);
  /// The rail could carry it, but others may be faster: false if there is no other rail that may
  /// carry all of it.
  bool rail_steps_back(std::size_t rail);
  /// The rails that may still carry it, and those that have left a proof which only they can carry.
  std::vector<std::size_t> carriers() const;

  // For the engine: in transfer_state.cpp.
  /// How much each rail takes of it.
  struct Parts {
    std::uint64_t most = all_bytes;  ///< At a time.
    bool even = false;               ///< Its end waits for these rails alone: see even_chunk().
  };
  /// Makes the transfer keep itself alive, with these rails to carry it. Ends it at once if it has
  /// no bytes.
  void start(std::span<const std::size_t> rails, Parts parts) WEFT_NO_THREAD_SAFETY_ANALYSIS;
  void start(std::span<const std::size_t> rails) { start(rails, Parts()); }
  void start(std::initializer_list<std::size_t> rails) { start(std::span(rails)); }
  /// Before it is offered to rails: these bytes are carried, by one of its rails. Once all are, and
  /// a read proven, what follows the bytes begins.
  void copied_inline(std::size_t rail, const InlineCopied& copied);
  /// Whether there is an event to wait for.
  bool waits() const noexcept { return submission_.after_gpu_event != nullptr; }
  /// Begins if the event has happened. False if it has to be looked at again.
  bool look_at_event();
  /// Its memory is looked at from here on until let_go(). False if that is forbidden by now.
  bool hold();
  void let_go();
  /// The bytes are the same at both ends, or why that can't be said.
  void verified(const std::optional<Error>& error);
  /// The signal went out, or why not.
  void signal_ended(const std::optional<Error>& error);
  /// Ends it early; without effect after its end. Chunks that are out stay outstanding.
  void end_early(State state, Error error);
  /// When it ends whatever it has come to: its deadline, or that of its grant.
  Clock::time_point due() const noexcept {
    return std::min(submission_.deadline, prepared().remote->expires());
  }
  /// Returns when to look again, if it has not ended: its grant was renewed, or its signal is
  /// raised, so that it needs its grant no more.
  std::optional<Clock::time_point> end_overdue(Clock::time_point now);
  /// Its grant has ended; without effect once the transfer needs it no more.
  void end_with_lease(Error error);
  /// The engine has copied bytes of it, or had them copied.
  void count_copied(std::uint64_t bytes) noexcept {
    copied_.fetch_add(bytes, std::memory_order_relaxed);
  }
  std::uint64_t copied() const noexcept { return copied_.load(std::memory_order_relaxed); }
  /// As given to start().
  std::span<const std::uint32_t> rails() const noexcept { return rails_; }
  /// How many threads may take chunks of it.
  std::size_t takers() const noexcept {
    return rails_.size() + (submission_.waiter_takes_part ? 1 : 0);
  }
  /// How large its chunks should be, of at most `limit` bytes. Where parts are even, and one of a
  /// single piece takes two chunks, half of it, in whole pages: the third of three chunks would be
  /// one rail's alone. Where each takes three chunks, even ones were 5 to 10 % slower over shm.
  std::uint64_t even_chunk(std::uint64_t limit) const noexcept;
  const Submission& submission() const noexcept { return submission_; }
  PeerState& peer() const noexcept { return *submission_.prepared->remote->peer(); }

  // For the application and the ledger: in transfer_report.cpp.
  const PreparedState& prepared() const noexcept override { return *submission_.prepared; }
  State state() const noexcept override { return state_.load(std::memory_order_acquire); }
  void see() noexcept override { prepared().see(submission_.submitted); }
  /// From now on it has it.
  void at_hand() noexcept { at_hand_ = Clock::now(); }
  void take_part(Deadline deadline) override { host_.take_part(*this, deadline); }
  bool quiescent() const override;
  void cancel() override;
  Report report() const override;
  /// The same but for what only the engine knows: copies, and amplification.
  Report own_report() const;
  /// What is counted of each transfer.
  struct Tally {
    State state = State::active;
    Clock::time_point ended_at;
    Nanoseconds elapsed{}, queued{};
    std::uint64_t bytes_done = 0, runs = 0, retries = 0;
  };
  /// Once it has ended: as it was then.
  const Tally& tally() const noexcept { return tally_; }
  std::uint64_t ranges() const noexcept {
    return submission_.picks ? submission_.picks->size() : prepared().pieces.size();
  }
  /// From the submission to the end, or to now.
  Nanoseconds elapsed() const { return end_or_now() - submission_.submitted; }
  std::vector<Placed> placed() const override;
  std::optional<Error> error() const override;
  bool wait_ended(Deadline deadline) const override { return wait(Phase::ended, deadline); }
  bool wait_quiescent(Deadline deadline) const override { return wait(Phase::settled, deadline); }
  /// It ended, and its signal was not sent nor will be.
  bool signal_withheld() const;

 private:
  /// Come in this order. A transfer may skip some, and end in any of them but `looking`.
  enum class Phase : std::uint8_t {
    waiting,     // for its event
    looking,     // at its event, just now
    carrying,    // its bytes
    proving,     // that the bytes arrived, or that the lease held when they were read
    revealing,   // what was read: the device is being flushed
    verifying,   // that the bytes are the same at both ends
    verified,    // they are, but the memory is still looked at
    signalling,  // its signal is on its way
    ending,      // it has ended, and this is being told; chunks are out
    closing,     // likewise, but none is out
    ended,       // its end is told; chunks are out
    settled,     // likewise, but none is out
  };
  /// Work that follows a change of the transfer, and is done without its lock.
  enum class Act : std::uint8_t { nothing, offer, reveal, verify, signal, tell, settle };
  /// How it ends. `disproven`: its bytes may not be in their place, though they have come home.
  struct Ending {
    State state = State::done;
    std::optional<Error> error = std::nullopt;
    bool disproven = false;
  };
  /// Whether a rail carries it.
  enum class Part : std::uint8_t { none, carries, left };
  struct Share {
    std::uint64_t operations = 0, bytes = 0;
  };
  using Proofs = std::pmr::vector<Chunk>;

  // Life, in transfer_state.cpp.
  /// Runs `change` with the lock held, and without it the act that `change` returns. All that
  /// moves the transfer from phase to phase goes through here.
  template <typename Change>
  void change(Change&& change) WEFT_EXCLUDES(mutex_);
  void perform(Act act, const std::shared_ptr<TransferState>& self) WEFT_EXCLUDES(mutex_);
  /// Enters every phase that can begin now.
  Act advance() WEFT_REQUIRES(mutex_);
  Act begin_check() WEFT_REQUIRES(mutex_);
  Act finish() WEFT_REQUIRES(mutex_);
  Act end(Ending ending) WEFT_REQUIRES(mutex_);
  Act end_cancelled() WEFT_REQUIRES(mutex_);
  void reveal() WEFT_EXCLUDES(mutex_);
  void tell() WEFT_EXCLUDES(mutex_);
  void told() WEFT_EXCLUDES(mutex_);
  void settle() WEFT_EXCLUDES(mutex_);
  bool wait(Phase phase, Deadline deadline) const WEFT_EXCLUDES(mutex_);
  Phase phase() const noexcept { return phase_.load(std::memory_order_acquire); }
  void enter(Phase phase) WEFT_REQUIRES(mutex_) { phase_.store(phase, std::memory_order_release); }
  bool over() const noexcept { return phase() >= Phase::ending; }
  bool hides_arrivals() const;
  bool placed_for_sure() const WEFT_REQUIRES(mutex_);

  // Chunks, in transfer_chunks.cpp.
  bool may_take(Clock::time_point now) const WEFT_REQUIRES(mutex_);
  void went_out(std::size_t count, Clock::time_point now) WEFT_REQUIRES(mutex_);
  void plan_proofs() WEFT_REQUIRES(mutex_);
  void plan_contact() WEFT_REQUIRES(mutex_);
  Act leave_contact(std::size_t rail, const Error& why) WEFT_REQUIRES(mutex_);
  std::size_t proofs_of(std::size_t rail) const;
  Proofs::const_iterator find_proof(std::size_t rail) const WEFT_REQUIRES(mutex_);
  Chunk take_proof(Proofs::const_iterator owed) WEFT_REQUIRES(mutex_);
  bool hand_on(std::size_t rail) WEFT_REQUIRES(mutex_);
  bool leave_rest(std::size_t rail, const Error& why) WEFT_REQUIRES(mutex_);
  std::uint64_t whole_blocks(std::uint64_t limit) const noexcept;
  bool stranded() const WEFT_REQUIRES(mutex_);
  std::string why_stuck() const;

  void await_first(Deadline deadline) noexcept override {
    prepared().await(submission_.bytes, at_hand_, deadline);
  }
  Clock::time_point end_or_now() const {
    return Submitted::ended() ? tally_.ended_at : Clock::now();
  }
  Nanoseconds queued_until(Clock::time_point end) const WEFT_REQUIRES(mutex_) {
    return (first_out_ == never ? end : first_out_) - submission_.submitted;
  }

  // The lists of a small transfer over up to four rails lie in here, so that it is one allocation;
  // of no more than 1 KiB, which allocators serve fastest.
  std::array<std::byte, 152> room_;
  std::pmr::monotonic_buffer_resource lists_{room_.data(), room_.size(),
                                             std::pmr::new_delete_resource()};

  // Fixed at the start, but for the memory in use and on_end, which go when it ends.
  Submission submission_;
  TransferHost& host_;
  Parts parts_;
  std::pmr::vector<std::uint32_t> rails_{&lists_};
  Clock::time_point at_hand_{};  // for the application, where it is large

  mutable Mutex mutex_;
  mutable Condition changed_;
  mutable std::atomic<std::uint32_t> waiters_{0};
  // Written with the lock held, but for the step from `closing` to `settled`.
  std::atomic<Phase> phase_;
  bool cancel_asked_ WEFT_GUARDED_BY(mutex_) = false;
  // Once its event is looked at; later, of parts, once bytes are left that no rail carries: since
  // the last that left it.
  std::unique_ptr<Ending> ends_with_ WEFT_GUARDED_BY(mutex_);
  std::uint64_t outstanding_ WEFT_GUARDED_BY(mutex_) = 0;  // chunks, proofs, and holds
  ChunkTable chunks_ WEFT_GUARDED_BY(mutex_);
  Proofs proofs_ WEFT_GUARDED_BY(mutex_){&lists_};          // owed, and not taken
  std::pmr::vector<Share> shares_ WEFT_GUARDED_BY(mutex_);  // by rail, like the next
  std::pmr::vector<Part> carriers_ WEFT_GUARDED_BY(mutex_);
  std::uint64_t operations_ WEFT_GUARDED_BY(mutex_) = 0;
  std::uint64_t bytes_done_ WEFT_GUARDED_BY(mutex_) = 0;
  std::uint64_t retries_ WEFT_GUARDED_BY(mutex_) = 0;
  std::optional<std::uint32_t> stuck_ WEFT_GUARDED_BY(mutex_);  // the last rail without room
  static constexpr Clock::time_point never{};
  Clock::time_point first_out_ WEFT_GUARDED_BY(mutex_) = never;
  Clock::time_point last_home_ WEFT_GUARDED_BY(mutex_) = never;
  std::atomic<std::uint64_t> copied_{0};

  // Written once, by end(); for others once state() says so.
  Tally tally_;
  std::unique_ptr<const Error> error_;  // null: none
  Phase ended_in_ = Phase::waiting;
  bool placed_for_sure_ = false;  // the bytes of chunks that were completed
  std::atomic<State> state_{State::active};

  std::shared_ptr<TransferState> self_;  // until it is settled
};

template <typename Change>
void TransferState::change(Change&& change) {
  Act act = Act::nothing;
  std::shared_ptr<TransferState> self;  // Others may end it as soon as the lock is free,
  {
    const Lock lock(mutex_);
    act = change();
    // but not where it is at its end, which only this thread tells.
    if (act != Act::nothing && !over()) self = shared_from_this();
  }
  if (act != Act::nothing) perform(act, self);
}

}  // namespace weft::core
