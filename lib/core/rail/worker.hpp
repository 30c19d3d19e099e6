// A progress thread, or its stand-in under manual progress: owns rails, and watches deadlines.
// Threads that look for an end make its steps too, one at a time. While somebody looks closely, the
// progress thread stands by.
#pragma once

#include <poll.h>
#include <sched.h>

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>
#include <weft/deadline.hpp>

#include "base/sync.hpp"
#include "rail/rail.hpp"
#include "transfer/transfer_state.hpp"

namespace weft::core {

class Worker {
 public:
  explicit Worker(Nanoseconds spin);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Before start().
  void own(Rail& rail);
  const std::vector<Rail*>& rails() const noexcept { return rails_; }
  /// Where its thread is best.
  struct Place {
    int numa_node = -1;  // on cores near it; -1: anywhere
    // And there on this one, counted on beyond the last, unless others compute on it. Where both
    // ends of a stream take turns on one core, the bytes under way stay in that core's cache.
    std::optional<unsigned> core;
  };
  /// Starts the thread. Without it callers make the steps.
  Result<void> start(Place place);
  /// The thread did not run for a long time: from now on it may have all its cores. Others can keep
  /// one core from it (on Linux 6.18 a neighbour that yields in a loop did, for half a minute).
  void free_core();
  /// Ends the thread after its current step. Nobody makes another one.
  void stop();

  // From any thread.
  /// Offers a transfer to a rail of this worker's.
  void offer(Rail& rail, std::shared_ptr<TransferState> transfer);
  /// As offer(), but what there is room for goes out at once. False: another thread makes a step,
  /// or something waits for the next one and goes before it.
  bool begin(Rail& rail, const std::shared_ptr<TransferState>& transfer, Clock::time_point now);
  /// Keeps a transfer until the event that it waits for has happened, then begins it.
  void park(std::shared_ptr<TransferState> transfer);
  /// Watches a transfer: its deadline, and the end of its peer. Before a thread may carry it, since
  /// that one may be stuck in a call to the provider.
  void watch(const std::shared_ptr<TransferState>& transfer);
  /// Ends those whose deadline has passed. The worker does so itself; upkeep does it as well, since
  /// the worker may be stuck in a call to the provider.
  void end_overdue(Clock::time_point now);
  /// Ends those with a peer that went down.
  void end_those_of(const PeerState& peer, const Error& why);
  /// Ends those under a grant whose owner has ended it, but for those that are done with it.
  void end_those_under(const RemoteState& remote, const Error& why);
  /// Ends all, because the engine closes.
  void end_all(const Error& error);
  /// Something was put into the peer's outbox, or its mailbox has room again. Called from within a
  /// step, the same step or the next one sees to it, without the inbox.
  void attend(Rail& rail, std::shared_ptr<PeerState> peer);
  /// One round of everything, unless another thread makes one. Returns how much happened.
  std::size_t drive(Clock::time_point now);
  /// Whether somebody else makes the steps at present: has just called drive().
  bool driven(Clock::time_point now) const noexcept {
    const Nanoseconds ago(now.time_since_epoch().count() -
                          looked_at_.load(std::memory_order_relaxed));
    return ago < (looks_closely() ? takeover : close_together);
  }
  /// Nobody looks any more: the thread goes on at once.
  void hand_over();
  /// Runs `task` between two steps, on the calling thread. False: there are none any more.
  bool run_here(const std::function<void()>& task);
  /// Runs `task` between two steps.
  void post(std::function<void()> task);
  /// As post(), and waits for it. False if it was not run by the deadline; then it never is.
  bool run(std::function<void()> task, Deadline deadline);
  /// False: there was no descriptor left to wake it with.
  bool wakes() const noexcept { return wake_fd_ >= 0; }
  /// Counts the steps; a worker that sleeps wakes for post().
  std::uint64_t ticks() const noexcept { return ticks_.load(std::memory_order_relaxed); }

  /// Adds what tells of its rails' work, where they have descriptors, for a thread that sleeps
  /// next. False: some may have come already.
  bool may_sleep(std::vector<pollfd>& waited);
  /// Tells the rails of a peer that went down. On the owning thread.
  void peer_died(const std::shared_ptr<PeerState>& peer);
  /// Does what was posted but not done. After stop().
  void settle();

 private:
  struct Inbox {
    std::vector<std::pair<Rail*, std::shared_ptr<TransferState>>> offers;
    std::vector<std::pair<Rail*, std::shared_ptr<PeerState>>> attentions;
    std::vector<std::function<void()>> tasks;
    void clear() {
      offers.clear();
      attentions.clear();
      tasks.clear();
    }
  };

