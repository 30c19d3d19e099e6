#include "compare.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weft::perf {
namespace {

constexpr std::size_t least_runs = 4;
constexpr double confidence = 0.99;

struct Figure {
  const char* name;
  bool more_is_better;
  double (*of)(const Json& run);
};

constexpr Figure figures[] = {
    {"GB/s", true, [](const Json& run) { return run.at("gigabytes_per_second").get<double>(); }},
    {"p50", false, [](const Json& run) { return run.at("latency_ns").at("p50").get<double>(); }},
    {"p99", false, [](const Json& run) { return run.at("latency_ns").at("p99").get<double>(); }}};

std::vector<double> values_of(const Json& point, const Figure& figure) {
  std::vector<double> values;
  for (const Json& run : point.at("runs")) values.push_back(figure.of(run));
  return values;
}

Verdict judge(const Interval& ratio, bool more_is_better, double threshold) {
  const bool more = ratio.low > 1 && ratio.middle > 1 + threshold;
  const bool less = ratio.high < 1 && ratio.middle < 1 - threshold;
  if (!more && !less) return Verdict::same;
  return more == more_is_better ? Verdict::better : Verdict::worse;
}

Change change_of(const Json& before, const Json& now, const Figure& figure, double threshold) {
  Change change{title(now.at("point").get<Point>()), figure.name, Verdict::unknown, {}};
  const auto old_values = values_of(before, figure), new_values = values_of(now, figure);
  change.ratio = unpaired_ratio(new_values, old_values, confidence);
  if (std::min(old_values.size(), new_values.size()) >= least_runs)
    change.verdict = judge(change.ratio, figure.more_is_better, threshold);
  return change;
}

const char* word(Verdict verdict) {
  constexpr const char* words[] = {"same", "better", "WORSE", "too few runs to tell"};
  return words[static_cast<std::size_t>(verdict)];
}

}  // namespace

bool Comparison::regressed() const {
  return std::any_of(changes.begin(), changes.end(),
                     [](const Change& change) { return change.verdict == Verdict::worse; });
}

Result<Comparison> compare(const Json& old_results, const Json& new_results, double threshold) {
  try {
    Comparison comparison;
    comparison.other_machine = old_results.at("machines") != new_results.at("machines");
    for (const Json& now : new_results.at("points")) {
      const auto& old_points = old_results.at("points");
      const auto before = std::find_if(old_points.begin(), old_points.end(), [&](const Json& each) {
        return each.at("point") == now.at("point") && each.at("provider") == now.at("provider");
      });
      if (before == old_points.end()) {
        ++comparison.unmatched;
        continue;
      }
      for (const Figure& figure : figures)
        comparison.changes.push_back(change_of(*before, now, figure, threshold));
    }
    return comparison;
  } catch (const Json::exception& error) {
    return fail(Code::protocol_mismatch, fmt::format("these are no results: {}", error.what()));
  }
}

std::string text_of(const Comparison& comparison) {
  std::string text;
  std::size_t same = 0;
  for (const Change& change : comparison.changes) {
    same += change.verdict == Verdict::same ? 1 : 0;
    if (change.verdict == Verdict::same) continue;
    text +=
        fmt::format("{:<44} {:>5}  {:.3f} ({:.3f}-{:.3f})  {}\n", change.point, change.figure,
                    change.ratio.middle, change.ratio.low, change.ratio.high, word(change.verdict));
  }
  text += fmt::format("{} of {} figures are as before (new by old, 99 % confidence)", same,
                      comparison.changes.size());
  if (comparison.unmatched > 0)
    text += fmt::format("; {} points were not measured before", comparison.unmatched);
  if (comparison.other_machine) text += "; the machines or versions differ";
  return text + ".\n";
}

}  // namespace weft::perf
