#include "report/summary.hpp"

#include <algorithm>

namespace weft::perf {
namespace {

template <typename Figure>
std::vector<double> each_of(const std::vector<Run>& runs, Figure&& figure) {
  std::vector<double> values;
  for (const Run& run : runs) values.push_back(figure(run));
  return values;
}

/// In ns, one for each run.
std::vector<double> quantiles_of(const std::vector<Run>& runs, double share) {
  return each_of(runs, [&](const Run& run) {
    return static_cast<double>(run.latency.quantile(share).count());
  });
}

/// What each initiator had of all their speeds.
std::vector<double> shares_of(const Run& run) {
  std::vector<double> shares;
  double all = 0;
  for (const Share& share : run.shares) all += share.gigabytes_per_second();
  for (const Share& share : run.shares)
    shares.push_back(all > 0 ? share.gigabytes_per_second() / all : 0);
  if (shares.empty()) shares.push_back(1);
  return shares;
}

/// What is of all runs together: a run counts for as much as it moved.
void add_runs(const std::vector<Run>& runs, Summary& sum) {
  double bytes = 0, on_rails = 0, cpu = 0, peer_cpu = 0, copied = 0;
  for (const Run& run : runs) {
    const auto moved = static_cast<double>(run.bytes);
    sum.latency.add(run.latency);
    bytes += moved;
    cpu += run.cpu_seconds;
    peer_cpu += run.peer_cpu_seconds;
    copied += run.copies.per_byte * moved;
    sum.copies.known = sum.copies.known && run.copies.known;
    sum.overloaded = sum.overloaded || run.overloaded;
    sum.ended_by_time = sum.ended_by_time || run.ended_by_time;
    sum.findings.checked += run.findings.checked;
    sum.findings.wrong += run.findings.wrong;
    if (sum.findings.first.empty()) sum.findings.first = run.findings.first;
    for (const auto& [rail, carried] : run.rails) {
      sum.rails[rail] += static_cast<double>(carried);
      on_rails += static_cast<double>(carried);
    }
  }
  for (auto& [rail, share] : sum.rails) share /= on_rails;
  if (bytes == 0) return;
  sum.cpu = cpu / (bytes / 1e9);
  sum.peer_cpu = peer_cpu / (bytes / 1e9);
  sum.copies.per_byte = copied / bytes;
}

}  // namespace

std::string place_of(const Share& share) {
  return share.at.empty() ? "here" : share.at;
}

bool is_spread(const PointResult& result) {
  return !result.runs.empty() &&
         std::ranges::any_of(result.runs.back().shares,
                             [](const Share& share) { return !share.at.empty(); });
}

Summary summarize(const PointResult& result) {
  Summary sum;
  const auto each = [&](auto&& figure) { return each_of(result.runs, figure); };
  const auto speeds = each([](const Run& run) { return run.gigabytes_per_second(); });
  sum.gigabytes = spread_of(speeds);
  sum.operations = spread_of(each([](const Run& run) { return run.operations_per_second(); }));
  sum.least_share = median(each([](const Run& run) { return std::ranges::min(shares_of(run)); }));
  sum.greatest_share =
      median(each([](const Run& run) { return std::ranges::max(shares_of(run)); }));
  const std::size_t initiators = result.runs.empty() ? 0 : result.runs.back().shares.size();
  for (std::size_t i = 0; i < initiators; ++i)
    sum.shares.push_back(median(each([&](const Run& run) { return shares_of(run).at(i); })));
  add_runs(result.runs, sum);
  for (const auto& [name, values] : result.baselines)
    sum.ratios[name] = paired_ratio(speeds, values);
  for (const auto& [name, latencies] : result.latencies)
    sum.latency_ratios[name] = {paired_ratio(quantiles_of(result.runs, 0.5), latencies.p50),
                                paired_ratio(quantiles_of(result.runs, 0.99), latencies.p99)};
  return sum;
}

}  // namespace weft::perf
