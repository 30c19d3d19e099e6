// Results as comma-separated values.
#pragma once

#include <string>
#include <vector>

#include "measure/point_result.hpp"

namespace weft::perf {

/// A line for each point, below one with the columns' names: what was measured, and with what
/// settings, on which machines and with which versions. Where several machines are on a side and
/// differ, a column has what all of them say.
std::string csv(const std::vector<PointResult>& results, const Json& settings,
                const Json& machines);

}  // namespace weft::perf
