// What a sweep has measured so far.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "measure/run.hpp"
#include "report/statistics.hpp"

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

/// How a sweep came to its end.
struct Ending {
  std::string how = "complete";  ///< Or "interrupted", "failed".
  std::string why;
};

/// The whole as one document, which says what was measured where and how.
Json document(const std::vector<PointResult>& results, const Json& settings, const Json& machines,
              const Ending& ending);

/// The version of that document; readers refuse others.
constexpr int document_version = 1;

/// A document out of a file. `not_found`, or `protocol_mismatch` if it is none.
Result<Json> read_document(const std::string& path);

/// A line for each point, below one with the columns' names: what was measured, and with what
/// settings, on which machines and with which versions. Where several machines are on a side and
/// differ, a column has what all of them say.
std::string csv(const std::vector<PointResult>& results, const Json& settings,
                const Json& machines);

/// The lines of a table for people.
std::string table_head(const std::vector<std::string>& baselines);
std::string table_row(const PointResult& result);
/// What the columns mean, and what on these machines may have been in the way, for below a table.
std::string table_foot(const std::vector<PointResult>& results, const Json& machines);

/// "write 64.00 KiB x16 random, window 4".
std::string title(const Point& point);
/// The same without the size, for what is shown against it.
std::string series_title(const Point& point);

}  // namespace weft::perf
