// What a unit costs the engine when there are few of them, and when there are many.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/output.hpp"
#include "report/spread.hpp"
#include "scale/curves.hpp"
#include "scale/points.hpp"
#include "shared/options.hpp"
#include "shared/sides.hpp"

namespace {

using weft::Deadline;
using weft::Result;
using weft::perf::Cost;
using weft::perf::Costs;
using weft::perf::Dimension;
namespace bench = weft::perf::bench;

struct Options {
  std::vector<std::string> dimensions;
  std::vector<std::size_t> counts;
  unsigned repeats = 3;
  weft::Nanoseconds timeout = std::chrono::seconds(300);
  bool json = false;
  bool here = false;
  std::string plot;
};

/// Of all rounds.
struct Measured {
  std::vector<double> ns;
  Cost last;
};
/// By count, then by what was done.
using Points = std::map<std::size_t, std::map<std::string, Measured>>;
using Results = std::vector<std::pair<const Dimension*, Points>>;

nlohmann::json as_json(const Costs& costs) {
  nlohmann::json all;
  for (const auto& [what, cost] : costs)
    all[what] = {cost.ns, cost.bytes, cost.resident, cost.allocations};
  return all;
}

Costs from_json(const std::string& line) {
  Costs costs;
  const auto all = nlohmann::json::parse(line);
  for (const auto& [what, cost] : all.items()) costs[what] = {cost[0], cost[1], cost[2], cost[3]};
  return costs;
}

/// In a process of its own.
Result<Costs> measure_anew(const Dimension& dimension, std::size_t count, Deadline deadline) {
  weft::perf::Pipe result;
  const weft::perf::Side measuring([&] {
    const auto costs = dimension.measure(count, deadline);
    weft::perf::write_line(result.write_end(),
                           costs ? as_json(*costs).dump() : "error " + costs.error().to_string());
  });
  return weft::perf::read_line(result.read_end(), deadline).map(from_json);
}

std::vector<std::size_t> counts_of(const Dimension& dimension, const Options& options) {
  std::vector<std::size_t> counts = options.counts.empty() ? dimension.counts : options.counts;
  std::erase_if(counts, [&](std::size_t count) { return count == 0 || count > dimension.most; });
  return counts;
}

bool wanted(const Dimension& dimension, const Options& options) {
  return options.dimensions.empty() ||
         std::find(options.dimensions.begin(), options.dimensions.end(), dimension.name) !=
             options.dimensions.end();
}

/// The counts take turns, so that drift of the machine hits all alike.
Result<Points> measure_all(const Dimension& dimension, const Options& options) {
  Points points;
  for (unsigned round = 0; round < options.repeats; ++round)
    for (const std::size_t count : counts_of(dimension, options)) {
      const Deadline deadline = Deadline::in(options.timeout);
      const auto costs = options.here ? dimension.measure(count, deadline)
                                      : measure_anew(dimension, count, deadline);
      if (!costs)
        return weft::fail(costs.error().code(),
                          fmt::format("{} {}: {}", count, dimension.name, costs.error().message()));
      for (const auto& [what, cost] : *costs) {
        Measured& measured = points[count][what];
        measured.ns.push_back(cost.ns);
        measured.last = cost;
      }
    }
  return points;
}

std::string in_unit(double ns) {
  if (ns < 1e4) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e7) return fmt::format("{:.0f} us", ns / 1e3);
  return fmt::format("{:.0f} ms", ns / 1e6);
}

std::string cell(const Measured& measured) {
  const auto [median, least, greatest] = weft::perf::spread_of(measured.ns);
  return fmt::format("{} ({}-{}), {:.0f} B, {:.0f} r, {:.1f} a", in_unit(median), in_unit(least),
                     in_unit(greatest), measured.last.bytes, measured.last.resident,
                     measured.last.allocations);
}

void print(const Dimension& dimension, const Points& points) {
  if (points.empty()) return;
  fmt::print("{}: {}\n", dimension.name, dimension.meaning);
  for (const auto& [what, first] : points.begin()->second) {
    fmt::print("  {}\n", what);
    for (const auto& [count, costs] : points)
      fmt::print("    {:>9}  {}\n", count, cell(costs.at(what)));
  }
  fmt::print("\n");
}

nlohmann::json as_json(const Results& results) {
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [dimension, points] : results)
    for (const auto& [count, costs] : points)
      for (const auto& [what, measured] : costs) {
        const auto spread = weft::perf::spread_of(measured.ns);
        rows.push_back({{"of", dimension->name},
                        {"count", count},
                        {"what", what},
                        {"ns", {spread.median, spread.least, spread.greatest}},
                        {"bytes", measured.last.bytes},
                        {"resident", measured.last.resident},
                        {"allocations", measured.last.allocations}});
      }
  return rows;
}

/// A row of pictures, one for each dimension.
struct Row {
  std::string data, drawn;
  std::size_t pictures = 0;
};

