#include "demo/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "common/layout.hpp"
#include "common/names.hpp"
#include "common/units.hpp"
#include "look/comparison.hpp"

namespace weft::tool {
namespace {

double per_second(std::uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0;
}

double ratio(std::uint64_t a, std::uint64_t b) {
  return b > 0 ? static_cast<double>(a) / static_cast<double>(b) : 0;
}

/// The provider that carried the bytes: "shm" of "shm:0".
std::string provider_of(const std::string& rail) {
  return rail.substr(0, rail.find(':'));
}

std::string path_of(const Movement& movement) {
  if (movement.rails.empty()) return "none";
  return fmt::format("{}, {}", provider_of(movement.rails.front().rail), movement.transport);
}

std::string rail_shares(const Movement& movement, std::uint64_t bytes) {
  std::vector<std::string> shares;
  for (const auto& share : movement.rails)
    shares.push_back(fmt::format("{} {:.0f} %", share.rail, 100 * ratio(share.bytes, bytes)));
  return fmt::format("{}", fmt::join(shares, ", "));
}

RunReport read_report(const Json& json) {
  RunReport report;
  report.command = json.at("command").get<std::string>();
  report.model = json.at("model").get<std::string>();
  report.dtype = json.at("dtype").get<std::string>();
  report.memory = json.at("memory").get<std::string>();
  report.tokens = json.at("tokens").get<std::uint64_t>();
  report.requests = json.at("requests").get<std::uint64_t>();
  report.layer_groups = json.at("layer_groups").get<std::uint32_t>();
  report.bytes = json.at("bytes").get<std::uint64_t>();
  report.first_group = times_from_json(json.at("seconds_to_first_layers"));
  report.request = times_from_json(json.at("seconds_per_request"));
  report.moving_seconds = json.at("seconds_moving").get<double>();
  report.total_seconds = json.at("seconds_total").get<double>();
  report.movement.pieces = json.at("pieces").get<std::uint64_t>();
  report.movement.operations = json.at("operations").get<std::uint64_t>();
  report.movement.transport = json.at("transport").get<std::string>();
  report.movement.route = json.at("route").get<std::string>();
  for (const Json& rail : json.at("rails"))
    report.movement.rails.push_back({rail.at("rail").get<std::string>(),
                                     rail.at("operations").get<std::uint64_t>(),
                                     rail.at("bytes").get<std::uint64_t>()});
  report.bytes_checked = json.at("bytes_checked").get<std::uint64_t>();
  report.bytes_wrong = json.at("bytes_wrong").get<std::uint64_t>();
  report.problem = json.at("problem").get<std::string>();
  if (json.contains("explained")) report.comparison = comparison_from_json(json["explained"]);
  return report;
}

}  // namespace

Json to_json(const RunReport& report) {
  const Movement& movement = report.movement;
  Json rails = Json::array();
  for (const auto& share : movement.rails)
    rails.push_back({{"rail", share.rail},
                     {"operations", share.operations},
                     {"bytes", share.bytes},
                     {"share", ratio(share.bytes, report.bytes)}});
  Json json = {{"command", report.command},
               {"ok", report.problem.empty()},
               {"model", report.model},
               {"dtype", report.dtype},
               {"memory", report.memory},
               {"tokens", report.tokens},
               {"requests", report.requests},
               {"layer_groups", report.layer_groups},
               {"bytes", report.bytes},
               {"seconds_to_first_layers", times_json(report.first_group)},
               {"seconds_per_request", times_json(report.request)},
               {"seconds_moving", report.moving_seconds},
               {"seconds_total", report.total_seconds},
               {"gigabytes_per_second_moving", per_second(report.bytes, report.moving_seconds)},
               {"gigabytes_per_second_total", per_second(report.bytes, report.total_seconds)},
               {"pieces", movement.pieces},
               {"operations", movement.operations},
               {"coalescing_ratio", ratio(movement.pieces, movement.operations)},
               {"path", path_of(movement)},
               {"transport", movement.transport},
               {"route", movement.route},
               {"rails", std::move(rails)},
               {"bytes_checked", report.bytes_checked},
               {"bytes_wrong", report.bytes_wrong},
               {"problem", report.problem}};
  if (report.comparison) json["explained"] = to_json(*report.comparison);
  return json;
}

template <>
Result<RunReport> from_json(const Json& json) {
  try {
    return read_report(json);
  } catch (const Json::exception& error) {
    return fail(Code::protocol_mismatch,
                fmt::format("the other side's report can't be understood: {}", error.what()));
  }
}

std::string table(const RunReport& report) {
  const Movement& movement = report.movement;
  std::string out =
      fmt::format("weft {}: {} in {}, {} of {}\n", report.command, report.model, report.dtype,
                  counted(report.requests, "request"), counted(report.tokens, "token"));
  const auto row = [&](std::string_view name, const std::string& value) {
    out += hanging(fmt::format("  {:<22} ", name), value);
  };
  row("memory", report.memory);
  row("bytes", binary_bytes(report.bytes) + "  (handed over, of all requests)");
  row("time to first layers",
      fmt::format("{}  (min / median / max, the first of {})", times_text(report.first_group),
                  counted(report.layer_groups, "layer group")));
  row("time per request", times_text(report.request) + "  (min / median / max)");
  row("moving", fmt::format("{:.2f} GB/s  ({} in which requests were on their way)",
                            per_second(report.bytes, report.moving_seconds),
                            duration(report.moving_seconds)));
  row("in all",
      fmt::format("{:.2f} GB/s  ({} with filling and checking)",
                  per_second(report.bytes, report.total_seconds), duration(report.total_seconds)));
  row("operations",
      fmt::format("{} posted for {}  ({:.2f} pieces per operation)", grouped(movement.operations),
                  counted(movement.pieces, "piece"), ratio(movement.pieces, movement.operations)));
  row("path", path_of(movement) + "  (" + movement.route + ")");
  row("rails", rail_shares(movement, report.bytes));
  if (report.problem.empty())
    row("checked", fmt::format("{} by decode: every byte right, nothing written elsewhere  (each "
                               "request's blocks, in the end the whole cache)",
                               binary_bytes(report.bytes_checked)));
  else
    row("WRONG", fmt::format("{} of {} bytes; first: {}", grouped(report.bytes_wrong),
                             grouped(report.bytes_checked), report.problem));
  if (report.comparison) out += "\n" + table(*report.comparison);
  return out;
}

void Measurement::request(Clock::time_point start, Clock::time_point first, Clock::time_point end) {
  const std::lock_guard lock(mutex_);
  first_.push_back(std::chrono::duration<double>(first - start).count());
  whole_.push_back(std::chrono::duration<double>(end - start).count());
  intervals_.push_back({start, end});
}

void Measurement::transfer(const weft::Report& report) {
  const std::lock_guard lock(mutex_);
  ledger_.add(report);
  movement_.operations += report.operations;
  movement_.transport = name_of(transport_names, report.transport);
  for (const auto& share : report.rails) {
    const auto known = std::find_if(movement_.rails.begin(), movement_.rails.end(),
                                    [&](const auto& each) { return each.rail == share.rail; });
    if (known == movement_.rails.end()) {
      movement_.rails.push_back(share);
    } else {
      known->operations += share.operations;
      known->bytes += share.bytes;
    }
  }
}

void Measurement::pieces(std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  movement_.pieces += count;
}

void Measurement::findings(const Findings& findings) {
  const std::lock_guard lock(mutex_);
  findings_.add(findings);
}

void Measurement::problem(const std::string& sentence) {
  findings({.first = sentence});
}

/// Requests overlap in time; this counts each moment once.
double Measurement::covered_seconds(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.start < b.start; });
  Clock::duration covered{};
  Clock::time_point until{};
  for (const Interval& each : intervals) {
    const auto start = std::max(each.start, until);
    if (each.end <= start) continue;
    covered += each.end - start;
    until = each.end;
  }
  return std::chrono::duration<double>(covered).count();
}

void Measurement::into(RunReport& report) const {
  const std::lock_guard lock(mutex_);
  report.first_group = spread_of(first_);
  report.request = spread_of(whole_);
  report.moving_seconds = covered_seconds(intervals_);
  const std::string route = report.movement.route;
  report.movement = movement_;
  report.movement.route = route;
  std::sort(report.movement.rails.begin(), report.movement.rails.end(),
            [](const auto& a, const auto& b) { return a.rail < b.rail; });
  report.bytes_checked = findings_.checked;
  report.bytes_wrong = findings_.wrong;
  report.problem = findings_.first;
}

TransferTotals Measurement::ledger() const {
  const std::lock_guard lock(mutex_);
  return ledger_;
}

}  // namespace weft::tool
