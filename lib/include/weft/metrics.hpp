/// @file
/// What an engine has done in all: which transfers took longest. Counters and histograms come as
/// text (Engine::metrics_text, Engine::snapshot).
#pragma once

#include <string>
#include <weft/deadline.hpp>
#include <weft/transfer.hpp>

namespace weft {

/// One of the transfers that took longest.
struct SlowTransfer {
  std::string peer;
  Direction direction = Direction::write;
  Priority priority = Priority::normal;
  Clock::time_point ended;
  /// As Transfer::report() would have said when it ended, but for `copied` and `amplification`,
  /// which are empty.
  Report report;
};

}  // namespace weft
