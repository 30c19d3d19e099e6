// What a sweep has measured of a point so far.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "measure/run.hpp"

namespace weft::perf {

/// Of a baseline's operations, in ns, one for each run.
struct Latencies {
  std::vector<double> p50, p99;
};

struct PointResult {
  Point point;
  std::string provider;   ///< libfabric's name of what it went by.
  std::vector<Run> runs;  ///< One for each repeat.
  /// GB/s by name, one for each run.
  std::map<std::string, std::vector<double>> baselines;
  std::map<std::string, Latencies> latencies;  ///< Of those that note them.
};

}  // namespace weft::perf
