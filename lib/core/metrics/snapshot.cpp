#include "metrics/snapshot.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <weft/version.hpp>

#include "config/setting_text.hpp"

namespace weft::core {
namespace {

using nlohmann::json;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

/// Without a fraction where there is none.
json number(double value) {
  constexpr double exact = 9007199254740992;  // 2^53
  if (value >= 0 && value < exact && value == std::floor(value))
    return static_cast<std::uint64_t>(value);
  return value;
}

double seconds(Nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string_view type_name(MetricType type) {
  switch (type) {
    case MetricType::Counter:
      return "counter";
    case MetricType::Gauge:
      return "gauge";
    case MetricType::Histogram:
      return "histogram";
    default:
      return "untyped";
  }
}

json histogram_json(const ClientMetric::Histogram& histogram) {
  json buckets = json::array();
  for (const ClientMetric::Bucket& bucket : histogram.bucket) {
    const bool last = std::isinf(bucket.upper_bound);
    buckets.push_back({{"le", last ? json("+Inf") : number(bucket.upper_bound)},
                       {"count", bucket.cumulative_count}});
  }
  return {{"count", histogram.sample_count},
          {"sum", number(histogram.sample_sum)},
          {"buckets", std::move(buckets)}};
}

json sample_json(MetricType type, const ClientMetric& metric) {
  json sample;
  if (type == MetricType::Histogram)
    sample = histogram_json(metric.histogram);
  else
    sample["value"] = number(type == MetricType::Gauge ? metric.gauge.value : metric.counter.value);
  sample["labels"] = json::object();
  for (const ClientMetric::Label& label : metric.label) sample["labels"][label.name] = label.value;
  return sample;
}

json family_json(const MetricFamily& family) {
  json samples = json::array();
  for (const ClientMetric& metric : family.metric)
    samples.push_back(sample_json(family.type, metric));
  return {{"type", type_name(family.type)}, {"help", family.help}, {"samples", std::move(samples)}};
}

json transfer_json(const SlowTransfer& transfer, Clock::time_point now) {
  const Report& report = transfer.report;
  json rails = json::array();
  for (const Report::RailShare& share : report.rails)
    rails.push_back(
        {{"rail", share.rail}, {"operations", share.operations}, {"bytes", share.bytes}});
  json error;
  if (report.error)
    error = {{"code", to_string(report.error->code())}, {"message", report.error->to_string()}};
  return {{"peer", transfer.peer},
          {"direction", label_of(transfer.direction)},
          {"priority", label_of(transfer.priority)},
          {"ended_seconds_ago", seconds(now - transfer.ended)},
          {"state", to_string(report.state)},
          {"error", std::move(error)},
          {"transport", to_text(report.transport)},
          {"bytes", report.bytes},
          {"bytes_done", report.bytes_done},
          {"ranges", report.ranges},
          {"runs", report.runs},
          {"operations", report.operations},
          {"retries", report.retries},
          {"rails", std::move(rails)},
          {"queued_seconds", seconds(report.queued)},
          {"carried_seconds", seconds(report.carried)},
          {"elapsed_seconds", seconds(report.elapsed)}};
}

}  // namespace

std::string snapshot_json(const std::string& engine, const MetricFamilies& families,
                          const std::vector<SlowTransfer>& slowest, Clock::time_point now) {
  json metrics = json::object();
  for (const MetricFamily& family : families) metrics[family.name] = family_json(family);
  json transfers = json::array();
  for (const SlowTransfer& each : slowest) transfers.push_back(transfer_json(each, now));
  const json document = {{"engine", engine},
                         {"version", WEFT_VERSION},
                         {"metrics", std::move(metrics)},
                         {"slowest_transfers", std::move(transfers)}};
  constexpr int indent = 2;
  // Names of peers come from outside, and may be no UTF-8.
  return document.dump(indent, ' ', false, json::error_handler_t::replace) + '\n';
}

}  // namespace weft::core
