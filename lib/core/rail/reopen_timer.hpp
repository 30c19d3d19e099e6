// When a rail is to be closed and opened again by itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <weft/deadline.hpp>

namespace weft::core {

/// Of one rail, looked at every so often by one thread.
class ReopenTimer {
 public:
  /// `patience`: how long nothing may come of what a rail has out. It is not the rail's fault if
  /// its peers are frozen or dead, but by default that is found out later (4 s against
  /// `death_after`, 15 s): then the rail is reopened in vain.
  explicit ReopenTimer(Nanoseconds patience) : patience_(patience), pause_(patience) {}

  struct Look {
    bool out = false;             // it has operations out, to peers that live
    std::uint64_t completed = 0;  // operations in all
    bool closed = false;          // it could not be opened again
  };
  /// Whether it is time. The less it helps the less often.
  bool due(const Look& look, Clock::time_point now) {
    const bool moves = look.completed != completed_;
    completed_ = look.completed;
    if (moves) pause_ = patience_;
    if (!since_ || moves || (!look.out && !look.closed)) since_ = now;
    if (now - *since_ < pause_) return false;
    constexpr int most = 64;
    since_ = now;
    pause_ = std::min<Nanoseconds>(2 * pause_, most * patience_);
    return true;
  }

 private:
  const Nanoseconds patience_;
  Nanoseconds pause_;
  std::uint64_t completed_ = 0;
  std::optional<Clock::time_point> since_;
};

}  // namespace weft::core
