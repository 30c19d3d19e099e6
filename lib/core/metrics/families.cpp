#include "metrics/families.hpp"

#include <prometheus/text_serializer.h>

#include <array>
#include <limits>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>
#include <weft/version.hpp>

#include "base/priorities.hpp"

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

struct Buckets {
  std::span<const std::uint64_t> bounds, counts;  // one count more
  std::uint64_t sum = 0;
};

/// `unit`: how many of the histogram's are one of the metric's.
void add_histogram(MetricFamily& family, Labels labels, const Buckets& values, double unit) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < values.counts.size(); ++i) {
    count += values.counts[i];
    const double bound = i < values.bounds.size() ? static_cast<double>(values.bounds[i]) / unit
                                                  : std::numeric_limits<double>::infinity();
    metric.histogram.bucket.push_back({count, bound});
  }
  metric.histogram.sample_count = count;
  metric.histogram.sample_sum = static_cast<double>(values.sum) / unit;
}

template <const auto& Bounds>
void add_histogram(MetricFamily& family, Labels labels, const Histogram<Bounds>& values,
                   double unit) {
  add_histogram(family, std::move(labels), {Bounds, values.counts, values.sum}, unit);
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
  add("weft_grants_active", "Grants of this engine's memory that hold.", reading.grants_active);
  add("weft_quarantined_bytes",
      "Bytes of ended grants and released segments that something may still touch.",
      reading.quarantined_bytes);
}

void add_unclaimed(const MetricsReading::Unclaimed& unclaimed, MetricFamilies& families) {
  const auto add = [&](const char* name, const char* help, MetricType type, std::uint64_t value) {
    add_value(families.emplace_back(MetricFamily{name, help, type, {}}), {}, value);
  };
  add("weft_unclaimed_bytes", "Bytes of signals and messages that no call has asked for.",
      MetricType::Gauge, unclaimed.bytes);
  add("weft_unclaimed_ids", "Signal ids that have arrived and that no call has asked for.",
      MetricType::Gauge, unclaimed.ids);
  add("weft_peers_held_back", "Peers of which more than unclaimed_bytes has not been asked for.",
      MetricType::Gauge, unclaimed.peers_held_back);
  add("weft_dropped_arrivals_total",
      "Signals, and failures of signals, that were dropped: forgotten, or late and too many.",
      MetricType::Counter, unclaimed.dropped);
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
    if (known) labels.push_back({"known", std::string(to_string(each.known))});
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
  add("weft_rail_message_buffer_bytes", "Memory kept for messages of peers, pinned on most NICs.",
      MetricType::Gauge, [](const Rail& rail) { return rail.message_buffer_bytes; });
  add("weft_rail_bounce_buffer_bytes", "Memory of bounce buffers, pinned on most NICs.",
      MetricType::Gauge, [](const Rail& rail) { return rail.bounce_buffer_bytes; });
  add("weft_rail_receives_promised", "Messages that peers may send without being asked.",
      MetricType::Gauge, [](const Rail& rail) { return rail.receives_promised; });
  add("weft_rail_receives_posted", "Receives that are posted for them.", MetricType::Gauge,
      [](const Rail& rail) { return rail.receives_posted; });
}

/// One read or write of files counts once, however many a transfer needs.
void add_files(const MetricsReading& reading, MetricFamilies& families) {
  MetricFamily bytes{"weft_file_bytes_total",
                     "Bytes that files on the device gave or took, by this process.",
                     MetricType::Counter,
                     {}};
  MetricFamily errors{"weft_file_errors_total",
                      "Reads and writes of files on the device that failed.",
                      MetricType::Counter,
                      {}};
  MetricFamily seconds{"weft_file_seconds",
                       "Time that the device took for a read or write of at most 1 MiB.",
                       MetricType::Histogram,
                       {}};
  MetricFamily depth{"weft_file_in_flight",
                     "Reads and writes of files that the device has now.",
                     MetricType::Gauge,
                     {}};
  MetricFamily corrupt{"weft_file_corrupt_blocks_total",
                       "Blocks that were read of files on the device and did not match their sums.",
                       MetricType::Counter,
                       {}};
  for (const MetricsReading::FileWay& way : reading.file_ways) {
    const Labels labels{{"device", way.device}, {"direction", way.write ? "write" : "read"}};
    add_value(bytes, labels, way.bytes);
    add_value(errors, labels, way.errors);
    add_histogram(seconds, labels, Buckets{way.bounds, way.counts, way.nanoseconds},
                  nanoseconds_per_second);
  }
  for (const MetricsReading::FileDevice& each : reading.file_devices) {
    add_value(depth, {{"device", each.device}}, each.in_flight);
    add_value(corrupt, {{"device", each.device}}, each.corrupt_blocks);
  }
  families.insert(families.end(), {std::move(bytes), std::move(errors), std::move(seconds),
                                   std::move(depth), std::move(corrupt)});
}

