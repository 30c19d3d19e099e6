// What an application waits for from one peer.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <weft/error.hpp>
#include <weft/message.hpp>

#include "base/completion_slot.hpp"

namespace weft::core {

class EngineState;
class PeerState;

/// With a deadline perhaps.
class AwaitedSlot : public CompletionSlot {
 public:
  /// Nothing will complete it any more; false if it has ended, or is about to.
  virtual bool give_up() = 0;
  /// What has not come in time, from whom, and what may keep it away.
  virtual Error overdue() const = 0;
};

/// An expectation: complete when `wanted` signals have been given to it.
class ExpectState : public AwaitedSlot {
 public:
  ExpectState(std::weak_ptr<EngineState> engine, std::shared_ptr<PeerState> peer, std::uint64_t id,
              std::uint64_t wanted, Late late = Late::keep)
      : engine(std::move(engine)), peer(std::move(peer)), id(id), wanted(wanted), late(late) {}
  bool give_up() override;
  Error overdue() const override;

  const std::weak_ptr<EngineState> engine;
  const std::shared_ptr<PeerState> peer;
  const std::uint64_t id;
  const std::uint64_t wanted;
  const Late late;
  Signals arrived;  // the mailbox's until complete, then the waiter's
};

/// A receive: complete when a message was given to it.
class ReceiveState : public AwaitedSlot {
 public:
  ReceiveState(std::weak_ptr<EngineState> engine, std::shared_ptr<PeerState> peer,
               std::uint64_t tag, std::uint64_t mask)
      : engine(std::move(engine)), peer(std::move(peer)), tag(tag), mask(mask) {}
  bool give_up() override;
  Error overdue() const override;

  const std::weak_ptr<EngineState> engine;
  const std::shared_ptr<PeerState> peer;
  const std::uint64_t tag, mask;
  Message message;
};

}  // namespace weft::core
