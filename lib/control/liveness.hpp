// When a peer counts as dead.
#pragma once

#include <algorithm>
#include <optional>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "control/link_end.hpp"

namespace weft::core {

/// When and what was last heard from one peer.
class Pulse {
 public:
  void start(Clock::time_point now) noexcept {
    heard_ = progressed_ = now;
    standing_ = false;
  }
  void heard(Clock::time_point now) noexcept { heard_ = now; }
  void heartbeat(Clock::time_point now, bool progressing) noexcept {
    if (progressing) progressed_ = now;
    standing_ = !progressing;
  }
  /// This process itself stood still for a while; the peer is not to blame.
  void forgive(Nanoseconds lateness) noexcept {
    heard_ += lateness;
    progressed_ += lateness;
  }
  /// When verdict() has to be asked, if nothing is heard until then.
  Clock::time_point due(Nanoseconds death_after) const noexcept {
    return (standing_ ? std::min(heard_, progressed_) : heard_) + death_after;
  }
  /// Why the peer is dead, if it is.
  struct Verdict {
    LinkEnd how;
    Error why;
  };
  std::optional<Verdict> verdict(Clock::time_point now, Nanoseconds death_after) const;

 private:
  Clock::time_point heard_, progressed_;
  bool standing_ = false;  // as of the last heartbeat
};

}  // namespace weft::core
