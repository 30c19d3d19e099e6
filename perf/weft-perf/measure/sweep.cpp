#include "measure/sweep.hpp"

namespace weft::perf {

Sweep::Sweep(Sides& sides, const Site& site, const SweepOptions& options, std::vector<Point> points)
    : sides_(sides), site_(site), options_(options) {
  for (Point& point : points) results_.push_back({std::move(point), {}, {}, {}});
}

Result<void> Sweep::run(const std::stop_token& stop) {
  const auto start = Clock::now();
  Step step;
  step.total = results_.size() * options_.repeats;
  for (; step.repeat < options_.repeats; ++step.repeat) {
    for (PointResult& result : results_) {
      step.point = &result.point;
      const double passed = std::chrono::duration<double>(Clock::now() - start).count();
      if (step.done > 0)
        step.seconds_left =
            passed / static_cast<double>(step.done) * static_cast<double>(step.total - step.done);
      before_run(step);
      if (auto measured = measure(result, options_.run.seed + step.done, stop); !measured)
        return measured;
      ++step.done;
      step.gigabytes = result.runs.back().gigabytes_per_second();
      if (step.repeat + 1 == options_.repeats) point_done(result);
    }
  }
  return close();
}

/// Of the targets those too that the next session does not need.
Result<void> Sweep::close() {
  if (!session_) return {};
  session_.reset();
  for (Control& target : sides_.targets)
    if (auto closed = target.ask("close"); !closed) return fail(std::move(closed.error()));
  return {};
}

Result<void> Sweep::measure(PointResult& result, std::uint64_t seed, const std::stop_token& stop) {
  if (stop.stop_requested()) return fail(Code::cancelled, "interrupted");
  if (!session_ || !session_->serves(result.point)) {
    if (auto closed = close(); !closed) return closed;
    auto opened = Session::open(sides_, site_, result.point, stop);
    if (!opened) return fail(std::move(opened.error()));
    session_.emplace(std::move(*opened));
  }
  if (result.provider.empty()) result.provider = session_->carrier().provider;
  std::map<std::string, Measured> baselines;
  for (const Baseline& baseline : options_.baselines) {
    auto speed = measure(baseline, result, stop);
    if (!speed) return fail(std::move(speed.error()));
    baselines[baseline.name()] = *speed;
    if (stop.stop_requested()) return fail(Code::cancelled, "interrupted");
  }
  RunOptions options = options_.run;
  options.seed = seed;
  auto run = session_->measure(result.point, options);
  if (!run) return fail(std::move(run.error()));
  result.runs.push_back(std::move(*run));
  for (const auto& [name, measured] : baselines) {
    result.baselines[name].push_back(measured.gigabytes_per_second);
    if (!notes_latency(name)) continue;
    result.latencies[name].p50.push_back(static_cast<double>(measured.p50.count()));
    result.latencies[name].p99.push_back(static_cast<double>(measured.p99.count()));
  }
  return {};
}

Result<Measured> Sweep::measure(const Baseline& baseline, const PointResult& result,
                                const std::stop_token& stop) {
  if (!is_point(baseline.kind))
    return perf::measure(
        baseline, sides_.targets.front(), site_,
        {result.point, session_->carrier(), options_.run.length.time, options_.run.verify}, stop);
  RunOptions options = options_.run;
  options.verify = false;
  const Point beside = baseline.kind == Baseline::Kind::wire ? without_files(result.point)
                                                             : contiguous(result.point);
  return session_->measure(beside, options).map([](const Run& run) {
    return Measured{run.gigabytes_per_second(), {}, {}};
  });
}

}  // namespace weft::perf
