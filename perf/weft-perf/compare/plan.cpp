#include "compare/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <weft/kv_models.hpp>

#include "common/units.hpp"
#include "report/title.hpp"
#include "workload/workload.hpp"

namespace weft::perf {
namespace {

/// What was measured at a size.
struct AtSize {
  double bytes_per_second = 0;
  double tail = 1;  ///< p99 by p50.
};

using Curve = std::map<std::uint64_t, AtSize>;

bool counts(const Json& point_result, const Point& point) {
  const Work& work = point.work;
  return (work.operation == Operation::write || work.operation == Operation::read) &&
         work.kv.model.empty() && point.peers == 1 && point.initiators == 1 && work.rate == 0 &&
         point_result.at("bytes_wrong") == 0;
}

std::map<std::string, Curve> curves_of(const Json& results) {
  std::map<std::string, Curve> curves;
  for (const Json& each : results.at("points")) {
    const auto point = each.at("point").get<Point>();
    const double speed = each.at("gigabytes_per_second").at("median").get<double>() * 1e9;
    const auto& latency = each.at("latency_ns");
    const double middle = latency.at("p50").get<double>();
    if (!counts(each, point) || !(speed > 0) || !(middle > 0)) continue;
    const std::string name = each.at("provider").get<std::string>() + " " + series_title(point);
    curves[name][point.work.size] = {speed, latency.at("p99").get<double>() / middle};
  }
  return curves;
}

double between(double at, double low, double high, double from, double to) {
  const double share = (std::log(at) - std::log(low)) / (std::log(high) - std::log(low));
  return std::exp(std::log(from) + share * (std::log(to) - std::log(from)));
}

/// The curve is not empty, and does not begin above `size`.
AtSize at_size(const Curve& curve, std::uint64_t size) {
  const auto above = curve.lower_bound(size);
  if (above == curve.end()) return curve.rbegin()->second;
  if (above->first == size) return above->second;
  const auto below = std::prev(above);
  const auto [x, low, high] =
      std::tuple(static_cast<double>(size), static_cast<double>(below->first),
                 static_cast<double>(above->first));
  return {between(x, low, high, below->second.bytes_per_second, above->second.bytes_per_second),
          between(x, low, high, below->second.tail, above->second.tail)};
}

/// The last group goes after the prefill in any case; the others while it lasts, from the end of
/// the first group on.
OfTtft of_ttft(double seconds, double groups, double prefill) {
  const double left = std::max(seconds - prefill * (groups - 1) / groups, seconds / groups);
  return {seconds / (prefill + seconds), left, left / (prefill + left)};
}

Prediction predicted(const std::string& name, const Curve& curve, std::uint64_t bytes,
                     const PlanOptions& options) {
  Prediction made;
  made.series = name;
  made.request_bytes = bytes;
  made.operation_bytes = std::max<std::uint64_t>(bytes / options.kv.layer_groups, 1);
  made.beyond = made.operation_bytes > curve.rbegin()->first;
  const AtSize measured = at_size(curve, made.operation_bytes);
  made.seconds = static_cast<double>(bytes) / measured.bytes_per_second;
  made.tail_seconds = made.seconds * measured.tail;
  if (options.prefill_seconds)
    made.ttft = of_ttft(made.seconds, options.kv.layer_groups, *options.prefill_seconds);
  return made;
}

}  // namespace

Result<std::vector<Prediction>> predict(const Json& results, const PlanOptions& options) {
  if (options.kv.model.empty()) return fail(Code::invalid_argument, "--model lacks a name");
  const auto bytes = bytes_of_request(options.kv);
  if (!bytes) return fail(bytes.error());
  try {
    std::vector<Prediction> predictions;
    std::uint64_t least = 0;
    for (const auto& [name, curve] : curves_of(results)) {
      if (curve.begin()->first * options.kv.layer_groups > *bytes) {
        least = std::max(least, curve.begin()->first);
        continue;
      }
      predictions.push_back(predicted(name, curve, *bytes, options));
    }
    if (!predictions.empty()) return predictions;
    if (least == 0) return fail(Code::not_found, "the results have no writes or reads to go by");
    return fail(Code::invalid_argument,
                fmt::format("a layer group has {}, and the least that was measured is {}",
                            tool::binary_bytes(*bytes / options.kv.layer_groups),
                            tool::binary_bytes(least)));
  } catch (const Json::exception& error) {
    return fail(Code::protocol_mismatch, fmt::format("these are no results: {}", error.what()));
  }
}

std::string text_of(const std::vector<Prediction>& predictions, const PlanOptions& options,
                    std::size_t width) {
  constexpr std::size_t label_width = 40;
  const KvShape& kv = options.kv;
  const Prediction& first = predictions.front();
  std::string text = tool::hanging(
      "",
      fmt::format(
          "{} {}, {} tokens: {} from rank 0 of {} to rank 0 of {}, in {} layer groups of {}.",
          kv.model, kv.dtype, kv.tokens, tool::binary_bytes(first.request_bytes), kv.tp, kv.peer_tp,
          kv.layer_groups, tool::binary_bytes(first.operation_bytes)),
      width);
  if (options.prefill_seconds)
    text +=
        fmt::format("TTFT without the transfer: {}.\n", tool::duration(*options.prefill_seconds));
  text += fmt::format("\n{:<{}} {:>10} {:>10}", "", label_width, "transfer", "at p99");
  text += options.prefill_seconds
              ? fmt::format(" {:>8} {:>11} {:>8}\n", "of TTFT", "overlapped", "of TTFT")
              : "\n";
  for (const Prediction& each : predictions) {
    if (each.series.size() > label_width) text += tool::hanging("", each.series, width);
    text +=
        fmt::format("{:<{}} {:>10} {:>10}", each.series.size() > label_width ? "" : each.series,
                    label_width, tool::duration(each.seconds), tool::duration(each.tail_seconds));
    if (const auto& of = each.ttft)
      text += fmt::format(" {:>6.1f} % {:>11} {:>6.1f} %", 100 * of->share,
                          tool::duration(of->overlapped_seconds), 100 * of->overlapped_share);
    text += each.beyond ? "\n    beyond what was measured\n" : "\n";
  }
  text +=
      "\n" + tool::hanging("",
                           "Predicted by interpolation, not measured. Pieces: as in the series; "
                           "weft-perf --model measures the model's own.",
                           width);
  if (!options.prefill_seconds)
    text += "With --prefill-seconds: also the share of the time to the first token.\n";
  return text;
}

Json json_of(const std::vector<Prediction>& predictions, const PlanOptions& options) {
  Json list = Json::array();
  for (const Prediction& each : predictions) {
    Json json{{"series", each.series},
              {"request_bytes", each.request_bytes},
              {"operation_bytes", each.operation_bytes},
              {"seconds", each.seconds},
              {"seconds_at_p99", each.tail_seconds},
              {"beyond_what_was_measured", each.beyond}};
    if (each.ttft) {
      json["share_of_ttft"] = each.ttft->share;
      json["overlapped_seconds"] = each.ttft->overlapped_seconds;
      json["overlapped_share_of_ttft"] = each.ttft->overlapped_share;
    }
    list.push_back(std::move(json));
  }
  Json json{{"kv", options.kv}, {"predictions", std::move(list)}};
  if (options.prefill_seconds) json["prefill_seconds"] = *options.prefill_seconds;
  return json;
}

}  // namespace weft::perf
