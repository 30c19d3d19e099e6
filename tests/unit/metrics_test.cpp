// Totals of transfers, and what is made of them: Prometheus's text, JSON, the table in the README.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "metrics/families.hpp"
#include "metrics/snapshot.hpp"

namespace weft::core {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

EndedTransfer ended(State state, Direction direction = Direction::write,
                    Priority priority = Priority::normal) {
  EndedTransfer transfer;
  transfer.state = state;
  transfer.priority = priority;
  transfer.path.direction = direction;
  transfer.elapsed = 30us;
  transfer.queued = 7us;
  transfer.bytes = 20000;
  transfer.bytes_done = 15000;
  transfer.ranges = 5;
  transfer.runs = 2;
  return transfer;
}

/// One with something of everything.
MetricsReading full_reading() {
  MetricsReading reading;
  reading.engine = "prefill \"3\"\\\n";
  reading.transfers_active = 3;
  reading.segments = 4;
  reading.peers_up = 5;
  reading.unclaimed = {16, 17, 18, 19};
  reading.file_devices = {{"nvme0n1", 26, 29}};
  reading.file_ways = {{"nvme0n1", false, 27, 28, 29, {10'000, 20'000}, {1, 2, 3}}};
  reading.transfers.add(ended(State::done));
  reading.transfers.add(ended(State::failed, Direction::read, Priority::latency));
  reading.copied = {{Report::Copied::Known::declared, Mover::kernel, true, 15000},
                    {Report::Copied::Known::unknown, Mover::cpu, false, 14000}};
  reading.rails = {{"tcp:0", "net", "lo", 11, 12, 13, 14, 15, true, 20, 21, 22, 23}};
  reading.grants_active = 16;
  reading.quarantined_bytes = 17;
  RareEvents rare;
  rare.transfer_failed(Code::stale);
  rare.expectation_failed(Code::timed_out);
  rare.receive_failed(Code::peer_down);
  rare.grant_imported();
  rare.grant_ended(GrantEnd::expired);
  rare.peer_lost(LinkEnd::silent);
  rare.connection_refused(LinkEnd::credentials);
  reading.rare = rare.read();
  reading.peers["decode \"3\""] = {{18, 19}, {20, 21}, {22, 23}, {24, 25}};
  return reading;
}

/// Lines of text by what comes before the value.
std::map<std::string, std::string> samples_of(const std::string& text) {
  std::map<std::string, std::string> samples;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const std::size_t blank = line.rfind(' ');
    EXPECT_TRUE(samples.emplace(line.substr(0, blank), line.substr(blank + 1)).second) << line;
  }
  return samples;
}

TEST(Histogram, ABoundBelongsToTheBucketBelowIt) {
  SizeHistogram sizes;
  for (const std::uint64_t value : {std::uint64_t{0}, byte_bounds[0], byte_bounds[0] + 1,
                                    byte_bounds.back(), byte_bounds.back() + 1})
    sizes.add(value);
  EXPECT_EQ(sizes.counts[0], 2U);
  EXPECT_EQ(sizes.counts[1], 1U);
  EXPECT_EQ(sizes.counts[byte_bounds.size() - 1], 1U);
  EXPECT_EQ(sizes.counts[byte_bounds.size()], 1U);
  EXPECT_EQ(sizes.sum, 2 * byte_bounds[0] + 2 * byte_bounds.back() + 2);
}

TEST(Histogram, BoundsRise) {
  EXPECT_TRUE(std::is_sorted(nanosecond_bounds.begin(), nanosecond_bounds.end()));
  EXPECT_TRUE(std::is_sorted(byte_bounds.begin(), byte_bounds.end()));
}

TEST(PathKind, IsFoundAgainByItsIndex) {
  for (std::size_t i = 0; i < PathKind::count; ++i) EXPECT_EQ(PathKind::at(i).index(), i);
}

TEST(TransferTotals, CountEachTransferInItsClass) {
  TransferTotals totals;
  for (const State state : {State::done, State::done, State::failed, State::cancelled})
    totals.add(ended(state));
  totals.add(ended(State::timed_out, Direction::read, Priority::bulk));
  const auto& writes = totals.classes[0][index_of(Priority::normal)];
  EXPECT_THAT(writes.ended, testing::ElementsAre(2, 1, 1, 0));
  EXPECT_EQ(writes.bytes_done, 4 * 15000U);
  const auto& reads = totals.classes[1][index_of(Priority::bulk)];
  EXPECT_THAT(reads.ended, testing::ElementsAre(0, 0, 0, 1));
  EXPECT_EQ(totals.of(Direction::write).ranges, 20U);
  EXPECT_EQ(totals.of(Direction::read).runs, 2U);
  EXPECT_EQ(totals.of_priority(index_of(Priority::bulk)).ended[3], 1U);
}

