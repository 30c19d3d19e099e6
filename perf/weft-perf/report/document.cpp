#include "report/document.hpp"

#include <fmt/format.h>

#include <optional>

#include "common/input.hpp"
#include "report/columns.hpp"
#include "report/summary.hpp"
#include "report/title.hpp"

namespace weft::perf {
namespace {

Json spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"least", spread.least}, {"greatest", spread.greatest}};
}

Json latency_json(const Histogram& latency) {
  return {{"p50", latency.quantile(0.5).count()},  {"p90", latency.quantile(0.9).count()},
          {"p99", latency.quantile(0.99).count()}, {"p99.9", latency.quantile(0.999).count()},
          {"max", latency.greatest().count()},     {"mean", latency.mean()},
          {"error_bound", Histogram::error_bound}};
}

Json interval_json(const Interval& interval) {
  return {{"low", interval.low}, {"middle", interval.middle}, {"high", interval.high}};
}

Json share_json(const Share& share) {
  return {{"at", place_of(share)},
          {"operations", share.operations},
          {"bytes", share.bytes},
          {"begun_seconds", share.begun},
          {"clock_error_seconds", share.clock_error},
          {"seconds", share.seconds},
          {"gigabytes_per_second", share.gigabytes_per_second()}};
}

Json run_json(const Run& run) {
  Json json{{"operations", run.operations},
            {"bytes", run.bytes},
            {"seconds", run.seconds},
            {"gigabytes_per_second", run.gigabytes_per_second()},
            {"operations_per_second", run.operations_per_second()},
            {"cpu_seconds", run.cpu_seconds},
            {"peer_cpu_seconds", run.peer_cpu_seconds},
            {"overloaded", run.overloaded},
            {"latency_ns", latency_json(run.latency)}};
  for (const Share& share : run.shares)
    if (run.shares.size() > 1 || !share.at.empty()) json["initiators"].push_back(share_json(share));
  return json;
}

Json shares_json(const PointResult& result, const Summary& sum) {
  Json json{{"least", sum.least_share}, {"greatest", sum.greatest_share}};
  for (std::size_t i = 0; i < sum.shares.size(); ++i)
    json["each"].push_back(
        {{"at", place_of(result.runs.back().shares[i])}, {"share", sum.shares[i]}});
  return json;
}

Json point_json(const PointResult& result) {
  const Summary sum = summarize(result);
  Json json{{"point", result.point},
            {"title", label_of(result)},
            {"series", result.provider + " " + series_title(result.point)},
            {"remarks", remarks_on(result, sum)},
            {"provider", result.provider},
            {"ceiling_gbps", result.runs.back().ceiling_gbps},
            {"gigabytes_per_second", spread_json(sum.gigabytes)},
            {"operations_per_second", spread_json(sum.operations)},
            {"latency_ns", latency_json(sum.latency)},
            {"histogram_ns", sum.latency.buckets()},
            {"cpu_seconds_per_gigabyte", sum.cpu},
            {"peer_cpu_seconds_per_gigabyte", sum.peer_cpu},
            {"copies_per_byte", in_ledger(result.point.work) ? Json(sum.copies.per_byte) : Json()},
            {"all_copies_known", sum.copies.known},
            {"rails", sum.rails},
            {"bytes_checked", sum.findings.checked},
            {"bytes_wrong", sum.findings.wrong},
            {"overloaded", sum.overloaded},
            {"ended_by_time", sum.ended_by_time}};
  if (result.point.initiators > 1) json["shares"] = shares_json(result, sum);
  for (const Run& run : result.runs) json["runs"].push_back(run_json(run));
  for (const auto& [name, values] : result.baselines) {
    json["baselines"][name] = {{"gigabytes_per_second", values},
                               {"ratio", interval_json(sum.ratios.at(name))}};
  }
  for (const auto& [name, latencies] : result.latencies) {
    const LatencyRatios& ratios = sum.latency_ratios.at(name);
    Json& baseline = json["baselines"][name];
    baseline["latency_ns"] = {{"p50", latencies.p50}, {"p99", latencies.p99}};
    baseline["p50_ratio"] = interval_json(ratios.p50);
    baseline["p99_ratio"] = interval_json(ratios.p99);
  }
  return json;
}

/// One that stands for nothing would be read as the first of those that could stand there.
std::optional<std::string> unknown_word(const Json& point) {
  const Json known = Json(point.get<Point>()).flatten();
  const Json written = point.flatten();
  for (const auto& [where, value] : written.items())
    if (value.is_string() && known.value(where, value) != value) return value.get<std::string>();
  return std::nullopt;
}

}  // namespace

Json document(const std::vector<PointResult>& results, const Json& settings, const Json& machines,
              const Ending& ending) {
  Json points = Json::array();
  for (const PointResult& result : results)
    if (!result.runs.empty()) points.push_back(point_json(result));
  Json json{{"format", "weft-perf"}, {"version", document_version}, {"ended", ending.how},
            {"machines", machines},  {"settings", settings},        {"points", points}};
  json["notes"] = explanations(columns_of(baselines_of(results)), results, machines);
  if (!ending.why.empty()) json["error"] = ending.why;
  return json;
}

Result<Json> read_document(const std::string& path) {
  const auto text = tool::read_input(path);
  if (!text) return fail(text.error());
  Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("format") || json["format"] != "weft-perf" ||
      !json.contains("points"))
    return fail(Code::protocol_mismatch, fmt::format("{} holds no results of weft-perf", path));
  if (!json.contains("version") || json["version"] != document_version)
    return fail(Code::protocol_mismatch,
                fmt::format("{} is of another version of weft-perf", path));
  try {
    for (const Json& each : json["points"])
      if (const auto word = unknown_word(each.at("point")))
        return fail(Code::protocol_mismatch,
                    fmt::format("{} has a point with '{}', which is not known here", path, *word));
  } catch (const Json::exception& error) {
    return fail(Code::protocol_mismatch, fmt::format("{} is damaged: {}", path, error.what()));
  }
  return json;
}

}  // namespace weft::perf
