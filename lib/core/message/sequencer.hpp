// Puts numbered messages in order, and drops repeats.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace weft::core {

/// Numbers count upwards from `first` and wrap at 2^32. At most `span` of them may be under way at
/// a time: the sender has so many credits.
template <typename Message>
class Sequencer {
 public:
  Sequencer(std::uint32_t first, std::size_t span) : next_(first), waiting_(std::bit_ceil(span)) {}

  /// False for a repeat, and for numbers that can't be under way.
  bool put(std::uint32_t number, Message message) {
    const std::uint32_t ahead = number - next_;  // modulo 2^32, as the numbers are
    if (ahead >= waiting_.size() || place_of(number)) return false;
    place_of(number) = std::move(message);
    return true;
  }
  /// The next one in order; nothing if it has not come.
  std::optional<Message> take() {
    if (!place_of(next_)) return std::nullopt;
    return std::exchange(place_of(next_++), std::nullopt);
  }

 private:
  std::optional<Message>& place_of(std::uint32_t number) {
    return waiting_[number % waiting_.size()];  // a power of two: it survives the wrap
  }

  std::uint32_t next_;
  std::vector<std::optional<Message>> waiting_;
};

}  // namespace weft::core