TEST(TransferTotals, TimesAreThoseOfTransfersThatAreDone) {
  TransferTotals totals;
  totals.add(ended(State::done));
  totals.add(ended(State::timed_out));
  const TimeHistogram& elapsed = totals.classes[0][index_of(Priority::normal)].elapsed;
  EXPECT_EQ(elapsed.sum, 30'000U);
  EXPECT_EQ(elapsed.counts[3], 1U);  // above 20, up to 50 us
  EXPECT_EQ(totals.of_priority(index_of(Priority::normal)).queued.sum, 7'000U);
  EXPECT_EQ(totals.of(Direction::write).sizes.sum, 20000U);
}

TEST(TransferCounters, LoseNothingBetweenThreadsAndWhatIsReadFitsTogether) {
  constexpr std::size_t rails = 2, threads = 4;
  constexpr std::uint64_t each = 5000;
  TransferCounters counters(rails);
  std::vector<std::thread> adding;
  for (std::size_t i = 0; i < threads; ++i)
    adding.emplace_back([&counters, i] {
      for (std::uint64_t n = 0; n < each; ++n) counters.add(i % rails, ended(State::done));
    });
  const auto writes_of = [](const TransferTotals& totals) {
    return totals.classes[0][index_of(Priority::normal)];
  };
  for (int look = 0; look < 100; ++look)
    for (const TransferTotals& totals : counters.read()) {
      EXPECT_EQ(writes_of(totals).bytes_done, 15000 * writes_of(totals).ended[0]);
      EXPECT_EQ(writes_of(totals).elapsed.counts[3], writes_of(totals).ended[0]);
    }
  for (std::thread& thread : adding) thread.join();
  TransferTotals sum;
  for (const TransferTotals& totals : counters.read()) sum += totals;
  EXPECT_EQ(writes_of(sum).ended[0], threads * each);
  EXPECT_EQ(writes_of(sum).retries, 0U);
  EXPECT_EQ(sum.carried[PathKind{}.index()].bytes, threads * each * 15000);
}

TEST(PrometheusText, KeepsToTheFormat) {
  const std::regex comment("# (HELP|TYPE) weft_[a-z_]+ .+");
  const std::regex sample(
      R"(weft_[a-z_]+(\{([a-z_]+="([^"\\]|\\["\\n])*",?)+\})? [0-9.e+-]+|\+Inf)");
  std::istringstream lines(prometheus_text(families_of(full_reading())));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    EXPECT_TRUE(std::regex_match(line, line.starts_with('#') ? comment : sample)) << line;
  EXPECT_GT(count, 200);
}

TEST(PrometheusText, NamesHaveUnitsAndCountersSayThatTheyAreTotals) {
  std::set<std::string> names;
  for (const prometheus::MetricFamily& family : families_of(full_reading())) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name << " is there twice";
    EXPECT_EQ(family.type == prometheus::MetricType::Counter, family.name.ends_with("_total"))
        << family.name;
    if (family.type == prometheus::MetricType::Histogram) {
      EXPECT_TRUE(family.name.ends_with("_seconds") || family.name.ends_with("_bytes"))
          << family.name;
    }
  }
}

TEST(PrometheusText, SaysWhatWasCounted) {
  const auto samples = samples_of(prometheus_text(families_of(full_reading())));
  const auto value = [&](const std::string& name) {
    const auto found = samples.find(name);
    return found != samples.end() ? std::stod(found->second) : -1;
  };
  EXPECT_EQ(value(R"(weft_transfers_total{state="done",direction="write",priority="normal"})"), 1);
  EXPECT_EQ(value(R"(weft_transfers_total{state="failed",direction="read",priority="latency"})"),
            1);
  EXPECT_EQ(value(R"(weft_transfers_total{state="done",direction="read",priority="latency"})"), 0);
  EXPECT_EQ(value(R"(weft_transfer_seconds_count{direction="write",priority="normal"})"), 1);
  EXPECT_DOUBLE_EQ(value(R"(weft_transfer_seconds_sum{direction="write",priority="normal"})"),
                   30e-6);
  EXPECT_EQ(value(R"(weft_transfer_size_bytes_bucket{direction="write",le="16384"})"), 0);
  EXPECT_EQ(value(R"(weft_transfer_size_bytes_bucket{direction="write",le="65536"})"), 1);
  EXPECT_EQ(value(R"(weft_transfer_size_bytes_bucket{direction="write",le="+Inf"})"), 1);
  EXPECT_EQ(value(R"(weft_copied_bytes_total{by="kernel",side="remote",known="declared"})"), 15000);
  EXPECT_EQ(value(R"(weft_maybe_copied_bytes_total{by="cpu",side="local"})"), 14000);
  EXPECT_EQ(value(R"(weft_rail_in_flight{rail="tcp:0",provider="net",domain="lo"})"), 15);
  EXPECT_EQ(value(R"(weft_rail_message_buffer_bytes{rail="tcp:0",provider="net",domain="lo"})"),
            20);
  EXPECT_EQ(value(R"(weft_rail_bounce_buffer_bytes{rail="tcp:0",provider="net",domain="lo"})"), 21);
  EXPECT_EQ(value(R"(weft_rail_receives_promised{rail="tcp:0",provider="net",domain="lo"})"), 22);
  EXPECT_EQ(value(R"(weft_rail_receives_posted{rail="tcp:0",provider="net",domain="lo"})"), 23);
  EXPECT_EQ(value("weft_peers_up"), 5);
  EXPECT_EQ(value("weft_unclaimed_bytes"), 16);
  EXPECT_EQ(value("weft_unclaimed_ids"), 17);
  EXPECT_EQ(value("weft_peers_held_back"), 18);
  EXPECT_EQ(value("weft_dropped_arrivals_total"), 19);
  EXPECT_EQ(value(R"(weft_file_in_flight{device="nvme0n1"})"), 26);
  EXPECT_EQ(value(R"(weft_file_corrupt_blocks_total{device="nvme0n1"})"), 29);
  EXPECT_EQ(value(R"(weft_file_bytes_total{device="nvme0n1",direction="read"})"), 27);
  EXPECT_EQ(value(R"(weft_file_errors_total{device="nvme0n1",direction="read"})"), 28);
  EXPECT_EQ(value(R"(weft_file_seconds_count{device="nvme0n1",direction="read"})"), 6);
}

TEST(PrometheusText, SaysWhatOthersDid) {
  const auto samples = samples_of(prometheus_text(families_of(full_reading())));
  const std::string peer = R"({peer="decode \"3\"")";
  const std::map<std::string, std::string> expected = {
      {"weft_grants_active", "16"},
      {"weft_quarantined_bytes", "17"},
      {R"(weft_transfer_errors_total{code="stale"})", "1"},
      {R"(weft_transfer_errors_total{code="peer_down"})", "0"},
      {R"(weft_expectation_errors_total{code="timed_out"})", "1"},
      {R"(weft_receive_errors_total{code="peer_down"})", "1"},
      {"weft_grants_imported_total", "1"},
      {R"(weft_grants_ended_total{cause="expired"})", "1"},
      {R"(weft_grants_ended_total{cause="revoked"})", "0"},
      {R"(weft_peers_lost_total{cause="silent"})", "1"},
      {R"(weft_peers_lost_total{cause="connection_lost"})", "0"},
      {R"(weft_connections_refused_total{cause="credentials"})", "1"},
      {R"(weft_connections_refused_total{cause="connection_lost"})", "0"},
      {"weft_peer_bytes_total" + peer + R"(,direction="write",initiator="local"})", "18"},
      {"weft_peer_bytes_total" + peer + R"(,direction="read",initiator="local"})", "19"},
      {"weft_peer_bytes_total" + peer + R"(,direction="write",initiator="remote"})", "20"},
      {"weft_peer_bytes_total" + peer + R"(,direction="read",initiator="remote"})", "21"},
      {"weft_peer_signals_total" + peer + "}", "22"},
      {"weft_peer_signal_bytes_total" + peer + "}", "23"},
      {"weft_peer_messages_total" + peer + "}", "24"},
      {"weft_peer_message_bytes_total" + peer + "}", "25"}};
  for (const auto& [name, count] : expected) {
    const auto found = samples.find(name);
    ASSERT_NE(found, samples.end()) << name;
    EXPECT_EQ(found->second, count) << name;
  }
  EXPECT_FALSE(samples.contains(R"(weft_peers_lost_total{cause="version"})"));
  EXPECT_FALSE(samples.contains(R"(weft_connections_refused_total{cause="silent"})"));
}

