// Copies between a file and memory of the same engine: no rail, no peer.
#pragma once

#include <memory>
#include <span>
#include <weft/transfer.hpp>

#include "memory/segment_state.hpp"

namespace weft::core {

/// Copies from `from` (Pair::remote) into `to` (Pair::local), and waits. One of them is a file, the
/// other one host memory. At the deadline what is under way goes on, and both segments stay in use
/// until it has ended.
Result<void> copy_by_file(const std::shared_ptr<SegmentState>& to,
                          const std::shared_ptr<SegmentState>& from, std::span<const Pair> pairs,
                          Deadline deadline);

}  // namespace weft::core
