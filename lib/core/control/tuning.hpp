// Times and bounds of the control plane that users can't set. Tests do.
#pragma once

#include <cstddef>
#include <weft/deadline.hpp>

#include "control/preamble.hpp"

namespace weft::core {

struct ControlTuning {
  VersionRange versions = spoken_versions;
  /// Bytes that may wait to be sent on one link: some grants of the largest size.
  std::size_t queue_bound = std::size_t{16} << 20;
  /// From meeting a peer to both being ready.
  Nanoseconds meet_time = std::chrono::seconds(60);
  /// Between attempts to meet a peer again that is to be kept: at first, doubled from one to the
  /// next, and at most; each up to a quarter longer, so that many do not come at once.
  Nanoseconds first_pause = std::chrono::milliseconds(100);
  Nanoseconds longest_pause = std::chrono::seconds(5);
  /// The time that one of these attempts may take.
  Nanoseconds redial_time = std::chrono::seconds(5);
  /// How long a last word may take to reach the other side.
  Nanoseconds linger = std::chrono::milliseconds(500);
};

}  // namespace weft::core
