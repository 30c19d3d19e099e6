#include "report/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "baseline/baseline.hpp"
#include "common/printable.hpp"
#include "report/columns.hpp"

namespace weft::perf {
namespace {

using Columns = std::vector<std::pair<std::string, std::string>>;

/// As RFC 4180 has it.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string inside;
  for (const char letter : text) inside += letter == '"' ? "\"\"" : std::string(1, letter);
  return fmt::format("\"{}\"", inside);
}

std::string unquoted(const Json& value) {
  if (value.is_null()) return {};
  return value.is_string() ? tool::printable(value.get<std::string>()) : value.dump();
}

/// What each of them says, once.
std::string said_by(const std::vector<Json>& machines, const char* fact) {
  std::vector<std::string> all;
  for (const Json& machine : machines) {
    std::string text = machine.is_object() ? unquoted(machine.value(fact, Json())) : "";
    if (!text.empty() && std::find(all.begin(), all.end(), text) == all.end())
      all.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(all, " / "));
}

/// The one that measures is none of them where all of --from are elsewhere.
std::vector<Json> initiators_of(const Json& settings, const Json& machines) {
  const auto from = settings.value("from", std::vector<std::string>());
  std::vector<Json> all;
  if (from.empty() || std::find(from.begin(), from.end(), "here") != from.end())
    all.push_back(machines.value("initiator", Json()));
  for (const Json& other : machines.value("initiators", Json::array()))
    all.push_back(other.value("machine", Json()));
  return all;
}

/// Where a file's lines are put beside those of other files, each has to say of itself how it was
/// measured, on what, and with which versions.
Columns of_all_points(const Json& settings, const Json& machines) {
  Columns columns;
  for (const char* name : {"seconds", "count", "warm_up_seconds", "verify"})
    columns.emplace_back(name, quoted(unquoted(settings.value(name, Json()))));
  const std::pair<const char*, std::vector<Json>> sides[] = {
      {"", initiators_of(settings, machines)},
      {"peer_", machines.value("targets", std::vector<Json>())},
  };
  for (const auto& [prefix, side] : sides)
    for (const char* fact :
         {"host", "cpu", "cores", "kernel", "congestion_control", "weft", "libfabric"})
      columns.emplace_back(fmt::format("{}{}", prefix, fact), quoted(said_by(side, fact)));
  return columns;
}

template <typename Value>
void add(Columns& columns, std::string name, const Value& value) {
  columns.emplace_back(std::move(name), quoted(fmt::format("{}", value)));
}

void add_ratio(Columns& columns, const std::string& name, const Interval& ratio) {
  add(columns, name + "_ratio", ratio.middle);
  add(columns, name + "_low", ratio.low);
  add(columns, name + "_high", ratio.high);
}

void add_settings(Columns& columns, const PointResult& result) {
  const Fabric& fabric = result.point.fabric;
  const Work& work = result.point.work;
  const KvShape& kv = work.kv;
  add(columns, "operation", name_of(work.operation));
  add(columns, "peers", result.point.peers);
  add(columns, "model", kv.model);
  add(columns, "dtype", kv.dtype);
  add(columns, "tokens", kv.tokens);
  add(columns, "block_tokens", kv.block_tokens);
  add(columns, "layer_groups", kv.layer_groups);
  add(columns, "tp", kv.tp);
  add(columns, "peer_tp", kv.peer_tp);
  add(columns, "pp", kv.pp);
  add(columns, "peer_pp", kv.peer_pp);
  add(columns, "size", work.size);
  add(columns, "pieces", work.pieces);
  add(columns, "pattern", name_of(work.pattern));
  add(columns, "window", work.window);
  add(columns, "batch", work.batch);
  add(columns, "rate", work.rate);
  add(columns, "asked_provider", fabric.provider.empty() ? "auto" : fabric.provider);
  add(columns, "provider", result.provider);
  add(columns, "rails", fabric.rails);
  add(columns, "nics", fabric.nics);
  add(columns, "threads", fabric.threads);
  add(columns, "chunk", fabric.chunk);
  add(columns, "rail_window", fabric.rail_window);
  add(columns, "bounce_bytes", fabric.bounce_bytes);
  add(columns, "bounce_buffers", fabric.bounce_buffers);
  add(columns, "gpu_path", name_of(fabric.gpu_path));
  add(columns, "progress", name_of(fabric.progress));
  add(columns, "memory", work.memory);
  add(columns, "peer_memory", work.peer_memory);
}

/// "tcp:0 0.48 tcp:1 0.52"
std::string rail_shares(const Summary& sum) {
  std::string text;
  for (const auto& [rail, share] : sum.rails)
    text += fmt::format("{}{} {}", text.empty() ? "" : " ", rail, share);
  return text;
}

void add_figures(Columns& columns, const PointResult& result, const Summary& sum) {
  add(columns, "runs", result.runs.size());
  add(columns, "gigabytes_per_second", sum.gigabytes.median);
  add(columns, "gigabytes_per_second_least", sum.gigabytes.least);
  add(columns, "gigabytes_per_second_greatest", sum.gigabytes.greatest);
  add(columns, "gigabits_per_second", 8 * sum.gigabytes.median);
  add(columns, "operations_per_second", sum.operations.median);
  add(columns, "p50_ns", sum.latency.quantile(0.5).count());
  add(columns, "p90_ns", sum.latency.quantile(0.9).count());
  add(columns, "p99_ns", sum.latency.quantile(0.99).count());
  add(columns, "p99.9_ns", sum.latency.quantile(0.999).count());
  add(columns, "max_ns", sum.latency.greatest().count());
  add(columns, "cpu_seconds_per_gigabyte", sum.cpu);
  add(columns, "peer_cpu_seconds_per_gigabyte", sum.peer_cpu);
  add(columns, "copies_per_byte",
      in_ledger(result.point.work) ? fmt::format("{}", sum.copies.per_byte) : "");
  add(columns, "bytes_checked", sum.findings.checked);
  add(columns, "bytes_wrong", sum.findings.wrong);
  add(columns, "overloaded", sum.overloaded ? 1 : 0);
  add(columns, "initiators", result.point.initiators);
  add(columns, "least_share", sum.least_share);
  add(columns, "greatest_share", sum.greatest_share);
  add(columns, "priority", name_of(result.point.work.priority));
  add(columns, "one_buffer", result.point.work.one_buffer ? 1 : 0);
  add(columns, "ended_by_time", sum.ended_by_time ? 1 : 0);
  add(columns, "ceiling_gbps", result.runs.empty() ? 0 : result.runs.back().ceiling_gbps);
  add(columns, "rail_shares", rail_shares(sum));
}

Columns columns_of(const PointResult& result, const std::vector<std::string>& baselines) {
  Summary sum = summarize(result);
  Columns columns;
  add_settings(columns, result);
  add_figures(columns, result, sum);
  for (const std::string& name : baselines) {
    add_ratio(columns, name, sum.ratios[name]);
    if (!notes_latency(name)) continue;
    add_ratio(columns, name + "_p50", sum.latency_ratios[name].p50);
    add_ratio(columns, name + "_p99", sum.latency_ratios[name].p99);
  }
  return columns;
}

std::string line_of(const Columns& columns, std::string Columns::value_type::*which) {
  std::string line;
  for (const auto& column : columns) line += (line.empty() ? "" : ",") + column.*which;
  return line + "\n";
}

}  // namespace

std::string csv(const std::vector<PointResult>& results, const Json& settings,
                const Json& machines) {
  const auto baselines = baselines_of(results);
  const Columns same = of_all_points(settings, machines);
  const auto complete = [&](const PointResult& result) {
    Columns columns = columns_of(result, baselines);
    columns.insert(columns.end(), same.begin(), same.end());
    return columns;
  };
  std::string text = line_of(complete({}), &Columns::value_type::first);
  for (const PointResult& result : results)
    if (!result.runs.empty()) text += line_of(complete(result), &Columns::value_type::second);
  return text;
}

}  // namespace weft::perf