  static constexpr Clock::rep never = std::numeric_limits<Clock::rep>::max();

  // A thread that has looked most often looks again within this time.
  static constexpr Nanoseconds close_together = std::chrono::microseconds(100);
  // One that has looked so often in a row, that close together, does nothing else.
  static constexpr unsigned close_looks = 8;
  // How long after its last look the progress thread goes on. Peers may wait for so long.
  static constexpr Nanoseconds takeover = std::chrono::milliseconds(1);

  bool looks_closely() const noexcept {
    return looks_in_a_row_.load(std::memory_order_relaxed) >= close_looks;
  }
  /// Whether the calling thread is within step().
  bool steps_here() const noexcept {
    return stepping_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  template <typename Put>
  void put(Put&& put);
  void wake();
  void loop(Place place);
  std::size_t step(Clock::time_point now) WEFT_REQUIRES(driving_);
  std::size_t empty_inbox() WEFT_REQUIRES(driving_);
  bool has_work() const noexcept WEFT_REQUIRES(driving_);
  std::size_t progress(Rail& rail, Clock::time_point now) WEFT_REQUIRES(driving_);
  std::size_t look_at_parked() WEFT_REQUIRES(driving_);
  bool add_descriptors(std::vector<pollfd>& waited) WEFT_REQUIRES(driving_);
  void watch(const std::shared_ptr<TransferState>& transfer, Clock::time_point due);
  std::vector<std::shared_ptr<TransferState>> watched() const;
  void sweep();
  std::shared_ptr<TransferState> take_overdue(Clock::rep now);
  bool sleep(Clock::time_point idle_since);
  bool prepare_sleep(Clock::time_point idle_since, std::vector<pollfd>& waited, Nanoseconds& time);
  Nanoseconds longest_sleep(Clock::time_point idle_since) const WEFT_REQUIRES(driving_);
  void sleep_on(std::vector<pollfd>& waited, Nanoseconds time);
  void stand_by();

  void note_next_deadline() WEFT_REQUIRES(watched_mutex_);

  // Groups of what changes together, each with cache lines of its own: what the owning thread
  // notes in every round must not take from others what they read.
  const Nanoseconds spin_;
  std::vector<Rail*> rails_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  cpu_set_t cores_{};  // all of the thread's, before it keeps to one
  std::atomic<bool> keeps_to_core_{false};
  std::atomic<bool> starved_{false};  // it keeps to none any more
  std::atomic<bool> asleep_{false};
  std::atomic<bool> standing_by_{false};  // asleep, for no longer than `takeover`
  int wake_fd_ = -1;
  std::atomic<Clock::rep> next_deadline_{never};  // written with watched_mutex_

  alignas(cache_line) Mutex inbox_mutex_;
  Inbox inbox_ WEFT_GUARDED_BY(inbox_mutex_);
  std::atomic<bool> inbox_filled_{false};

  alignas(cache_line) mutable Mutex watched_mutex_;
  struct Watched {
    Clock::rep deadline = 0;
    std::weak_ptr<TransferState> transfer;  // they keep themselves alive until they end
    static bool later(const Watched& a, const Watched& b) { return a.deadline > b.deadline; }
  };
  // A heap, the earliest deadline first.
  std::vector<Watched> watched_ WEFT_GUARDED_BY(watched_mutex_);
  std::size_t sweep_at_ WEFT_GUARDED_BY(watched_mutex_) = 64;

  // Held by the thread that makes a step.
  alignas(cache_line) Mutex driving_;
  bool over_ WEFT_GUARDED_BY(driving_) = false;  // nobody makes steps any more
  std::atomic<Clock::rep> looked_at_{0};         // by drive(); written with driving_
  std::atomic<unsigned> looks_in_a_row_{0};
  std::atomic<std::uint64_t> ticks_{0};          // read by others seldom
  std::atomic<std::thread::id> stepping_{};      // no thread's between two steps
  std::size_t attended_here_ = 0;                // within this step, by its thread
  bool cold_ WEFT_GUARDED_BY(driving_) = false;  // the thread has just slept
  Inbox taken_ WEFT_GUARDED_BY(driving_);
  std::vector<std::shared_ptr<TransferState>> parked_ WEFT_GUARDED_BY(driving_);
  Clock::time_point look_again_at_ WEFT_GUARDED_BY(driving_){};
};

}  // namespace weft::core
