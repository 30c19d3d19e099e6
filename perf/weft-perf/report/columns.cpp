#include "report/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "baseline/baseline.hpp"
#include "common/printable.hpp"
#include "common/units.hpp"
#include "report/title.hpp"

namespace weft::perf {
namespace {

/// Four digits: spreads of all sizes are as wide as each other.
std::string four_digits(double value) {
  const int decimals = value < 10 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string spread_text(const Spread& spread) {
  return fmt::format("{} ({}-{})", four_digits(spread.median), four_digits(spread.least),
                     four_digits(spread.greatest));
}

std::string microseconds(Nanoseconds time) {
  const double value = static_cast<double>(time.count()) / 1e3;
  return value < 100 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

std::string ratio_text(const Interval& ratio, Ratios how) {
  if (how == Ratios::middles) return fmt::format("{:.2f}", ratio.middle);
  return fmt::format("{:.2f} ({:.2f}-{:.2f})", ratio.middle, ratio.low, ratio.high);
}

std::string copies_text(const PointResult& result, const Summary& sum) {
  if (!in_ledger(result.point.work)) return "-";
  return fmt::format("{:.2f}{}", sum.copies.per_byte, sum.copies.known ? "" : "+");
}

std::string rails_text(const Summary& sum) {
  std::string text;
  for (const auto& [rail, share] : sum.rails)
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", rail, 100 * share);
  return text;
}

Column latency(std::string name, unsigned rank, double share) {
  return {std::move(name), 7, rank, [share](const PointResult&, const Summary& sum) {
            return microseconds(sum.latency.quantile(share));
          }};
}

/// A ratio to a baseline, which a point may lack after a failure.
Column ratio(std::string name, unsigned rank, Ratios how,
             std::function<const Interval*(const Summary&)> of) {
  constexpr std::size_t interval_width = 18, middle_width = 5;
  const std::size_t width =
      how == Ratios::intervals ? interval_width : std::max(name.size(), middle_width);
  return {std::move(name), width, rank,
          [how, of = std::move(of)](const PointResult&, const Summary& sum) {
            const Interval* const found = of(sum);
            return found == nullptr ? "-" : ratio_text(*found, how);
          }};
}

void add_baseline(const std::string& name, Ratios how, std::vector<Column>& columns) {
  const auto latency_ratio = [&](const char* quantile, Interval LatencyRatios::*which) {
    columns.push_back(
        ratio(fmt::format("{} to {}", quantile, name), 8, how, [name, which](const Summary& sum) {
          const auto found = sum.latency_ratios.find(name);
          return found == sum.latency_ratios.end() ? nullptr : &(found->second.*which);
        }));
  };
  columns.push_back(ratio("to " + name, 1, how, [name](const Summary& sum) {
    const auto found = sum.ratios.find(name);
    return found == sum.ratios.end() ? nullptr : &found->second;
  }));
  if (!notes_latency(name)) return;
  latency_ratio("p50", &LatencyRatios::p50);
  latency_ratio("p99", &LatencyRatios::p99);
}

/// Of initiators that are not all on this machine.
std::string places_text(const PointResult& result, const Summary& sum) {
  std::string text;
  for (std::size_t i = 0; i < sum.shares.size(); ++i)
    text +=
        fmt::format("{}{} {:.1f} %", i == 0 ? "from " : ", ",
                    tool::printable(place_of(result.runs.back().shares[i])), 100 * sum.shares[i]);
  return text;
}

/// Whether the provider's bytes go through sockets of the kernel's; by libfabric's name for it.
bool by_sockets(const PointResult& result) {
  return result.provider == "net" || result.provider.starts_with("tcp");
}

/// The first of those machines' congestion controls that holds streams back; empty: none. BBR may
/// take a loopback stream for slower than it is, and paces it accordingly.
std::string holds_back(const Json& machines) {
  const Json facts = machines.flatten();
  for (const auto& [path, value] : facts.items())
    if (path.ends_with("/congestion_control") && value.is_string())
      if (auto name = value.get<std::string>(); name.starts_with("bbr")) return name;
  return {};
}

double greatest_clock_error(const std::vector<PointResult>& results) {
  double error = 0;
  for (const PointResult& result : results)
    for (const Run& run : result.runs)
      for (const Share& share : run.shares) error = std::max(error, share.clock_error);
  return error;
}

std::uint64_t bytes_checked(const std::vector<PointResult>& results) {
  std::uint64_t checked = 0;
  for (const PointResult& result : results)
    for (const Run& run : result.runs) checked += run.findings.checked;
  return checked;
}

bool any_run(const std::vector<PointResult>& results, bool Run::*flag) {
  return std::ranges::any_of(results, [&](const PointResult& result) {
    return std::ranges::any_of(result.runs, [&](const Run& run) { return run.*flag; });
  });
}

}  // namespace

std::vector<Column> columns_of(const std::vector<std::string>& baselines, Ratios ratios) {
  std::vector<Column> columns;
  columns.push_back({"GB/s", 19, 0, [](const PointResult&, const Summary& sum) {
                       return spread_text(sum.gigabytes);
                     }});
  columns.push_back({"Gb/s", 7, 5, [](const PointResult&, const Summary& sum) {
                       return fmt::format("{:.2f}", 8 * sum.gigabytes.median);
                     }});
  columns.push_back({"op/s", 8, 4, [](const PointResult&, const Summary& sum) {
                       return fmt::format("{:.0f}", sum.operations.median);
                     }});
  columns.push_back(latency("p50 us", 0, 0.5));
  columns.push_back(latency("p90", 7, 0.9));
  columns.push_back(latency("p99", 0, 0.99));
  columns.push_back(latency("p99.9", 6, 0.999));
  columns.push_back({"max", 7, 7, [](const PointResult&, const Summary& sum) {
                       return microseconds(sum.latency.greatest());
                     }});
  columns.push_back({"CPU s/GB", 11, 2, [](const PointResult&, const Summary& sum) {
                       return fmt::format("{:.2f}+{:.2f}", sum.cpu, sum.peer_cpu);
                     }});
  columns.push_back({"copies", 6, 3, copies_text});
  for (const std::string& name : baselines) add_baseline(name, ratios, columns);
  columns.push_back(
      {"rails", 22, 9, [](const PointResult&, const Summary& sum) { return rails_text(sum); }});
  return columns;
}

std::string label_of(const PointResult& result) {
  return result.provider + " " + title(result.point);
}

std::vector<std::string> remarks_on(const PointResult& result, const Summary& sum) {
  std::vector<std::string> remarks;
  if (is_spread(result))
    remarks.push_back(places_text(result, sum));
  else if (result.point.initiators > 1)
    remarks.push_back(
        fmt::format("each {:.1f}-{:.1f} %", 100 * sum.least_share, 100 * sum.greatest_share));
  if (sum.latency.count() == 0) remarks.emplace_back("NO OPERATION CAME");
  if (sum.overloaded) remarks.emplace_back("OVERLOADED");
  if (sum.ended_by_time) remarks.emplace_back("ENDED BY TIME");
  if (sum.findings.wrong > 0)
    remarks.push_back(
        fmt::format("{} BYTES WRONG: {}", sum.findings.wrong, tool::printable(sum.findings.first)));
  return remarks;
}

std::vector<std::string> explanations(const std::vector<Column>& columns,
                                      const std::vector<PointResult>& results,
                                      const Json& machines) {
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(columns, [&](const Column& each) { return each.name == name; });
  };
  std::string figures = fmt::format(
      "GB/s (10^9 bytes): median (least-greatest) of the repeats. Latencies: of all operations of "
      "all repeats, histogram error at most {:.1f} %{}.",
      100 * Histogram::error_bound, has("max") ? "; max is exact" : "");
  if (has("CPU s/GB")) figures += " CPU: this side + the target.";
  if (has("copies"))
    figures +=
        " Copies: of each byte, on both sides together, by the engines' ledgers; + means that "
        "there may be more.";
  std::vector<std::string> texts{std::move(figures)};
  if (!baselines_of(results).empty())
    texts.emplace_back("Ratios: median of the repeats' (bootstrap, 95 % confidence).");
  if (std::ranges::any_of(results, [](const auto& each) { return each.point.initiators > 1; }))
    texts.emplace_back(
        "Several initiators: their bytes from the first begin of any to the last end of any; each: "
        "what the slowest and the fastest had of all their speeds. CPU: all initiators + all "
        "targets.");
  if (std::ranges::any_of(results, is_spread))
    texts.push_back(fmt::format(
        "From: where each initiator is, and what it had of all their speeds (median). Clocks of "
        "others are set against this machine's before each run, {:.3f} ms off at most.",
        1e3 * greatest_clock_error(results)));
  if (any_run(results, &Run::overloaded))
    texts.emplace_back(
        "OVERLOADED: operations came faster than they could be served; the latencies are those of "
        "a queue that grew, and what waited in it when the time was over was not carried out.");
  if (any_run(results, &Run::ended_by_time))
    texts.emplace_back(
        "ENDED BY TIME: the time (--time) was over before so many operations (--count) had "
        "begun.");
  if (const std::string name = holds_back(machines);
      !name.empty() && std::ranges::any_of(results, by_sockets))
    texts.push_back(fmt::format(
        "The kernel's congestion control {} may hold a stream at a third of its speed over "
        "loopback, once in a while and then for long (sysctl net.ipv4.tcp_congestion_control; "
        "reno does not).",
        tool::printable(name)));
  if (const std::uint64_t checked = bytes_checked(results); checked > 0)
    texts.push_back(fmt::format("{} were compared on both sides, with what lies around them.",
                                tool::binary_bytes(checked)));
  return texts;
}

std::vector<std::string> baselines_of(const std::vector<PointResult>& results) {
  std::set<std::string> names;
  for (const PointResult& result : results)
    for (const auto& [name, values] : result.baselines) names.insert(name);
  return {names.begin(), names.end()};
}

}  // namespace weft::perf
