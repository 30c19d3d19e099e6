// Messages between endpoints: a head and its bytes, streamed through the receiver's slot.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "providers/endpoint.hpp"
#include "providers/shm/neighbour.hpp"
#include "providers/shm/ring.hpp"

namespace weft::providers::shm {

/// An operation that has ended, to be told to its handler.
struct Ended {
  Posted* posted = nullptr;
  std::size_t length = 0;
  Outcome outcome;
};

struct MessageHead {
  std::uint64_t type = 0;  // MessageClass
  std::uint64_t length = 0;
};

/// Buffers posted for messages, by class. The last one posted is taken first: it is the likeliest
/// to be in the cache still.
class Receives {
 public:
  struct Buffer {
    Posted* posted = nullptr;
    Local local;
  };
  void post(MessageClass type, const Buffer& buffer) { of(type).push_back(buffer); }
  std::optional<Buffer> take(MessageClass type);
  /// False if it is not there.
  bool take_back(MessageClass type, const Posted& posted) {
    return std::erase_if(of(type), [&](const Buffer& each) { return each.posted == &posted; }) > 0;
  }

 private:
  std::vector<Buffer>& of(MessageClass type) {
    return buffers_[type == MessageClass::bounce ? 1 : 0];
  }
  std::array<std::vector<Buffer>, 2> buffers_;
};

/// The stream from one of our endpoints to one neighbour.
class Outbound {
 public:
  explicit Outbound(std::shared_ptr<Neighbour> neighbour) : neighbour_(std::move(neighbour)) {}

  /// False if too many wait already, or the neighbour was given up.
  bool send(Posted& posted, const Local& local, MessageClass type);
  /// Streams on, and ends those that the neighbour has taken, or never will. `rare` says that
  /// this is not called all the time: then it asks whether the neighbour lives.
  void pump(std::vector<Ended>& ended, bool rare);
  bool idle() const noexcept { return messages_.empty(); }
  /// The neighbour takes nothing any more, and may have got half a message.
  bool given_up() const noexcept { return given_up_; }
  /// Whether pump() has something to do.
  bool ready() const noexcept;
  /// Ends everything, and takes nothing any more.
  void give_up(const Outcome& why, std::vector<Ended>& ended);

 private:
  struct Message {
    Posted* posted = nullptr;
    Local local;
    MessageHead head;
    bool begun = false;
    std::size_t sent = 0;
    std::uint64_t end = 0;  // the stream's length when the neighbour has taken it
  };
  bool stream(Message& message);

  const std::shared_ptr<Neighbour> neighbour_;
  RingWriter writer_;
  std::deque<Message> messages_;  // not taken yet, in order
  std::size_t streamed_ = 0;      // of those, written as a whole
  std::uint64_t seen_ = 0;        // what the neighbour had consumed when last looked at
  unsigned idle_looks_ = 0;
  bool given_up_ = false;
};

/// The stream that arrives in one slot.
class Inbound {
 public:
  Inbound(Mapped<Slot> slot, std::uint64_t sender) : slot_(std::move(slot)), sender_(sender) {}

  std::uint64_t sender() const noexcept { return sender_; }
  /// Takes what is there, as far as there are buffers; returns whether anything was taken.
  bool take(Receives& receives, std::vector<Ended>& ended);
  /// Whether a message waits for a buffer.
  bool waiting() const noexcept { return waiting_; }
  /// Makes the slot as new; a message that had come in part is forgotten.
  void reset(Receives& receives);

 private:
  bool begin(std::size_t available, Receives& receives, std::vector<Ended>& ended);

  const Mapped<Slot> slot_;
  const std::uint64_t sender_;
  RingReader reader_;
  MessageHead head_;         // of the message that is coming in
  Receives::Buffer buffer_;  // for it; its posted is null between messages
  std::size_t received_ = 0;
  bool within_ = false, waiting_ = false, broken_ = false;
};

}  // namespace weft::providers::shm
