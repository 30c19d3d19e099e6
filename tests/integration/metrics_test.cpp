// What an engine counts is what its transfers did, and can be read while they do it.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engines.hpp"
#include "gate.hpp"
#include "http_client.hpp"

namespace weft::test::metrics_tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::size_t size = 1 << 20;
const Pair all_of_it[] = {{0, 0, size}};

/// The values of Prometheus's text, by what stands before them.
class Samples {
 public:
  explicit Samples(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (const std::size_t blank = line.rfind(' '); !line.starts_with('#') && blank != line.npos)
        values_[line.substr(0, blank)] = std::stod(line.substr(blank + 1));
  }
  explicit Samples(const Engine& engine) : Samples(must(engine.metrics_text())) {}

  /// Of one metric, over all whose labels contain the text.
  std::uint64_t sum(const std::string& metric, const std::string& labels = "") const {
    double sum = 0;
    for (const auto& [name, value] : values_)
      if (name.substr(0, name.find('{')) == metric && name.find(labels) != name.npos) sum += value;
    return static_cast<std::uint64_t>(sum);
  }

 private:
  std::map<std::string, double> values_;
};

std::string state_label(State state) {
  return "state=\"" + std::string(to_string(state)) + "\"";
}

/// Looks again and again; some things are told a little after the transfers that they belong to.
template <typename Condition>
bool comes_to_be(Condition&& condition) {
  const Deadline deadline = soon();
  while (!condition()) {
    if (deadline.passed()) return false;
    std::this_thread::yield();
  }
  return true;
}

class Metrics : public testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(Variants, Metrics, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Metrics, TellWhatNoCallAskedFor) {
  Config config = config_for(GetParam());
  config.unclaimed_bytes = 1000;
  Couple pair = couple(config);
  const auto value = [&](const std::string& metric) { return Samples(pair.b).sum(metric); };
  EXPECT_EQ(value("weft_unclaimed_bytes") + value("weft_unclaimed_ids"), 0U);
  for (std::uint64_t id = 0; id < 10; ++id) must(pair.a.signal(pair.to_b, {id}, soon()));
  EXPECT_TRUE(comes_to_be([&] { return value("weft_unclaimed_ids") == 10; }));
  EXPECT_GT(value("weft_unclaimed_bytes"), 1000U);
  EXPECT_EQ(value("weft_peers_held_back"), 1U);
  EXPECT_EQ(value("weft_dropped_arrivals_total"), 0U);
  must(pair.b.forget(pair.to_a, 1, 9));
  EXPECT_EQ(value("weft_unclaimed_ids"), 1U);
  EXPECT_EQ(value("weft_peers_held_back"), 0U);
  EXPECT_EQ(value("weft_dropped_arrivals_total"), 9U);
  must(pair.b.disconnect(pair.to_a));
  EXPECT_TRUE(comes_to_be([&] { return value("weft_unclaimed_bytes") == 0; }));
  EXPECT_EQ(value("weft_dropped_arrivals_total"), 9U) << "a counter does not fall";
}

TEST_P(Metrics, AreTheSumsOfTheReports) {
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, size, size);
  std::uint64_t bytes = 0, ranges = 0, runs = 0, retries = 0;
  std::map<Report::Copied::Known, std::uint64_t> copied;
  const Pair pieces[] = {{0, 0, 4096}, {4096, 4096, 4096}, {20000, 30000, 100'000}};
  for (int round = 0; round < 10; ++round) {
    TransferOptions options;
    options.priority = round % 2 == 0 ? Priority::latency : Priority::bulk;
    Transfer transfer = round < 6 ? must(pair.a.write(board.local, board.there, pieces, options))
                                  : must(pair.a.read(board.local, board.there, all_of_it, options));
    must(transfer.wait(soon()));
    const Report report = transfer.report();
    bytes += report.bytes_done;
    ranges += report.ranges;
    runs += report.runs;
    retries += report.retries;
    for (const Report::Copied& each : report.copied) copied[each.known] += each.bytes;
  }
  const Samples samples(pair.a);
  EXPECT_EQ(samples.sum("weft_transfers_total"), 10U);
  EXPECT_EQ(samples.sum("weft_transfers_total", state_label(State::done)), 10U);
  EXPECT_EQ(samples.sum("weft_transfers_total", R"(direction="read",priority="bulk")"), 2U);
  EXPECT_EQ(samples.sum("weft_transfer_bytes_total"), bytes);
  EXPECT_EQ(samples.sum("weft_transfer_bytes_total", R"(direction="read")"), 4 * size);
  EXPECT_EQ(samples.sum("weft_transfer_size_bytes_sum"), bytes);
  EXPECT_EQ(samples.sum("weft_transfer_seconds_count"), 10U);
  EXPECT_EQ(samples.sum("weft_transfer_queued_seconds_count", R"(priority="latency")"), 5U);
  EXPECT_EQ(samples.sum("weft_transfer_ranges_total"), ranges);
  EXPECT_EQ(samples.sum("weft_transfer_runs_total"), runs);
  EXPECT_EQ(samples.sum("weft_retries_total"), retries);
  EXPECT_EQ(samples.sum("weft_copied_bytes_total", R"(known="counted")"),
            copied[Report::Copied::Known::counted]);
  EXPECT_EQ(samples.sum("weft_copied_bytes_total", R"(known="declared")"),
            copied[Report::Copied::Known::declared]);
  EXPECT_EQ(samples.sum("weft_peers_up"), 1U);
  EXPECT_EQ(samples.sum("weft_segments"), 1U);
  EXPECT_EQ(samples.sum("weft_transfers_active"), 0U);
  EXPECT_EQ(Samples(pair.b).sum("weft_transfers_total"), 0U) << "each side counts its own";
}

TEST_P(Metrics, OfRailsAreTheEnginesOwn) {
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, size, size);
  board.expect_moved(Direction::write, all_of_it);
  EXPECT_TRUE(comes_to_be([&] { return Samples(pair.a).sum("weft_rail_bytes_total") == size; }));
  const Samples samples(pair.a);
  std::uint64_t operations = 0;
  for (const RailInfo& rail : pair.a.info().rails) {
    EXPECT_EQ(samples.sum("weft_rail_bytes_total", "rail=\"" + rail.name + "\""), rail.bytes);
    operations += rail.operations;
  }
  EXPECT_EQ(samples.sum("weft_rail_operations_total"), operations);
  EXPECT_EQ(samples.sum("weft_rail_lost_operations"), 0U);
  EXPECT_EQ(samples.sum("weft_rail_away"), 0U);
}

