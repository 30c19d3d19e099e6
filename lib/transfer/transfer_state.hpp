// One transfer from its submission to its end.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include <weft/transfer.hpp>

#include "transfer/copied_at_once.hpp"
#include "transfer/cursor.hpp"
#include "transfer/host.hpp"
#include "transfer/outcome.hpp"
#include "transfer/prepared.hpp"
#include "transfer/submitted.hpp"

namespace weft::core {

struct Submission {
  explicit Submission(Clock::time_point now) : submitted(now) {}

  std::shared_ptr<const PreparedState> prepared;
  std::optional<std::vector<std::uint32_t>> picks;  // as Picks
  Picks picked() const { return picks ? Picks(*picks) : std::nullopt; }
  std::uint64_t bytes = 0;
  // Of the options what is needed later: there may be very many of these.
  void take(TransferOptions&& options);
  std::function<void(const Ended&)> on_end;
  std::uint64_t cookie = 0;
  void* after_cuda_event = nullptr;
  std::optional<std::uint64_t> signal;  // its number
  Blob signal_bytes;
  Priority priority = Priority::normal;
  bool event = false;
  bool verify = false;
  Clock::time_point submitted;
  Clock::time_point deadline;
  Clock::time_point lease_end = Clock::time_point::max();  // of the grant's time
  bool trusted = false;            // a read that needs no proof of its lease: for measurements only
  bool waiter_takes_part = false;  // in copying it, beside its rail
  TransportKind transport = TransportKind::one_sided;
};

/// Shared by the lanes that carry it and the application, which may do so too while it waits.
/// Chunks that were taken are outstanding until they are completed, failed or given back; the
/// transfer keeps itself alive while there are any.
class TransferState final : public Submitted, public std::enable_shared_from_this<TransferState> {
 public:
  TransferState(Submission submission, TransferHost& host);
  ~TransferState() override { TransferState::see(); }

  // For those who carry it.
  /// Takes up to `into.size()` chunks of at most `limit` bytes, and `all` bytes together. 0:
  /// nothing to take now.
  std::size_t take(std::span<Chunk> into, std::uint64_t limit, std::uint64_t all = all_bytes,
                   Clock::time_point now = Clock::now());
  /// One chunk for somebody who waits: of what was not set aside for the lanes, as long as there is
  /// some.
  std::optional<Chunk> take_waiting(std::uint64_t limit);
  /// Whether there are chunks or proofs to be taken, as things are.
  bool has_more() const;
  /// Whether there are chunks to be taken.
  bool has_chunks() const;
  /// The kind of proof that this rail may carry now; empty if there is none.
  std::optional<Chunk::Kind> owed_proof(std::size_t rail) const;
  /// Takes one of that kind; false if somebody else was faster.
  bool take_proof(std::size_t rail, Chunk::Kind kind, Chunk& into);
  /// What this rail is to carry next, without a turn: the proof that a read counts.
  std::optional<Chunk> completed(std::size_t rail, const Chunk& chunk);
  /// The chunks were certainly not carried out, or may be carried out again: somebody else may; in
  /// the case of a proof, its rail.
  void give_back(std::span<const Chunk> chunks);
  void give_back(const Chunk& chunk) { give_back({&chunk, 1}); }
  /// It has ended, or was asked to: nothing of it shall go out any more.
  bool stopped() const;
  /// The chunk failed, and with it the transfer.
  void failed(const Chunk& chunk, Error error);
  /// A rail's lane can't carry it: another rail is looked for when the last one has left, and the
  /// transfer fails if there is none.
  void lane_leaves(std::size_t rail, const Error& why);
  /// It could, but others may be faster: false if there is no other rail.
  bool lane_steps_back(std::size_t rail);

