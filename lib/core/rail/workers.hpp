// The workers of an engine: its progress threads or, under manual progress, what the application's
// calls drive. And how calls wait meanwhile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>
#include <weft/engine.hpp>

#include "base/pace.hpp"
#include "base/sync.hpp"
#include "rail/rails.hpp"
#include "rail/worker.hpp"

namespace weft::core {

/// Any thread calls it, but for start(), stop() and finish(), which the engine calls as it opens
/// and closes. all_ticked() is the control thread's question.
class Workers {
 public:
  explicit Workers(const Config& config) : config_(config) {}

  /// Gives each rail an owner, and starts the threads.
  Result<void> start(const Rails& rails);
  /// Ends the threads after their current steps. No thread drives the rails afterwards.
  void stop();
  /// After stop(): does what was posted and not done, and ends all transfers.
  void finish(const Error& error);

  /// Which of them owns the rail.
  unsigned index_of(const Worker& worker) const noexcept;
  /// Whether each progress thread has made a step since this was asked last. One that did not may
  /// have slept: it is woken, and must have made one by the next time.
  bool all_ticked();

  /// One round over all rails under manual progress, else over those of the first thread: the
  /// others move on by themselves. Callbacks run inside it.
  std::size_t progress(Clock::time_point now);
  /// Waits for `ended(deadline)`, making progress meanwhile if that is the caller's to do.
  template <typename Wait>
  bool wait(Wait&& ended, Deadline deadline);

  /// By a thread that waits for something of a rail's: makes its worker's steps until `done`, for
  /// Config::spin at most; one at least.
  template <typename Done>
  void drive(Worker& worker, Done&& done, Deadline deadline);

  /// Runs a task between two steps of the worker, and waits for it. False if it was not run by the
  /// deadline; then it never is.
  bool run_on(Worker& worker, const std::function<void()>& task, Deadline deadline);
  /// The same for a caller that must not wait.
  void hand_to(Worker& worker, const std::function<void()>& task);
  /// What peers had sent by now has been carried out, and each worker has made a step. False if the
  /// deadline passed first.
  bool take_in_arrivals(Deadline deadline);
  /// The rails forget a peer that is gone, when their threads get to it.
  void forget(const std::shared_ptr<PeerState>& peer);

  // As Worker.
  void end_overdue(Clock::time_point now);
  void end_those_of(const PeerState& peer, const Error& why);
  void end_those_under(const RemoteState& remote, const Error& why);
  void end_all(const Error& error);

 private:
  Worker::Place place_of(const Worker& worker, std::size_t index, const Rails& rails) const;
  void rest();

  const Config& config_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::uint64_t> last_ticks_;  // the control thread's
};

template <typename Wait>
bool Workers::wait(Wait&& ended, Deadline deadline) {
  if (config_.progress == Progress::threads) return ended(deadline);
  const Deadline long_past = Deadline::at({});
  thread_local Backoff backoff;
  backoff.slept(Clock::now());
  while (!ended(long_past)) {
    const auto now = Clock::now();
    if (now >= deadline.when()) return false;
    if (progress(now) > 0) continue;
    if (backoff.crowded(now)) {
      rest();
      backoff.slept(Clock::now());
    } else {
      backoff(now);
    }
  }
  return true;
}

template <typename Done>
void Workers::drive(Worker& worker, Done&& done, Deadline deadline) {
  const auto until = std::min(deadline.when(), Clock::now() + config_.spin);
  const auto look = [&] {
    worker.drive(Clock::now());
    return done();
  };
  if (look() || Clock::now() >= until) return;
  spin(look, until);
  if (!done()) worker.hand_over();
}

}  // namespace weft::core
