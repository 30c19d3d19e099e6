#include "compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "report/spread.hpp"
#include "report/statistics.hpp"
#include "report/title.hpp"

namespace weft::perf {
namespace {

/// Of naming a change where there is none, for all figures together.
constexpr double risk = 0.01;

struct Figure {
  const char* name;
  bool more_is_better;
  double (*of)(const Json& run);
};

constexpr Figure figures[figures_of_a_point] = {
    {"GB/s", true, [](const Json& run) { return run.at("gigabytes_per_second").get<double>(); }},
    {"p50", false, [](const Json& run) { return run.at("latency_ns").at("p50").get<double>(); }},
    {"p99", false, [](const Json& run) { return run.at("latency_ns").at("p99").get<double>(); }}};

std::vector<double> values_of(const Json& point, const Figure& figure) {
  std::vector<double> values;
  for (const Json& run : point.at("runs")) values.push_back(figure.of(run));
  return values;
}

Change change_of(const Json& before, const Json& now, const Figure& figure) {
  const auto provider = now.at("provider").get<std::string>();
  Change change{provider + " " + title(now.at("point").get<Point>()), figure.name,
                figure.more_is_better};
  const auto old_values = values_of(before, figure), new_values = values_of(now, figure);
  const double middle = median(old_values);
  if (middle > 0) change.ratio = median(new_values) / middle;
  change.chance = rank_test(new_values, old_values);
  change.least_chance = least_rank_test(new_values.size(), old_values.size());
  return change;
}

/// The rarest by chance first, each against its share of the risk; the first that is not rare
/// enough ends it (Holm).
void judge(std::vector<Change>& changes, double threshold) {
  std::vector<Change*> order;
  const auto count = static_cast<double>(changes.size());
  for (Change& change : changes) {
    if (!change.ratio || change.least_chance > risk / count) continue;
    change.verdict = Verdict::same;
    order.push_back(&change);
  }
  std::sort(order.begin(), order.end(),
            [](const Change* a, const Change* b) { return a->chance < b->chance; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    Change& change = *order[i];
    if (change.chance > risk / static_cast<double>(order.size() - i)) return;
    if (std::abs(*change.ratio - 1) <= threshold) continue;
    change.verdict =
        (*change.ratio > 1) == change.more_is_better ? Verdict::better : Verdict::worse;
  }
}

/// What a run is like with them.
bool differ_in_runs(const Json& old_results, const Json& new_results) {
  const Json before = old_results.value("settings", Json::object());
  const Json now = new_results.value("settings", Json::object());
  constexpr const char* names[] = {"seconds", "count", "warm_up_seconds", "verify"};
  return std::any_of(std::begin(names), std::end(names), [&](const char* name) {
    return before.value(name, Json()) != now.value(name, Json());
  });
}

/// The points of a document, the first of those that are alike. As they would be written today,
/// since older documents lack what is younger than they are.
class Points {
 public:
  explicit Points(const Json& results) {
    for (const Json& each : results.at("points")) points_.emplace(key(each), &each);
  }
  /// The same point; null: it is not there.
  const Json* find(const Json& wanted) const {
    const auto found = points_.find(key(wanted));
    return found == points_.end() ? nullptr : found->second;
  }

 private:
  static std::string key(const Json& of) {
    return of.at("provider").dump() + Json(of.at("point").get<Point>()).dump();
  }
  std::unordered_map<std::string, const Json*> points_;
};

/// Takes out of machines what each says of its environment, which is set for one run.
std::vector<Json> take_environments(Json& machines) {
  std::vector<Json> taken;
  if (machines.is_object() && machines.contains("environment")) {
    taken.push_back(std::move(machines.at("environment")));
    machines.erase("environment");
  }
  if (!machines.is_structured()) return taken;
  for (Json& each : machines)
    for (Json& environment : take_environments(each)) taken.push_back(std::move(environment));
  return taken;
}

/// Older documents don't say what the environment was.
void compare_machines(Json before, Json now, Comparison& comparison) {
  const auto old_ones = take_environments(before), new_ones = take_environments(now);
  comparison.other_machine = before != now;
  comparison.other_environment = !old_ones.empty() && !new_ones.empty() && old_ones != new_ones;
}

const char* word(Verdict verdict) {
  constexpr const char* words[] = {"same", "better", "WORSE", "unknown"};
  return words[static_cast<std::size_t>(verdict)];
}

std::string points_were(std::size_t count) {
  return count == 1 ? "1 point was" : fmt::format("{} points were", count);
}

std::string figure_text(const Change& change) {
  return fmt::format("{:>5}  {:.3f} (by chance: {:.2g})  {}", change.figure, *change.ratio,
                     change.chance, word(change.verdict));
}

}  // namespace

bool Comparison::regressed() const {
  return std::any_of(changes.begin(), changes.end(),
                     [](const Change& change) { return change.verdict == Verdict::worse; });
}

bool Comparison::tells() const {
  return std::any_of(changes.begin(), changes.end(),
                     [](const Change& change) { return change.verdict != Verdict::unknown; });
}

Result<void> check_baseline(const Json& results, const std::string& name) {
  if (results.value("ended", "") == "failed")
    return fail(Code::invalid_argument,
                fmt::format("the sweep in {} failed: {}", name, results.value("error", "unknown")));
  for (const Json& point : results.at("points"))
    if (point.value("bytes_wrong", 0) != 0)
      return fail(Code::invalid_argument, fmt::format("{} has a point with wrong bytes: {}", name,
                                                      title(point.at("point").get<Point>())));
  return {};
}

Result<Comparison> compare(const Json& old_results, const Json& new_results, double threshold) {
  try {
    Comparison comparison;
    compare_machines(old_results.at("machines"), new_results.at("machines"), comparison);
    comparison.other_settings = differ_in_runs(old_results, new_results);
    const Points old_points(old_results), new_points(new_results);
    for (const Json& now : new_results.at("points")) {
      const Json* const before = old_points.find(now);
      if (before == nullptr) {
        ++comparison.unmatched;
        continue;
      }
      for (const Figure& figure : figures)
        comparison.changes.push_back(change_of(*before, now, figure));
      comparison.fewest_runs =
          std::min({comparison.fewest_runs, before->at("runs").size(), now.at("runs").size()});
    }
    for (const Json& before : old_results.at("points"))
      if (new_points.find(before) == nullptr) ++comparison.gone;
    judge(comparison.changes, threshold);
    return comparison;
  } catch (const Json::exception& error) {
    return fail(Code::protocol_mismatch, fmt::format("these are no results: {}", error.what()));
  }
}

std::size_t runs_needed(std::size_t figures) {
  std::size_t runs = 1;
  while (least_rank_test(runs, runs) > risk / static_cast<double>(figures)) ++runs;
  return runs;
}

std::string text_of(const Comparison& comparison, std::size_t width) {
  constexpr std::size_t figures_width = 54;
  std::string text;
  std::size_t same = 0, few = 0, zero = 0;
  for (const Change& change : comparison.changes) {
    same += change.verdict == Verdict::same ? 1 : 0;
    zero += change.ratio ? 0 : 1;
    few += change.verdict == Verdict::unknown && change.ratio ? 1 : 0;
    if (change.verdict == Verdict::better || change.verdict == Verdict::worse)
      text += change.point.size() + figures_width <= width
                  ? fmt::format("{:<44} {}\n", change.point, figure_text(change))
                  : tool::hanging("", change.point, width) + "    " + figure_text(change) + "\n";
  }
  const std::size_t figures = comparison.changes.size();
  std::string sum = fmt::format(
      "{} of {} figures are as before (new by old, 99 % confidence for all)", same, figures);
  if (few > 0)
    sum += fmt::format("; can't tell of {}: {} repeats, and {} are needed on both sides", few,
                       comparison.fewest_runs, runs_needed(figures));
  if (zero > 0) sum += fmt::format("; can't tell of {}: they were 0 before", zero);
  if (comparison.unmatched > 0)
    sum += fmt::format("; {} not measured before", points_were(comparison.unmatched));
  if (comparison.gone > 0)
    sum += fmt::format("; {} measured before alone", points_were(comparison.gone));
  if (comparison.other_machine) sum += "; the machines or versions differ";
  if (comparison.other_environment) sum += "; variables of the environment differ";
  if (comparison.other_settings) sum += "; --time, --count, --warm-up or --verify differ";
  return text + tool::hanging("", sum + ".", width);
}

}  // namespace weft::perf
