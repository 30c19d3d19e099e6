// What tests turn and users do not.
#pragma once

#include <cstddef>
#include <memory>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "control/control.hpp"
#include "control/preamble.hpp"

namespace weft::core {

struct ControlTuning {
  VersionRange versions = spoken_versions;
  /// Bytes that may wait to be sent on one link: some grants of the largest size.
  std::size_t queue_bound = std::size_t{16} << 20;
  /// From meeting a peer to both being ready.
  Nanoseconds meet_time = std::chrono::seconds(60);
  /// How long a last word may take to reach the other side.
  Nanoseconds linger = std::chrono::milliseconds(500);
};

/// ControlPlane::start with other than the usual tuning.
Result<std::unique_ptr<ControlPlane>> start_control(const ControlConfig& config, Introduction self,
                                                    ControlHandler& handler,
                                                    const ControlTuning& tuning);

}  // namespace weft::core
