// Signals and messages that have arrived from one peer, and the calls that wait for them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <weft/message.hpp>

#include "base/sync.hpp"
#include "peer/awaited.hpp"
#include "peer/signal_counters.hpp"

namespace weft::core {

/// What was kept for calls that may come.
struct Unclaimed {
  std::uint64_t bytes = 0;
  std::uint64_t ids = 0;  // of signals
  bool too_many = false;  // the sender is held back
};

/// Matches signals with expectations and messages with receives, each side in order of arrival.
/// Those that nothing waits for are kept; their bytes are counted, so that the sender can be held
/// back. Orphans (SignalCounters) are not worth that: they make room.
class Mailbox {
 public:
  using DropCounter = std::atomic<std::uint64_t>;

  /// `dropped`: counts the arrivals that are dropped; of several mailboxes, perhaps.
  Mailbox(std::string peer, std::size_t unclaimed_limit,
          std::shared_ptr<DropCounter> dropped = nullptr)
      : peer_(std::move(peer)),
        limit_(unclaimed_limit),
        all_dropped_(std::move(dropped)),
        signals_(peer_) {}

  void signal_arrived(std::uint64_t id, Blob bytes);
  void message_arrived(std::uint64_t tag, Blob bytes);
  /// A signal with this id will never come.
  void signal_failed(std::uint64_t id, const Error& error);
  /// Nothing more will come. Calls that wait, and later ones that can't be served from what is
  /// here, end with `error`.
  void close(const Error& error);

  void await(const std::shared_ptr<ExpectState>& expectation);
  void await(const std::shared_ptr<ReceiveState>& receive);
  /// False if it has ended already, or is about to.
  bool give_up(const ExpectState& expectation);
  bool give_up(const ReceiveState& receive);
  /// As SignalCounters::forget().
  void forget(std::uint64_t first, std::uint64_t last);

  /// Whether the sender should be held back.
  bool full() const {
    const Lock lock(mutex_);
    return bytes() > limit_;
  }
  /// Called, without a lock, when full() turns false.
  std::function<void()> when_room;

  Unclaimed unclaimed() const;
  /// As AwaitedSlot::overdue().
  Error overdue(const ExpectState& expectation) const;
  Error overdue(const ReceiveState& receive) const;

 private:
  template <typename Change>
  void change(Change&& change) WEFT_EXCLUDES(mutex_);
  std::size_t bytes() const WEFT_REQUIRES(mutex_) { return signals_.bytes() + message_bytes_; }
  void make_room() WEFT_REQUIRES(mutex_);
  Error overdue(const std::string& missing) const WEFT_REQUIRES(mutex_);

  const std::string peer_;
  const std::size_t limit_;
  const std::shared_ptr<DropCounter> all_dropped_;
  mutable Mutex mutex_;
  SignalCounters signals_ WEFT_GUARDED_BY(mutex_);
  std::deque<Message> messages_ WEFT_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<ReceiveState>> receives_ WEFT_GUARDED_BY(mutex_);
  std::size_t message_bytes_ WEFT_GUARDED_BY(mutex_) = 0;  // of messages_
  std::uint64_t told_dropped_ WEFT_GUARDED_BY(mutex_) = 0;
  std::optional<Error> closed_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::core
