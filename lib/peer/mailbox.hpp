// Signals and messages that have arrived from one peer, and the calls that wait for them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>
#include <weft/message.hpp>

#include "base/completion_slot.hpp"
#include "base/sync.hpp"

namespace weft::core {

class EngineState;
class PeerState;

/// What an application waits for, with a deadline perhaps.
class AwaitedSlot : public CompletionSlot {
 public:
  /// Nothing will complete it any more; false if it has ended, or is about to.
  virtual bool give_up() = 0;
};

/// An expectation: complete when `wanted` signals have been given to it.
class ExpectState : public AwaitedSlot {
 public:
  ExpectState(std::weak_ptr<EngineState> engine, std::shared_ptr<PeerState> peer, std::uint64_t id,
              std::uint64_t wanted)
      : engine(std::move(engine)), peer(std::move(peer)), id(id), wanted(wanted) {}
  bool give_up() override;

  const std::weak_ptr<EngineState> engine;
  const std::shared_ptr<PeerState> peer;
  const std::uint64_t id;
  const std::uint64_t wanted;
  Signals arrived;  // the mailbox's until complete, then the waiter's
};

/// A receive: complete when a message was given to it.
class ReceiveState : public AwaitedSlot {
 public:
  ReceiveState(std::weak_ptr<EngineState> engine, std::shared_ptr<PeerState> peer,
               std::uint64_t tag, std::uint64_t mask)
      : engine(std::move(engine)), peer(std::move(peer)), tag(tag), mask(mask) {}
  bool give_up() override;

  const std::weak_ptr<EngineState> engine;
  const std::shared_ptr<PeerState> peer;
  const std::uint64_t tag, mask;
  Message message;
};

/// Matches signals with expectations and messages with receives, each side in order of arrival.
/// Those that nothing waits for are kept; their bytes are counted, so that the sender can be held
/// back.
class Mailbox {
 public:
  explicit Mailbox(std::string peer, std::size_t unclaimed_limit)
      : peer_(std::move(peer)), limit_(unclaimed_limit) {}

  void signal_arrived(std::uint64_t id, Blob bytes);
  void message_arrived(std::uint64_t tag, Blob bytes);
  /// A signal with this id will never come: the oldest expectation for it ends with `error`, and if
  /// there is none the next one will.
  void signal_failed(std::uint64_t id, const Error& error);
  /// Nothing more will come. Calls that wait, and later ones that can't be served from what is
  /// here, end with `error`.
  void close(const Error& error);

  void await(const std::shared_ptr<ExpectState>& expectation);
  void await(const std::shared_ptr<ReceiveState>& receive);
  /// False if it has ended already, or is about to.
  bool give_up(const ExpectState& expectation);
  bool give_up(const ReceiveState& receive);

  /// Whether the sender should be held back.
  bool full() const {
    const Lock lock(mutex_);
    return unclaimed_ > limit_;
  }
  /// Called, without a lock, when full() turns false.
  std::function<void()> when_room;

 private:
  /// What is to be told when the lock is released.
  struct Endings {
    std::vector<std::pair<std::shared_ptr<CompletionSlot>, std::optional<Error>>> slots;
    bool room = false;  // full() has turned false
  };
  /// Signals of one id. They are numbered as they arrive, and claimed in that order.
  struct Counter {
    std::uint64_t arrived = 0;
    std::uint64_t claimed = 0;
    std::deque<std::pair<std::uint64_t, Blob>> payloads;  // with the numbers of their signals
    std::deque<Error> failures;
    std::deque<std::shared_ptr<ExpectState>> waiting;
    bool counted = false;  // as unclaimed
    bool idle() const {
      return arrived == claimed && waiting.empty() && failures.empty() && payloads.empty();
    }
  };
  using Counters = std::unordered_map<std::uint64_t, Counter>;
  void account(Counters::iterator entry) WEFT_REQUIRES(mutex_);
  void claim(Counter& counter, ExpectState& expectation) WEFT_REQUIRES(mutex_);
  void serve(std::uint64_t id, Endings& endings) WEFT_REQUIRES(mutex_);
  void tell(const Endings& endings) WEFT_EXCLUDES(mutex_);

  const std::string peer_;
  const std::size_t limit_;
  mutable Mutex mutex_;
  Counters counters_ WEFT_GUARDED_BY(mutex_);
  std::deque<Message> messages_ WEFT_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<ReceiveState>> receives_ WEFT_GUARDED_BY(mutex_);
  std::size_t unclaimed_ WEFT_GUARDED_BY(mutex_) = 0;
  std::optional<Error> closed_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::core