  // For the engine.
  static constexpr std::uint64_t all_bytes = std::numeric_limits<std::uint64_t>::max();
  /// What each lane takes of it.
  struct Parts {
    std::uint64_t most = all_bytes;  ///< At a time.
    bool even = false;               ///< Its end waits for these lanes alone: see even_chunk().
  };
  /// Makes the transfer keep itself alive, with the lanes of these rails to carry it. Ends it at
  /// once if it has no bytes.
  void start(std::span<const std::size_t> rails, Parts parts);
  void start(std::span<const std::size_t> rails) { start(rails, Parts()); }
  void start(std::initializer_list<std::size_t> rails) { start(std::span(rails)); }
  /// Before it is offered to lanes: what the thread that submits it has copied by one of its rails
  /// is carried. Once all is, and a read proven, what follows the bytes begins.
  void copied_at_once(std::size_t rail, const CopiedAtOnce& copied);
  /// Before it is offered to a lane, beside which those who wait copy: sets the first half of its
  /// bytes aside for the lane, so that each finds the same bytes in its own cache when they are
  /// moved again. Who is done with its half takes of the other's.
  void halve();
  /// Whether there is an event to wait for.
  bool waits() const noexcept { return submission_.after_cuda_event != nullptr; }
  /// Begins if the event has happened. False if it has to be looked at again.
  bool look_at_event();
  /// The engine has copied bytes of it, or had them copied. From any thread.
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
  /// How large its chunks should be, of at most `limit` bytes: where parts are even, and one of a
  /// single piece takes two chunks, half of it, in whole pages. The third of three chunks would be
  /// one lane's alone. Where each takes three chunks, even ones were 5 to 10 % slower
  /// over shm.
  std::uint64_t even_chunk(std::uint64_t limit) const noexcept;
  /// The rails whose lanes may still carry it, and those that others were faster than, for what
  /// they alone can prove.
  std::vector<std::size_t> lanes() const;
  /// Ends it early; without effect after its end. Chunks that are out stay outstanding.
  void end_early(State state, Error error);
  /// The bytes are the same at both ends, or why that can't be said.
  void verified(const std::optional<Error>& error);
  /// Somebody looks at its memory from here on until let_go(): false if nobody shall any more.
  bool hold();
  void let_go();
  /// The signal went out, or why not.
  void signal_ended(const std::optional<Error>& error);
  /// When it ends whatever it has come to: its deadline, or that of its grant.
  Clock::time_point due() const noexcept {
    return std::min(submission_.deadline, submission_.lease_end);
  }
  /// Returns when to look again, if it has not ended: once its signal is raised it needs its grant
  /// no more.
  std::optional<Clock::time_point> end_overdue(Clock::time_point now);
  /// Its grant has ended; without effect once it needs it no more.
  void end_with_lease(Error error);

  // For the application.
  void take_part(Deadline deadline) override { host_.take_part(*this, deadline); }
  State state() const noexcept override { return state_.load(std::memory_order_acquire); }
  void see() noexcept override { prepared().see(submission_.submitted); }
  /// From now on it has it.
  void at_hand() noexcept { at_hand_ = Clock::now(); }
  bool quiescent() const override;
  void cancel() override;
  Report report() const override;
  /// The same but for what only the engine knows: copies, and amplification.
  Report own_report() const;
  /// What is counted of each transfer: as it was when it ended.
  struct Tally {
    Clock::time_point ended_at;
    Nanoseconds elapsed{}, queued{};
    std::uint64_t bytes_done = 0, runs = 0, retries = 0;
  };
  /// Once it has ended.
  const Tally& tally() const noexcept { return tally_; }
  std::uint64_t ranges() const noexcept {
    return submission_.picks ? submission_.picks->size() : prepared().pieces.size();
  }
  /// From the submission to the end, or to now.
  Nanoseconds elapsed() const;
  std::vector<Placed> placed() const override;
  std::optional<Error> error() const override;
  bool wait_ended(Deadline deadline) const override;
  bool wait_quiescent(Deadline deadline) const override;

  /// It ended, and its signal was not sent nor will be.
  bool signal_withheld() const;

  const Submission& submission() const noexcept { return submission_; }
  const PreparedState& prepared() const noexcept override { return *submission_.prepared; }
  PeerState& peer() const noexcept { return *submission_.prepared->remote->peer(); }

 private:
  void await_first(Deadline deadline) noexcept override {
    prepared().await(submission_.bytes, at_hand_, deadline);
  }