TEST_P(Metrics, CountHowTransfersEnd) {
  Gate gate;
  Couple pair = couple(config_for(GetParam()), config_for(GetParam()), gate.hooks());
  Board board(pair, size, size);
  TransferOptions late;
  late.deadline = Deadline::in(10ms);
  Transfer overdue = must(pair.a.write(board.local, board.there, all_of_it, late));
  EXPECT_TRUE(fails_with(overdue.wait(soon()), Code::timed_out));
  Transfer cancelled = must(pair.a.write(board.local, board.there, all_of_it));
  cancelled.cancel();
  EXPECT_TRUE(fails_with(cancelled.wait(soon()), Code::cancelled));
  gate.open();
  board.expect_moved(Direction::write, all_of_it);
  gate.shut();
  Transfer failing = must(pair.a.write(board.local, board.there, all_of_it));
  EXPECT_EQ(Samples(pair.a).sum("weft_transfers_active"), 1U);
  must(pair.a.disconnect(pair.to_b));
  EXPECT_FALSE(failing.wait(soon()));

  const Samples samples(pair.a);
  for (const State state : {State::done, State::failed, State::cancelled, State::timed_out})
    EXPECT_EQ(samples.sum("weft_transfers_total", state_label(state)), 1U) << to_string(state);
  EXPECT_EQ(samples.sum("weft_transfer_bytes_total"), size);
  EXPECT_EQ(samples.sum("weft_transfer_seconds_count"), 1U) << "of those that are done";
  EXPECT_TRUE(comes_to_be([&] { return Samples(pair.a).sum("weft_peers_up") == 0; }));
}

TEST_P(Metrics, RememberTheSlowestTransfers) {
  Gate gate;
  Couple pair = couple(config_for(GetParam()), config_for(GetParam()), gate.hooks());
  Board board(pair, size, size);
  TransferOptions late;
  late.deadline = Deadline::in(50ms);
  late.priority = Priority::latency;
  Transfer overdue = must(pair.a.write(board.local, board.there, all_of_it, late));
  EXPECT_FALSE(overdue.wait(soon()));
  gate.open();
  const Pair small[] = {{0, 0, 100}};
  constexpr std::size_t others = 5;
  for (std::size_t i = 0; i < others; ++i)
    must(must(pair.a.read(board.local, board.there, small)).wait(soon()));

  const auto slowest = must(pair.a.slowest_transfers());
  ASSERT_EQ(slowest.size(), others + 1);
  EXPECT_TRUE(std::is_sorted(slowest.begin(), slowest.end(), [](const auto& a, const auto& b) {
    return a.report.elapsed > b.report.elapsed;
  }));
  const auto at = std::find_if(slowest.begin(), slowest.end(), [](const SlowTransfer& each) {
    return each.report.state == State::timed_out;
  });
  ASSERT_NE(at, slowest.end());
  EXPECT_EQ(at->peer, pair.b.name());
  EXPECT_EQ(at->direction, Direction::write);
  EXPECT_EQ(at->priority, Priority::latency);
  EXPECT_EQ(at->report.bytes, size);
  EXPECT_EQ(at->report.error->code(), Code::timed_out);
  EXPECT_EQ(at->report.elapsed, overdue.report().elapsed);
  const json snapshot = json::parse(must(pair.a.snapshot()));
  EXPECT_EQ(snapshot["slowest_transfers"].size(), others + 1);
  EXPECT_EQ(snapshot["engine"], pair.a.name());
}