/// `line`: one of a curve's points, as gnuplot reads it. `prefix`: of the names of the first
/// picture's data; no two rows share one.
Row row_of(const Results& results, char prefix, std::string_view how,
           const std::function<std::string(std::size_t, const Measured&)>& line) {
  Row row;
  for (const auto& [dimension, points] : results) {
    weft::perf::Curves curves;
    for (const auto& [count, costs] : points)
      for (const auto& [what, measured] : costs) curves.add(what, line(count, measured));
    row.data += curves.data(prefix);
    row.drawn += fmt::format("set xlabel '{}'\n{}", dimension->name, curves.plot(prefix, how));
    ++prefix, ++row.pictures;
  }
  return row;
}

/// Time above, and bytes below: 1 stands for none, as logarithmic axes have no 0.
std::string plot_script(const Results& results) {
  const Row times = row_of(results, 'a', "using 1:2:3:4 with yerrorlines",
                           [](std::size_t count, const Measured& measured) {
                             const auto [median, least, greatest] =
                                 weft::perf::spread_of(measured.ns);
                             return fmt::format("{} {} {} {}\n", count, median, least, greatest);
                           });
  const Row bytes = row_of(
      results, 'A', "using 1:2 with linespoints", [](std::size_t count, const Measured& measured) {
        return fmt::format("{} {}\n", count, std::max(1.0, measured.last.bytes));
      });
  return fmt::format(
      "set terminal svg size {},1000 background rgb 'white'\n{}{}"
      "set logscale xy\nset grid\nset key outside below\n"
      "set multiplot layout 2,{}\n"
      "set ylabel 'ns of a unit'\n{}"
      "set ylabel 'bytes that a unit keeps allocated (1: none)'\n{}"
      "unset multiplot\n",
      450 * times.pictures, times.data, bytes.data, times.pictures, times.drawn, bytes.drawn);
}

Result<void> write_plot(const Results& results, const std::string& path) {
  return weft::perf::drawn_by_gnuplot(plot_script(results))
      .and_then(
          [&](const std::string& picture) { return weft::tool::write_output(path, picture); });
}

/// Before minutes are spent on measuring.
Result<void> check_plot(const std::string& path) {
  if (path.empty()) return {};
  return weft::tool::check_output(path).and_then(weft::perf::check_gnuplot);
}

/// Counts that a dimension does not go to.
void tell_left_out(const Dimension& dimension, const Options& options) {
  for (const std::size_t count : options.counts)
    if (count > dimension.most)
      fmt::print(stderr, "weft-scale: {} {} are left out: {} are the most\n", count, dimension.name,
                 dimension.most);
}

Result<void> run(const Options& options) {
  if (auto checked = check_plot(options.plot); !checked) return checked;
  Results results;
  for (const Dimension& dimension : weft::perf::dimensions()) {
    if (!wanted(dimension, options)) continue;
    tell_left_out(dimension, options);
    auto points = measure_all(dimension, options);
    if (!points) return weft::fail(std::move(points.error()));
    if (!options.json) print(dimension, *points);
    std::fflush(stdout);
    if (!points->empty()) results.emplace_back(&dimension, std::move(*points));
  }
  if (results.empty())
    return weft::fail(weft::Code::invalid_argument, "no count is left to be measured");
  if (options.json) fmt::print("{}\n", as_json(results).dump(2));
  if (options.plot.empty()) return {};
  return write_plot(results, options.plot);
}

/// Makes the process's table of descriptors large at once. The kernel makes a larger one when the
/// 64th and the 256th are opened, and waits then until no thread can be in the old one: 5 to 20 ms,
/// which would count to whichever unit had bad luck. It has no larger one where it has a low limit.
void grow_table_of_descriptors() {
  constexpr int high = 1000;
  (void)::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, high);
}

}  // namespace

int main(int argc, char** argv) {
  grow_table_of_descriptors();
  Options options;
  std::vector<std::string> names;
  for (const Dimension& each : weft::perf::dimensions()) names.push_back(each.name);
  CLI::App app{
      "What a unit costs the engine, by the number of peers, segments, blocks of a transfer, "
      "transfers and rails. Time is the median (least-greatest) of rounds in fresh processes; B "
      "are bytes that stay allocated, r those of them that became resident, a allocations. Rails "
      "are tcp's and move nothing: what is "
      "left "
      "is the engine's own cost. Each round of progress is driven by the caller."};
  app.option_defaults()->always_capture_default();
  app.add_option("--of", options.dimensions, "Which of them; all if there are none")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  app.add_option("--counts", options.counts, "How many units, instead of the usual")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  bench::OptionGroup group(app, "Options");
  bench::add_repeats(group, options.repeats);
  add_timeout(group, options.timeout);
  app.add_flag("--json", options.json, "Print JSON");
  app.add_flag("--here", options.here, "Measure in this process: for callgrind");
  app.add_option("--plot", options.plot, "Draw it there, as SVG; needs gnuplot");
  CLI11_PARSE(app, argc, argv);

  const auto ended = run(options);
  if (ended) return 0;
  fmt::print(stderr, "weft-scale: {}\n", ended.error().to_string());
  return 1;
}
