// When a peer counts as dead. Four witnesses tell: silence (Pulse), the end of its process on this
// host (Connection::watch), its socket (Wire::broken), and the kernel, if what was sent is not
// acknowledged (set_options in sockets.cpp).
#pragma once

#include <optional>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

namespace weft::core {

/// When one peer was last heard. A peer that is heard lives, however late its progress threads are:
/// on a busy machine they wait for a core for seconds.
class Pulse {
 public:
  void start(Clock::time_point now) noexcept { heard_ = now; }
  void heard(Clock::time_point now) noexcept { heard_ = now; }
  /// This process itself stood still for a while; the peer is not to blame.
  void forgive(Nanoseconds lateness) noexcept { heard_ += lateness; }
  /// When nothing has been heard for so long.
  Clock::time_point due(Nanoseconds silence) const noexcept { return heard_ + silence; }
  /// Why the peer is dead, if it is.
  std::optional<Error> verdict(Clock::time_point now, Nanoseconds death_after) const;

 private:
  Clock::time_point heard_;
};

}  // namespace weft::core
