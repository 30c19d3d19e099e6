// Puts the fragments of long messages together again.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <weft/place.hpp>

namespace weft::core {

/// One message at a time, whose packets come in order. A message of more than `most` bytes is
/// dropped: its sender was told how much is accepted.
class Assembly {
 public:
  explicit Assembly(std::size_t most) : most_(most) {}

  /// Not the last one of its message.
  void add(Blob fragment) {
    if (fits(fragment)) {
      begun_.insert(begun_.end(), fragment.begin(), fragment.end());
    } else {
      too_long_ = true;
      begun_ = {};
    }
  }
  /// The message, if it is not too long.
  std::optional<Blob> finish(Blob last) {
    const bool whole = fits(last);
    Blob message = std::exchange(begun_, {});
    too_long_ = false;
    if (!whole) return std::nullopt;
    if (message.empty()) return last;
    message.insert(message.end(), last.begin(), last.end());
    return message;
  }

 private:
  bool fits(const Blob& more) const { return !too_long_ && more.size() <= most_ - begun_.size(); }

  const std::size_t most_;
  Blob begun_;
  bool too_long_ = false;
};

}  // namespace weft::core
