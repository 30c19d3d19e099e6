#include "report/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "baseline/baseline.hpp"
#include "common/units.hpp"

namespace weft::perf {
namespace {

template <typename Figure>
std::vector<double> each_of(const std::vector<Run>& runs, Figure&& figure) {
  std::vector<double> values;
  for (const Run& run : runs) values.push_back(figure(run));
  return values;
}

Json spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"least", spread.least}, {"greatest", spread.greatest}};
}

/// In ns, one for each run.
std::vector<double> quantiles_of(const std::vector<Run>& runs, double share) {
  return each_of(runs, [&](const Run& run) {
    return static_cast<double>(run.latency.quantile(share).count());
  });
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

/// "write", or whose cache.
std::string what(const Work& work) {
  const std::string operation = name_of(work.operation);
  if (work.kv.model.empty()) return operation;
  return fmt::format("{} {} {} tokens", operation, work.kv.model, work.kv.tokens);
}

/// How it is moved, as far as that differs from what is usual.
std::string manner(const Point& point) {
  const Work& work = point.work;
  std::string text;
  if (work.pieces > 1) text += fmt::format(" x{} {}", work.pieces, name_of(work.pattern));
  text += fmt::format(", window {}", work.window);
  if (point.initiators > 1) text += fmt::format(", {} initiators", point.initiators);
  if (point.peers > 1) text += fmt::format(", {} peers", point.peers);
  if (work.rate > 0) text += fmt::format(", {:.0f}/s", work.rate);
  const auto add = [&](const char* name, std::uint64_t value, std::uint64_t standard) {
    if (value != standard) text += fmt::format(" {} {}", name, value);
  };
  if (const KvShape& kv = work.kv, usual; !kv.model.empty()) {
    if (kv.dtype != usual.dtype) text += " " + kv.dtype;
    add("block-tokens", kv.block_tokens, usual.block_tokens);
    add("layer-groups", kv.layer_groups, usual_layer_groups);
    add("tp", kv.tp, usual.tp);
    add("peer-tp", kv.peer_tp, usual.peer_tp);
  }
  const Fabric& fabric = point.fabric;
  add("batch", work.batch, 1);
  add("rails", fabric.rails, 0);
  add("nics", fabric.nics, Fabric().nics);
  add("threads", fabric.threads, 0);
  add("chunk", fabric.chunk, 0);
  add("rail-window", fabric.rail_window, 0);
  add("bounce-bytes", fabric.bounce_bytes, 0);
  add("bounce-buffers", fabric.bounce_buffers, 0);
  if (fabric.gpu_path != Fabric().gpu_path) text += ", " + name_of(fabric.gpu_path);
  if (fabric.progress != Fabric().progress) text += ", " + name_of(fabric.progress) + " progress";
  if (work.memory != work.peer_memory)
    text += fmt::format(", {} and {} memory", work.memory, work.peer_memory);
  else if (work.memory != Work().memory)
    text += fmt::format(", {} memory", work.memory);
  if (work.priority != Work().priority) text += ", " + name_of(work.priority) + " priority";
  if (work.one_buffer) text += ", one buffer";
  return text;
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

Json document(const std::vector<PointResult>& results, const Json& settings, const Json& machines,
              const Ending& ending) {
  Json points = Json::array();
  for (const PointResult& result : results)
    if (!result.runs.empty()) points.push_back(point_json(result));
  Json json{{"format", "weft-perf"}, {"version", document_version}, {"ended", ending.how},
            {"machines", machines},  {"settings", settings},        {"points", points}};
  if (!ending.why.empty()) json["error"] = ending.why;
  return json;
}

Result<Json> read_document(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail(Code::not_found, fmt::format("{} can't be read", path));
  std::ostringstream text;
  text << file.rdbuf();
  Json json = Json::parse(text.str(), nullptr, false);
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

std::string title(const Point& point) {
  return fmt::format("{} {}{}", what(point.work), tool::binary_bytes(point.work.size),
                     manner(point));
}

std::string series_title(const Point& point) {
  const std::string& model = point.work.kv.model;
  return fmt::format("{}{}{}", name_of(point.work.operation), model.empty() ? "" : " " + model,
                     manner(point));
}

}  // namespace weft::perf
