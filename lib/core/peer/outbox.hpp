// Messages that wait to be sent to one peer.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/place.hpp>

#include "base/sync.hpp"

namespace weft::core {

class TransferState;

/// As the wire has them. `fragment`: a piece of a long message, but not the last one.
enum class MessageKind : std::uint8_t { signal = 1, tagged, credits, fragment };

struct Outgoing {
  MessageKind kind = MessageKind::tagged;
  std::uint64_t tag = 0;
  Blob bytes;
  std::shared_ptr<TransferState> transfer;  // whose signal it is, if any
};

/// Filled from any thread, emptied by the Messenger.
class Outbox {
 public:
  explicit Outbox(std::size_t limit) : limit_(limit) {}

  /// Waits for room until the deadline. False if there was none, or the outbox is closed: then the
  /// message is left as it was.
  bool push(Outgoing&& message, Deadline deadline) {
    const Lock lock(mutex_);
    changed_.wait(mutex_, deadline,
                  [&]() WEFT_REQUIRES(mutex_) { return closed_ || messages_.size() < limit_; });
    if (closed_ || messages_.size() >= limit_) return false;
    messages_.push_back(std::move(message));
    return true;
  }
  /// For signals: transfers, which raise them, are bounded elsewhere. No limit, no waiting.
  bool push_unbounded(Outgoing message) {
    const Lock lock(mutex_);
    if (closed_) return false;
    messages_.push_back(std::move(message));
    return true;
  }
  std::optional<Outgoing> pop() {
    const Lock lock(mutex_);
    if (messages_.empty()) return std::nullopt;
    Outgoing message = std::move(messages_.front());
    messages_.pop_front();
    ++under_way_;
    changed_.notify_all();
    return message;
  }
  /// A fragment of a message that pop() returned goes by itself.
  void add_under_way() {
    const Lock lock(mutex_);
    ++under_way_;
  }
  /// What pop() returned, or a fragment of it, is delivered, or lost for good.
  void settled() {
    const Lock lock(mutex_);
    --under_way_;
    changed_.notify_all();
  }
  /// Waits until nothing waits or is under way. False if the deadline passed first.
  bool wait_idle(Deadline deadline) {
    const Lock lock(mutex_);
    return changed_.wait(mutex_, deadline, [&]() WEFT_REQUIRES(mutex_) {
      return closed_ || (messages_.empty() && under_way_ == 0);
    });
  }
  /// Nothing more goes in; returns what was still waiting.
  std::deque<Outgoing> close() {
    const Lock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
    return std::exchange(messages_, {});
  }

 private:
  const std::size_t limit_;
  Mutex mutex_;
  Condition changed_;
  std::deque<Outgoing> messages_ WEFT_GUARDED_BY(mutex_);
  std::size_t under_way_ WEFT_GUARDED_BY(mutex_) = 0;
  bool closed_ WEFT_GUARDED_BY(mutex_) = false;
};

}  // namespace weft::core
