// The packets to one peer that the peer has not acknowledged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "message/buffer_pool.hpp"

namespace weft::core {

class TransferState;

/// A message that was sent, or a fragment of one. Its number is its place in the SendWindow.
struct Unacknowledged {
  enum class Phase : std::uint8_t {
    on_rail,         // posted, and the post has not ended
    on_closed_rail,  // likewise, and the peer has closed its rail since: the message may be lost
    delivered,       // the post has ended, but the peer may still close its rail before it looks
    forgotten,       // likewise, and its buffer was needed: it can't be sent again
    on_control,      // it goes by the control connection, which loses nothing
    failed,          // it can't be delivered, and the peer is given up
  };
  Phase phase = Phase::on_rail;
  Buffer* buffer = nullptr;                      // with the message, but in the last three phases
  std::shared_ptr<TransferState> transfer = {};  // whose signal it is, if any
  std::uint32_t before = 0;                      // fragments of the same message that went first
  bool ended = false;                            // and the sender was told so
};

/// Messages are numbered from 0 in the order in which they are sent. An acknowledgement is a number
/// of messages: the peer has taken all below it. Credits are a number too: those below it may be
/// sent, since the peer has receives for them.
class SendWindow {
 public:
  explicit SendWindow(std::uint64_t credits) : credits_(credits) {}

  bool full() const noexcept { return next() >= credits_; }
  /// How many more may be sent now.
  std::uint64_t spare() const noexcept { return credits_ - std::min(credits_, next()); }
  /// In all, since the first one. Repeats and late words add nothing; false for those.
  bool raise(std::uint64_t credits) noexcept {
    if (credits <= credits_ + given_back_) return false;
    credits_ = credits - given_back_;
    return true;
  }
  /// So many of the spare ones are the peer's again, which is told so.
  void give_back(std::uint64_t count) noexcept {
    credits_ -= count;
    given_back_ += count;
  }
  bool empty() const noexcept { return messages_.empty(); }
  /// The number of the oldest one, and of the message that is sent next.
  std::uint64_t first() const noexcept { return acknowledged_; }
  std::uint64_t next() const noexcept { return acknowledged_ + messages_.size(); }
  void push(Unacknowledged message) { messages_.push_back(std::move(message)); }
  /// Null if it was acknowledged.
  Unacknowledged* find(std::uint64_t number) noexcept {
    return number < acknowledged_ ? nullptr : &messages_[number - acknowledged_];
  }
  /// Visits those that `count` acknowledges for the first time, oldest first. Repeats, late ones,
  /// and what was never sent add nothing. False if there is none.
  template <typename Visit>
  bool acknowledge(std::uint64_t count, Visit&& visit) {
    bool any = false;
    for (; acknowledged_ < count && !messages_.empty(); any = true) {
      Unacknowledged message = std::move(messages_.front());
      messages_.pop_front();
      ++acknowledged_;
      visit(message);
    }
    return any;
  }

  // Oldest first.
  auto begin() noexcept { return messages_.begin(); }
  auto end() noexcept { return messages_.end(); }

 private:
  std::uint64_t credits_;         // without those that were given back, ...
  std::uint64_t given_back_ = 0;  // ... which are so many
  std::uint64_t acknowledged_ = 0;
  std::deque<Unacknowledged> messages_;
};

}  // namespace weft::core
