// The fallback for messages to one peer that their rail does not deliver: the control connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <weft/place.hpp>

namespace weft::core {

/// Its number in the SendWindow; nothing for those that only return credits.
using MessageNumber = std::optional<std::uint64_t>;

/// The peer takes the messages in their order, and acknowledges each in that order.
class ControlPath {
 public:
  /// Bytes that may be under way: far less than the control connection queues (ControlTuning), so
  /// that heartbeats stay on time; but one message always may.
  static constexpr std::size_t most_bytes = std::size_t{1} << 20;

  void add(MessageNumber number, Blob message) { waiting_.push_back({number, std::move(message)}); }
  /// The next that may go; nothing if there is none, or enough are under way.
  std::optional<Blob> next() {
    if (waiting_.empty()) return std::nullopt;
    Waiting& first = waiting_.front();
    const std::size_t size = first.message.size();
    if (bytes_ > 0 && bytes_ + size > most_bytes) return std::nullopt;
    bytes_ += size;
    under_way_.push_back({first.number, size});
    Blob message = std::move(first.message);
    waiting_.pop_front();
    return message;
  }
  /// The peer has the oldest of those under way; its number, if there is one.
  MessageNumber taken() {
    if (under_way_.empty()) return std::nullopt;
    const UnderWay oldest = under_way_.front();
    under_way_.pop_front();
    bytes_ -= oldest.bytes;
    return oldest.number;
  }

 private:
  struct Waiting {
    MessageNumber number;
    Blob message;
  };
  struct UnderWay {
    MessageNumber number;
    std::size_t bytes;
  };
  std::deque<Waiting> waiting_;
  std::deque<UnderWay> under_way_;
  std::size_t bytes_ = 0;  // of these
};

}  // namespace weft::core
