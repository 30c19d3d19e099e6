// Measures all points, again and again.
#pragma once

#include <functional>
#include <stop_token>
#include <vector>

#include "baseline/baseline.hpp"
#include "measure/point_result.hpp"

namespace weft::perf {

struct SweepOptions {
  RunOptions run;
  unsigned repeats = 8;  ///< What compare() needs for some twenty points.
  std::vector<Baseline> baselines;
};

/// Where a sweep is.
struct Step {
  std::size_t done = 0, total = 0;  ///< Runs.
  unsigned repeat = 0;              ///< From 0 on.
  const Point* point = nullptr;
  double seconds_left = 0;  ///< If the rest takes as long as what is done; 0: not known yet.
  double gigabytes = 0;     ///< A second, in the run before; 0: there was none.
};

/// Each repeat measures every point once, right after its baselines, so that drift of the machine
/// hits all alike. What was measured before an error stays in `results`.
/// A stop ends all within a second, as `cancelled`, if the controls are interrupted as well.
class Sweep {
 public:
  Sweep(Sides& sides, const Site& site, const SweepOptions& options, std::vector<Point> points);

  std::function<void(const Step&)> before_run = [](const Step&) {};
  /// Once for each point, when it has had its last run.
  std::function<void(const PointResult&)> point_done = [](const PointResult&) {};

  Result<void> run(const std::stop_token& stop);
  const std::vector<PointResult>& results() const noexcept { return results_; }

 private:
  Result<void> close();
  Result<void> measure(PointResult& result, std::uint64_t seed, const std::stop_token& stop);
  Result<Measured> measure(const Baseline& baseline, const PointResult& result,
                           const std::stop_token& stop);

  Sides& sides_;
  const Site& site_;
  const SweepOptions& options_;
  std::vector<PointResult> results_;
  std::optional<Session> session_;
};

}  // namespace weft::perf