TEST(RareEvents, HaveACountForEveryCause) {
  EXPECT_EQ(to_string(Code(codes)), "unknown") << "a code was added behind the last";
  for (std::size_t i = 1; i < codes; ++i) EXPECT_NE(to_string(Code(i)), "unknown");
  EXPECT_EQ(to_string(LinkEnd::itself), link_ends.back());
  EXPECT_EQ(to_string(GrantEnd::released), grant_ends.back());
}

TEST(PrometheusText, BucketsAreCumulative) {
  for (const prometheus::MetricFamily& family : families_of(full_reading())) {
    if (family.type != prometheus::MetricType::Histogram) continue;
    for (const prometheus::ClientMetric& metric : family.metric) {
      std::uint64_t before = 0;
      for (const auto& bucket : metric.histogram.bucket) {
        EXPECT_GE(bucket.cumulative_count, before);
        before = bucket.cumulative_count;
      }
      EXPECT_EQ(before, metric.histogram.sample_count);
    }
  }
}

/// "| `weft_segments` | gauge | | Segments registered. |"
std::string page_row(const prometheus::MetricFamily& family) {
  const std::map<prometheus::MetricType, std::string> types = {
      {prometheus::MetricType::Counter, "counter"},
      {prometheus::MetricType::Gauge, "gauge"},
      {prometheus::MetricType::Histogram, "histogram"}};
  std::string labels;
  for (const auto& label : family.metric.front().label)
    labels += (labels.empty() ? "" : ", ") + label.name;
  return "| `" + family.name + "` | " + types.at(family.type) + " | " + labels +
         (labels.empty() ? "| " : " | ") + family.help + " |";
}