  enum class Next { nothing, prove, make_visible, verify, raise_signal, end };
  bool carried() const { return cursor_.exhausted() && cut_.empty(); }
  bool proven() const {
    return proofs_planned_ && proofs_.empty() && proofs_out_ == 0 && !disproven_;
  }
  /// With the lock held.
  Clock::time_point end_or_now() const { return ended() ? tally_.ended_at : Clock::now(); }
  Nanoseconds queued_until(Clock::time_point end) const {
    return (first_out_ == never ? end : first_out_) - submission_.submitted;
  }
  bool is_over(Clock::time_point now) const;
  void taken(std::span<Chunk> chunks, Clock::time_point now);
  void plan_proofs();
  bool needs_no_proof() const;
  using Proofs = std::pmr::vector<Chunk>;
  struct Losses {
    std::vector<Span> doubtful;     // failed, and carried by nobody
    std::vector<std::size_t> left;  // lanes that could not carry it
  };
  Losses& losses();
  bool hand_on(std::size_t rail);
  Proofs::const_iterator find_proof(std::size_t rail) const;
  Chunk take_proof(Proofs::const_iterator owed);
  std::optional<Chunk> next_chunk(std::uint64_t limit);
  void went_out(Chunk& chunk);
  void came_home(const Chunk& chunk);
  /// What follows when chunks have come home. With the lock held.
  Next next_step();
  void carry_out(Next next, std::unique_lock<std::mutex> lock);
  void reveal(std::unique_lock<std::mutex> lock);
  void end_locked(State state, std::optional<Error> error, std::unique_lock<std::mutex> lock);
  void settle(std::unique_lock<std::mutex> lock);

  struct Share {
    std::uint64_t operations = 0, bytes = 0;
  };
  struct Ending {
    State state;
    std::optional<Error> error;
  };

  Submission submission_;  // const but for on_end, which may hold what holds this
  TransferHost& host_;

  // The lists of a small transfer over up to four rails lie in here, so that it is one allocation;
  // of no more than 1 KiB, which allocators serve fastest.
  std::array<std::byte, 160> room_;
  std::pmr::monotonic_buffer_resource lists_{room_.data(), room_.size(),
                                             std::pmr::new_delete_resource()};

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::atomic<State> state_{State::active};
  Clock::time_point at_hand_{};  // for the application, where it is large
  Cursor cursor_;
  std::vector<Chunk> cut_;  // and not out: came back, or set aside for the lanes
  Parts parts_;             // fixed at the start
  Proofs proofs_{&lists_};  // owed once all chunks are home, and not taken
  std::uint64_t proofs_out_ = 0;
  bool proofs_planned_ = false;
  bool disproven_ = false;          // one has failed
  bool arrived_is_placed_ = false;  // known from the end on
  std::uint64_t outstanding_ = 0;
  std::pmr::vector<Span> out_{&lists_};  // by slot; of length 0 where it is free
  static constexpr std::uint32_t no_slot = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t free_slot_ = no_slot;               // its span begins at the next free one
  std::unique_ptr<Losses> losses_;                  // null: none
  std::pmr::vector<std::uint32_t> rails_{&lists_};  // fixed at the start
  std::pmr::vector<std::uint32_t> lanes_{&lists_};
  enum class Check { owed, under_way, passed } check_;
  bool visible_ = true;     // what was read, to whoever is told of it
  bool revealing_ = false;  // just now
  bool cancel_asked_ = false;
  bool looking_ = false;               // at its event, just now
  std::unique_ptr<Ending> ends_with_;  // once that is over
  bool signal_raised_ = false;
  bool signalling_ = false;             // raised, and not known to be delivered
  std::atomic<bool> announced_{false};  // callback and event are out; written with the lock
  bool let_go_ = false;                 // memory_let_go() was called
  bool settled_ = false;                // quiescent and let go
  std::unique_ptr<const Error> error_;  // null: none
  Tally tally_;
  std::uint64_t operations_ = 0, bytes_done_ = 0, retries_ = 0;
  std::atomic<std::uint64_t> copied_{0};
  static constexpr Clock::time_point never{};
  Clock::time_point first_out_ = never, last_home_ = never;
  std::pmr::vector<Share> shares_;  // by rail
  std::shared_ptr<TransferState> self_;
};

}  // namespace weft::core
