#include "metrics/families.hpp"

#include <prometheus/text_serializer.h>

#include <array>
#include <limits>
#include <sstream>
#include <string_view>
#include <utility>
#include <weft/version.hpp>

#include "rail/fair_queue.hpp"

namespace weft::core {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr double nanoseconds_per_second = 1e9;

/// The inverse of index_of().
Priority priority_at(std::size_t index) {
  return static_cast<Priority>(static_cast<int>(index) + static_cast<int>(Priority::latency));
}

void add_value(MetricFamily& family, Labels labels, std::uint64_t value) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  (family.type == MetricType::Gauge ? metric.gauge.value : metric.counter.value) =
      static_cast<double>(value);
}

/// `unit`: how many of the histogram's are one of the metric's.
template <const auto& Bounds>
void add_histogram(MetricFamily& family, Labels labels, const Histogram<Bounds>& values,
                   double unit) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  std::uint64_t count = 0;
  for (std::size_t i = 0; i <= Bounds.size(); ++i) {
    count += values.counts[i];
    const double bound = i < Bounds.size() ? static_cast<double>(Bounds[i]) / unit
                                           : std::numeric_limits<double>::infinity();
    metric.histogram.bucket.push_back({count, bound});
  }
  metric.histogram.sample_count = count;
  metric.histogram.sample_sum = static_cast<double>(values.sum) / unit;
}

void add_engine(const MetricsReading& reading, MetricFamilies& families) {
  const auto add = [&](const char* name, const char* help, std::uint64_t value,
                       Labels labels = {}) {
    MetricFamily& family = families.emplace_back(MetricFamily{name, help, MetricType::Gauge, {}});
    add_value(family, std::move(labels), value);
  };
  add("weft_engine_info", "The engine's name and Weft's version; always 1.", 1,
      {{"engine", reading.engine}, {"version", WEFT_VERSION}});
  add("weft_transfers_active", "Transfers under way.", reading.transfers_active);
  add("weft_segments", "Segments registered.", reading.segments);
  add("weft_peers_up", "Peers that are up.", reading.peers_up);
  add("weft_peers_slow", "Peers that are up and whose progress threads are late.",
      reading.peers_slow);
  add("weft_peers_silent", "Peers that are up and were not heard for suspect_after.",
      reading.peers_silent);
}

void add_ends(const TransferTotals& totals, MetricFamilies& families) {
  MetricFamily ended{"weft_transfers_total", "Transfers that have ended.", MetricType::Counter, {}};
  MetricFamily bytes{"weft_transfer_bytes_total",
                     "Bytes that transfers have carried, those that failed too.",
                     MetricType::Counter,
                     {}};
  MetricFamily elapsed{"weft_transfer_seconds",
                       "Time from submission to the end, of transfers that are done.",
                       MetricType::Histogram,
                       {}};
  for (std::size_t direction = 0; direction < directions; ++direction)
    for (std::size_t priority = 0; priority < priorities; ++priority) {
      const TransferTotals::Class& same = totals.classes[direction][priority];
      const Labels labels{{"direction", label_of(Direction(direction))},
                          {"priority", label_of(priority_at(priority))}};
      for (std::size_t i = 0; i < final_states; ++i) {
        const auto state = static_cast<State>(static_cast<std::size_t>(State::done) + i);
        Labels with_state{{"state", std::string(to_string(state))}};
        with_state.insert(with_state.end(), labels.begin(), labels.end());
        add_value(ended, std::move(with_state), same.ended[i]);
      }
      add_value(bytes, labels, same.bytes_done);
      add_histogram(elapsed, labels, same.elapsed, nanoseconds_per_second);
    }
  families.insert(families.end(), {std::move(ended), std::move(bytes), std::move(elapsed)});
}

