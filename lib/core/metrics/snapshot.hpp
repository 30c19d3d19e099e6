// An engine's metrics and slowest transfers as one JSON document.
#pragma once

#include <string>
#include <vector>
#include <weft/metrics.hpp>

#include "metrics/families.hpp"

namespace weft::core {

/// `now`: that the times since the ends of transfers are counted to.
std::string snapshot_json(const std::string& engine, const MetricFamilies& families,
                          const std::vector<SlowTransfer>& slowest, Clock::time_point now);

}  // namespace weft::core