/// Whose engine `a` hands out its metrics.
Couple serving_couple() {
  Config config = config_for("tcp");
  Config serving = config;
  serving.metrics_listen = "127.0.0.1:0";
  return couple(serving, config);
}

TEST(MetricsOverHttp, AreThoseOfTheCall) {
  Couple pair = serving_couple();
  Board board(pair, size, size);
  board.expect_moved(Direction::write, all_of_it);
  const std::string response = http_get(pair.a.metrics_address(), "/metrics");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(response, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_EQ(Samples(body_of(response)).sum("weft_transfer_bytes_total"), size);
  const json snapshot = json::parse(body_of(http_get(pair.a.metrics_address(), "/snapshot")));
  EXPECT_EQ(snapshot["slowest_transfers"].size(), 1U);
  EXPECT_EQ(pair.b.metrics_address(), "");
}

TEST(MetricsOverHttp, CanBeScrapedByTwoWhileTransfersRun) {
  Couple pair = serving_couple();
  Board board(pair, size, size);
  std::atomic<bool> enough{false};
  const auto scrape = [&](const char* path) {
    std::uint64_t before = 0;
    while (!enough) {
      const std::string body = body_of(http_get(pair.a.metrics_address(), path));
      if (body.starts_with('{')) continue;
      const std::uint64_t now = Samples(body).sum("weft_transfers_total");
      EXPECT_GE(now, before) << "a counter never falls";
      before = now;
    }
  };
  std::thread text(scrape, "/metrics"), snapshots(scrape, "/snapshot");
  constexpr int count = 300;
  for (int i = 0; i < count; ++i)
    must(must(pair.a.write(board.local, board.there, all_of_it)).wait(soon()));
  enough = true;
  text.join();
  snapshots.join();
  EXPECT_EQ(Samples(pair.a).sum("weft_transfers_total"), static_cast<std::uint64_t>(count));
}

TEST(MetricsOverHttp, EndWithTheEngineWhoeverReads) {
  Couple pair = serving_couple();
  const std::string address = pair.a.metrics_address();
  HttpClient silent(address);
  std::atomic<bool> scraping{false};
  std::thread scraper([&] {
    try {
      while (true) {
        if (http_get(address, "/snapshot").empty()) return;
        scraping = true;
      }
    } catch (const std::runtime_error&) {  // nobody listens any more
    }
  });
  EXPECT_TRUE(comes_to_be([&] { return scraping.load(); }));
  must(pair.a.close(soon()));
  scraper.join();
  EXPECT_EQ(silent.receive_all(), "");
  EXPECT_TRUE(fails_with(pair.a.metrics_text(), Code::closed));
}

TEST(MetricsOverHttp, APortInUseIsAnErrorAtOpening) {
  const Couple pair = serving_couple();
  Config config = config_for("tcp");
  config.metrics_listen = pair.a.metrics_address();
  const auto engine = Engine::open(config);
  ASSERT_TRUE(fails_with(engine, Code::unavailable));
  EXPECT_EQ(engine.error().message(),
            "can't listen on " + pair.a.metrics_address() + ": the port is in use already");
}

/// Eight ranks of a server have one environment.
TEST(MetricsOverHttp, APortThatTheEnvironmentGivesServesTheFirstOfManyEngines) {
  const Couple pair = serving_couple();
  ASSERT_EQ(setenv("WEFT_METRICS_LISTEN", pair.a.metrics_address().c_str(), 1), 0);
  const auto second = Engine::open(config_for("tcp"));
  unsetenv("WEFT_METRICS_LISTEN");
  ASSERT_TRUE(succeeds(second));
  EXPECT_EQ(second->metrics_address(), "");
}

TEST(MetricsOverHttp, ASocketMayBeNamedAfterItsProcess) {
  Config config = config_for("tcp");
  config.metrics_listen = "unix:" + testing::TempDir() + "weft-%p-metrics.sock";
  const Engine engine = must(Engine::open(config));
  EXPECT_EQ(engine.metrics_address(),
            "unix:" + testing::TempDir() + "weft-" + std::to_string(getpid()) + "-metrics.sock");
}

TEST(MetricsOverHttp, TheNetworkHasToBeAskedForInSoManyWords) {
  Config config = config_for("tcp");
  config.metrics_listen = "0.0.0.0:0";
  EXPECT_TRUE(fails_with(Engine::open(config), Code::permission_denied));
}

TEST(MetricsThatAreOff, AreNotToBeHad) {
  Config config = config_for("tcp");
  config.metrics = false;
  Couple pair = couple(config);
  Board board(pair, size, size);
  board.expect_moved(Direction::write, all_of_it);
  EXPECT_TRUE(fails_with(pair.a.metrics_text(), Code::unavailable));
  EXPECT_TRUE(fails_with(pair.a.snapshot(), Code::unavailable));
  EXPECT_TRUE(fails_with(pair.a.slowest_transfers(), Code::unavailable));
  config.metrics_listen = "127.0.0.1:0";
  EXPECT_TRUE(fails_with(Engine::open(config), Code::invalid_argument));
}

}  // namespace
}  // namespace weft::test::metrics_tests
