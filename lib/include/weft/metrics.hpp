/// @file
/// The slowest transfers of an engine. Counters and histograms come as text
/// (Engine::metrics_text, Engine::snapshot).
#pragma once

#include <string>
#include <weft/deadline.hpp>
#include <weft/transfer.hpp>

namespace weft {

/// One of the slowest transfers.
struct SlowTransfer {
  std::string peer;
  Direction direction = Direction::write;
  Priority priority = Priority::normal;
  Clock::time_point ended;
  /// As Transfer::report() at its end, without `copied` and `amplification`.
  Report report;
};

}  // namespace weft