void add_shapes(const TransferTotals& totals, MetricFamilies& families) {
  MetricFamily queued{"weft_transfer_queued_seconds",
                      "Time from submission to the first chunk, of transfers that are done.",
                      MetricType::Histogram,
                      {}};
  for (std::size_t i = 0; i < priorities; ++i)
    add_histogram(queued, {{"priority", label_of(priority_at(i))}}, totals.of_priority(i).queued,
                  nanoseconds_per_second);
  MetricFamily sizes{"weft_transfer_size_bytes",
                     "Bytes asked for, of transfers that are done.",
                     MetricType::Histogram,
                     {}};
  MetricFamily ranges{
      "weft_transfer_ranges_total", "Pieces that were asked for.", MetricType::Counter, {}};
  MetricFamily runs{"weft_transfer_runs_total",
                    "Pieces that were left after coalescing neighbours.",
                    MetricType::Counter,
                    {}};
  std::uint64_t all_retries = 0;
  for (std::size_t i = 0; i < directions; ++i) {
    const TransferTotals::Class sum = totals.of(Direction(i));
    const Labels labels{{"direction", label_of(Direction(i))}};
    add_histogram(sizes, labels, sum.sizes, 1);
    add_value(ranges, labels, sum.ranges);
    add_value(runs, labels, sum.runs);
    all_retries += sum.retries;
  }
  MetricFamily retries{"weft_retries_total",
                       "Chunks that came back and were offered once more.",
                       MetricType::Counter,
                       {}};
  add_value(retries, {}, all_retries);
  families.insert(families.end(), {std::move(queued), std::move(sizes), std::move(ranges),
                                   std::move(runs), std::move(retries)});
}

void add_copies(const std::vector<Report::Copied>& copied, MetricFamilies& families) {
  MetricFamily copies{"weft_copied_bytes_total",
                      "Bytes copied from memory to memory for this engine's transfers.",
                      MetricType::Counter,
                      {}};
  MetricFamily maybe{"weft_maybe_copied_bytes_total",
                     "Bytes carried on paths where small pieces are copied once more, and nobody "
                     "tells which.",
                     MetricType::Counter,
                     {}};
  for (const Report::Copied& each : copied) {
    const bool known = each.known != Report::Copied::Known::unknown;
    Labels labels{{"by", std::string(to_string(each.by))},
                  {"side", each.at_peer ? "remote" : "local"}};
    if (known)
      labels.push_back(
          {"known", each.known == Report::Copied::Known::counted ? "counted" : "declared"});
    add_value(known ? copies : maybe, std::move(labels), each.bytes);
  }
  families.push_back(std::move(copies));
  families.push_back(std::move(maybe));
}

void add_rails(const std::vector<MetricsReading::Rail>& rails, MetricFamilies& families) {
  const auto add = [&](const char* name, const char* help, MetricType type, auto&& value) {
    MetricFamily& family = families.emplace_back(MetricFamily{name, help, type, {}});
    for (const MetricsReading::Rail& rail : rails)
      add_value(family, {{"rail", rail.name}, {"provider", rail.provider}, {"domain", rail.domain}},
                static_cast<std::uint64_t>(value(rail)));
  };
  using Rail = MetricsReading::Rail;
  add("weft_rail_operations_total", "Operations that the rail has completed.", MetricType::Counter,
      [](const Rail& rail) { return rail.operations; });
  add("weft_rail_bytes_total", "Bytes of these operations.", MetricType::Counter,
      [](const Rail& rail) { return rail.bytes; });
  add("weft_rail_lost_operations", "Operations whose peer died and that did not come back yet.",
      MetricType::Gauge, [](const Rail& rail) { return rail.lost; });
  add("weft_rail_reopenings_total", "How often the rail was closed and opened again.",
      MetricType::Counter, [](const Rail& rail) { return rail.reopenings; });
  add("weft_rail_in_flight", "Operations in flight on the rail.", MetricType::Gauge,
      [](const Rail& rail) { return rail.in_flight; });
  add("weft_rail_away",
      "1 while the rail carries nothing: it is being opened again, or could not be.",
      MetricType::Gauge, [](const Rail& rail) { return rail.away; });
}

}  // namespace

std::string label_of(Direction direction) {
  return direction == Direction::write ? "write" : "read";
}

std::string label_of(Priority priority) {
  constexpr std::array<const char*, priorities> labels = {"latency", "normal", "bulk"};
  return labels[index_of(priority)];
}

MetricFamilies families_of(const MetricsReading& reading) {
  MetricFamilies families;
  add_engine(reading, families);
  add_ends(reading.transfers, families);
  add_shapes(reading.transfers, families);
  add_copies(reading.copied, families);
  add_rails(reading.rails, families);
  return families;
}

std::string prometheus_text(const MetricFamilies& families) {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return text.str();
}

}  // namespace weft::core