TEST(Guide, ListsTheMetricsThatThereAre) {
  std::ifstream page(WEFT_METRICS_PAGE);
  std::set<std::string> listed, rendered;
  for (std::string line; std::getline(page, line);)
    if (line.starts_with("| `weft_")) listed.insert(line);
  for (const auto& family : families_of(full_reading())) rendered.insert(page_row(family));
  EXPECT_EQ(listed, rendered);
}

SlowTransfer slow_transfer() {
  SlowTransfer transfer;
  transfer.peer = "decode-\xff";
  transfer.direction = Direction::read;
  transfer.priority = Priority::bulk;
  transfer.ended = Clock::time_point(100s);
  transfer.report.state = State::failed;
  transfer.report.error = Error(Code::peer_down, "it is gone");
  transfer.report.bytes = 7;
  transfer.report.elapsed = 250ms;
  transfer.report.rails = {{"shm:1", 3, 6}};
  return transfer;
}

TEST(Snapshot, HasMetricsAndTransfers) {
  const auto snapshot = json::parse(snapshot_json("prefill", families_of(full_reading()),
                                                  {slow_transfer()}, Clock::time_point(102s)));
  EXPECT_EQ(snapshot["engine"], "prefill");
  const json& active = snapshot["metrics"]["weft_transfers_active"];
  EXPECT_EQ(active["type"], "gauge");
  EXPECT_EQ(active["samples"][0]["value"], 3);
  const json& queued = snapshot["metrics"]["weft_transfer_queued_seconds"]["samples"][1];
  EXPECT_EQ(queued["labels"]["priority"], "normal");
  EXPECT_EQ(queued["count"], 1);
  EXPECT_EQ(queued["buckets"].size(), nanosecond_bounds.size() + 1);
  EXPECT_EQ(queued["buckets"].back()["le"], "+Inf");
  const json& slow = snapshot["slowest_transfers"][0];
  EXPECT_EQ(slow["direction"], "read");
  EXPECT_EQ(slow["priority"], "bulk");
  EXPECT_EQ(slow["state"], "failed");
  EXPECT_EQ(slow["error"]["code"], "peer_down");
  EXPECT_EQ(slow["ended_seconds_ago"], 2.0);
  EXPECT_EQ(slow["elapsed_seconds"], 0.25);
  EXPECT_EQ(slow["rails"][0]["rail"], "shm:1");
}

}  // namespace
}  // namespace weft::core