/// Exports every cause as 0 from the start: Prometheus sees no increase in a new series.
template <typename Cause, std::size_t N, typename CanBe>
MetricFamily by_cause(const char* name, const char* help, const char* label,
                      const std::array<std::uint64_t, N>& counts, CanBe&& can_be) {
  MetricFamily family{name, help, MetricType::Counter, {}};
  for (std::size_t i = 0; i < N; ++i)
    if (const auto cause = static_cast<Cause>(i); can_be(cause))
      add_value(family, {{label, std::string(to_string(cause))}}, counts[i]);
  return family;
}

void add_failures(const RareCounts& rare, MetricFamilies& families) {
  const auto add = [&](const char* name, const char* help, const RareCounts::ByCode& counts) {
    families.push_back(by_cause<Code>(name, help, "code", counts, [](Code code) {
      return code != Code{};  // there is no error of that code
    }));
  };
  add("weft_transfer_errors_total", "Transfers that ended with an error.", rare.transfers_failed);
  add("weft_expectation_errors_total",
      "Expectations that ended with an error; cancelled: they were given up.",
      rare.expectations_failed);
  add("weft_receive_errors_total",
      "Receives that ended with an error; cancelled: they were given up.", rare.receives_failed);
}

void add_grants(const RareCounts& rare, MetricFamilies& families) {
  MetricFamily imported{
      "weft_grants_imported_total", "Grants of peers that were imported.", MetricType::Counter, {}};
  add_value(imported, {}, rare.grants_imported);
  families.push_back(std::move(imported));
  families.push_back(by_cause<GrantEnd>("weft_grants_ended_total",
                                        "Grants of this engine's memory that have ended.", "cause",
                                        rare.grants_ended, [](GrantEnd) { return true; }));
}

void add_links(const RareCounts& rare, MetricFamilies& families) {
  families.push_back(by_cause<LinkEnd>("weft_peers_lost_total", "Peers that were up and went down.",
                                       "cause", rare.peers_lost, ends_links));
  families.push_back(by_cause<LinkEnd>("weft_connections_refused_total",
                                       "Incoming connections that came to nothing.", "cause",
                                       rare.connections_refused, ends_meetings));
}

void add_peers(const std::map<std::string, PeerTraffic::Totals>& peers, MetricFamilies& families) {
  MetricFamily bytes{"weft_peer_bytes_total",
                     "Bytes of transfers with the peer; initiator remote: as the signals of its "
                     "transfers say, and nothing of those without a signal.",
                     MetricType::Counter,
                     {}};
  MetricFamily signals{
      "weft_peer_signals_total", "Signals received from the peer.", MetricType::Counter, {}};
  MetricFamily signal_bytes{"weft_peer_signal_bytes_total",
                            "Bytes that these signals carried as payload.",
                            MetricType::Counter,
                            {}};
  MetricFamily messages{"weft_peer_messages_total",
                        "Tagged messages received from the peer.",
                        MetricType::Counter,
                        {}};
  MetricFamily message_bytes{
      "weft_peer_message_bytes_total", "Bytes of these messages.", MetricType::Counter, {}};
  for (const auto& [name, totals] : peers) {
    for (std::size_t i = 0; i < directions; ++i) {
      const auto direction = label_of(Direction(i));
      add_value(bytes, {{"peer", name}, {"direction", direction}, {"initiator", "local"}},
                totals.begun_here[i]);
      add_value(bytes, {{"peer", name}, {"direction", direction}, {"initiator", "remote"}},
                totals.begun_there[i]);
    }
    add_value(signals, {{"peer", name}}, totals.signals.count);
    add_value(signal_bytes, {{"peer", name}}, totals.signals.bytes);
    add_value(messages, {{"peer", name}}, totals.messages.count);
    add_value(message_bytes, {{"peer", name}}, totals.messages.bytes);
  }
  families.insert(families.end(), {std::move(bytes), std::move(signals), std::move(signal_bytes),
                                   std::move(messages), std::move(message_bytes)});
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
  add_unclaimed(reading.unclaimed, families);
  add_ends(reading.transfers, families);
  add_shapes(reading.transfers, families);
  add_copies(reading.copied, families);
  add_rails(reading.rails, families);
  add_files(reading, families);
  add_failures(reading.rare, families);
  add_grants(reading.rare, families);
  add_links(reading.rare, families);
  add_peers(reading.peers, families);
  return families;
}

std::string prometheus_text(const MetricFamilies& families) {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return text.str();
}

}  // namespace weft::core
