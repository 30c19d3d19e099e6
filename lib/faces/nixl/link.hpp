// Another agent, as this one reaches it.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <weft/engine.hpp>

#include "base/sync.hpp"
#include "base/use_count.hpp"
#include "nixl/connection.hpp"
#include "nixl/cutter.hpp"
#include "nixl/notification.hpp"

namespace weft::nixl {

/// For a connection to come about. Far more than a handshake takes, also beside load.
inline constexpr auto meeting_time = std::chrono::seconds(10);
/// That a call waits for a peer's first answer: one that is well has met within it, and is used at
/// once. A guess: a meeting takes 1 to 3 ms.
inline constexpr auto longest_courtesy = std::chrono::milliseconds(20);

/// An engine of this process, and the peer that the other agent's engine is to it: being met, met,
/// or not to be met. Shared by all that was loaded of the agent. No call waits for the peer, but
/// for `longest_courtesy`: what has to is done behind the caller, in order, by a thread that the
/// link has while there is such work. So a peer that hangs delays what concerns it, and nothing
/// else.
class Link : public std::enable_shared_from_this<Link> {
 public:
  struct Side {
    std::shared_ptr<Engine> engine;
    Cutter cutter;
    Nanoseconds timeout;  // of a request, and of what it needs
    /// Of all links. Closed when there are to be no more.
    std::shared_ptr<core::UseCount> threads = std::make_shared<core::UseCount>();
  };
  using Task = std::function<void()>;

  /// Begins the meeting.
  static Result<std::shared_ptr<Link>> meet(const Side& side, const std::string& agent,
                                            const Connection& connection, std::size_t signal_bytes);
  /// To a peer that was met.
  Link(Side side, const Peer& peer, std::string agent, std::size_t signal_bytes)
      : Link(std::move(side), std::move(agent), signal_bytes) {
    met(peer);
  }

  Engine& engine() const noexcept { return *side_.engine; }
  Cutter& cutter() noexcept { return side_.cutter; }
  Nanoseconds timeout() const noexcept { return side_.timeout; }
  const std::string& agent() const noexcept { return agent_; }
  /// Most bytes that a signal may carry to it.
  std::size_t signal_bytes() const noexcept { return signal_bytes_; }

  /// Being met, or up.
  bool usable() const;
  /// Null while it is being met, and if that failed.
  const Peer* peer() const noexcept;
  bool up() const { return peer() != nullptr && peer()->up(); }
  /// Why it could not be met; nothing otherwise.
  Result<void> outcome() const;
  /// Until the meeting has ended.
  void wait_met(Deadline deadline);
  /// For an answer of the peer; has passed already once the peer has missed one.
  Deadline courtesy() const { return patient_ ? Deadline::in(longest_courtesy) : Deadline::now(); }
  void was_silent() { patient_ = false; }

  /// Runs the task once the meeting has ended, behind all that waits already.
  Result<void> later(Task task);
  /// Sends what there is room for, and the rest later.
  Result<void> notify(const Outgoing& notification);
  /// Sends a part of a notification, once the meeting has ended. Waits for room until the deadline.
  Result<void> send(const Blob& part, Deadline deadline) const;

  /// Writes the path of such transfers to the log, once for each direction and kinds of memory.
  void explain(const Segment& local, const Remote& remote, Direction direction);

 private:
  Link(Side side, std::string agent, std::size_t signal_bytes)
      : side_(std::move(side)), agent_(std::move(agent)), signal_bytes_(signal_bytes) {}
  enum class State : std::uint8_t { meeting, met, failed };
  void met(const Result<Peer>& outcome);
  Result<void> start() WEFT_REQUIRES(mutex_);
  void work();
  Task first();
  bool idle() const;
  Result<void> send_from(const Outgoing& notification, std::size_t& sent, Deadline deadline);

  Side side_;
  const std::string agent_;
  const std::size_t signal_bytes_;
  std::atomic<State> state_{State::meeting};
  std::optional<Result<Peer>> outcome_;  // before the state says so
  mutable core::Mutex mutex_;
  std::deque<Task> tasks_ WEFT_GUARDED_BY(mutex_);  // the first one is under way
  core::Condition met_;
  std::atomic<bool> patient_{true};
  std::atomic<unsigned> explained_{0};
};

using LinkPtr = std::shared_ptr<Link>;

}  // namespace weft::nixl
