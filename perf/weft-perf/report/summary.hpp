// What the runs of a point come to.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "measure/point_result.hpp"
#include "report/spread.hpp"
#include "report/statistics.hpp"

namespace weft::perf {

/// Of the runs' latencies to a baseline's: less is better.
struct LatencyRatios {
  Interval p50, p99;
};

/// "10.0.0.3:7000", or "here".
std::string place_of(const Share& share);
/// Whether any initiator is on another machine.
bool is_spread(const PointResult& result);

/// What one point's runs come to.
struct Summary {
  Spread gigabytes;              ///< Per second, of 10^9 bytes.
  Spread operations;             ///< Per second.
  Histogram latency;             ///< Of all runs.
  double cpu = 0, peer_cpu = 0;  ///< Seconds for each GB.
  Copies copies;
  std::map<std::string, double> rails;  ///< The share of the bytes that each carried.
  Findings findings;
  bool overloaded = false, ended_by_time = false;
  /// What the slowest and the fastest initiator had of all initiators' speeds: medians of the runs.
  double least_share = 1, greatest_share = 1;
  std::vector<double> shares;              ///< What each had, likewise.
  std::map<std::string, Interval> ratios;  ///< To the baselines.
  std::map<std::string, LatencyRatios> latency_ratios;
};

Summary summarize(const PointResult& result);

}  // namespace weft::perf
