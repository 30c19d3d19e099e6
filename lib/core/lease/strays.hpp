// What may still land of writes that have failed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace weft::core {

/// Of the writes under one imported grant: those that no key of the owner's keeps out, by the rails
/// of the owner's that they went to. From any thread.
class Strays {
 public:
  /// Before the write leaves the grant's users.
  void leave(std::uint32_t owner_rail) noexcept { rails_ |= bit(owner_rail); }
  /// What was sent to it goes nowhere. Before anything is sent to it as it is now.
  void rail_closed(std::uint32_t owner_rail) noexcept {
    if (owner_rail < shared) rails_ &= ~bit(owner_rail);
  }
  bool any() const noexcept { return rails_ != 0; }

 private:
  static constexpr std::uint32_t shared = 63;  // the bit of all rails from that one on
  static std::uint64_t bit(std::uint32_t rail) noexcept {
    return std::uint64_t{1} << std::min(rail, shared);
  }
  std::atomic<std::uint64_t> rails_{0};
};

}  // namespace weft::core
