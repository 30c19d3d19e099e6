// What an engine counts is what its transfers did, and can be read while they do it.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engines.hpp"
#include "folder.hpp"
#include "gate.hpp"
#include "held_back.hpp"
#include "http_client.hpp"
#include "process.hpp"

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

std::string code_label(Code code) {
  return "code=\"" + std::string(to_string(code)) + "\"";
}

std::string cause_label(const std::string& cause) {
  return "cause=\"" + cause + "\"";
}

/// Of the bytes of transfers with a peer.
std::string peer_label(const Engine& peer, const std::string& direction,
                       const std::string& initiator) {
  return "peer=\"" + peer.name() + "\",direction=\"" + direction + "\",initiator=\"" + initiator +
         "\"";
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
  for (std::uint64_t id = 0; id < 10; ++id) must(pair.to_b.signal({id}, soon()));
  EXPECT_TRUE(comes_to_be([&] { return value("weft_unclaimed_ids") == 10; }));
  EXPECT_GT(value("weft_unclaimed_bytes"), 1000U);
  EXPECT_EQ(value("weft_peers_held_back"), 1U);
  EXPECT_EQ(value("weft_dropped_arrivals_total"), 0U);
  must(pair.to_a.forget(1, 9));
  EXPECT_EQ(value("weft_unclaimed_ids"), 1U);
  EXPECT_EQ(value("weft_peers_held_back"), 0U);
  EXPECT_EQ(value("weft_dropped_arrivals_total"), 9U);
  must(pair.to_a.disconnect());
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
  must(pair.to_b.disconnect());
  EXPECT_FALSE(failing.wait(soon()));

  const Samples samples(pair.a);
  for (const State state : {State::done, State::failed, State::cancelled, State::timed_out})
    EXPECT_EQ(samples.sum("weft_transfers_total", state_label(state)), 1U) << to_string(state);
  EXPECT_EQ(samples.sum("weft_transfer_errors_total"), 3U);
  for (const Code code : {Code::timed_out, Code::cancelled, Code::closed})
    EXPECT_EQ(samples.sum("weft_transfer_errors_total", code_label(code)), 1U) << to_string(code);
  EXPECT_EQ(samples.sum("weft_transfer_bytes_total"), size);
  EXPECT_EQ(samples.sum("weft_transfer_seconds_count"), 1U) << "of those that are done";
  EXPECT_TRUE(comes_to_be([&] { return Samples(pair.a).sum("weft_peers_up") == 0; }));
}

TEST_P(Metrics, OfTheSideThatOnlyReceivesAreWhatItsPeerDid) {
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, size, size);
  const Pair small[] = {{0, 0, 4096}};
  TransferOptions with_signal;
  with_signal.signal = Signal{1};
  for (int i = 0; i < 3; ++i)
    must(must(pair.a.write(board.local, board.there, all_of_it, with_signal)).wait(soon()));
  const Blob payload(100);
  with_signal.signal = Signal{1, payload};
  for (int i = 0; i < 2; ++i)
    must(must(pair.a.read(board.local, board.there, small, with_signal)).wait(soon()));
  must(must(pair.a.write(board.local, board.there, all_of_it)).wait(soon()));  // unseen
  must(pair.to_b.signal({1, payload}, soon()));
  for (int i = 0; i < 2; ++i) must(pair.to_b.send(2, payload, soon()));
  must(must(pair.to_a.expect(1, 6)).wait(soon()));
  for (int i = 0; i < 2; ++i) must(pair.to_a.recv(2, ~0ULL, soon()));

  const Samples b(pair.b);
  EXPECT_EQ(b.sum("weft_peer_bytes_total", peer_label(pair.a, "write", "remote")), 3 * size);
  EXPECT_EQ(b.sum("weft_peer_bytes_total", peer_label(pair.a, "read", "remote")), 2 * 4096U);
  EXPECT_EQ(b.sum("weft_peer_bytes_total", R"(initiator="local")"), 0U);
  EXPECT_EQ(b.sum("weft_peer_signals_total"), 6U);
  EXPECT_EQ(b.sum("weft_peer_signal_bytes_total"), 300U);
  EXPECT_EQ(b.sum("weft_peer_messages_total"), 2U);
  EXPECT_EQ(b.sum("weft_peer_message_bytes_total"), 200U);
  EXPECT_EQ(b.sum("weft_grants_active"), 1U);
  EXPECT_EQ(b.sum("weft_grants_imported_total"), 0U);
  const Samples a(pair.a);
  EXPECT_EQ(a.sum("weft_peer_bytes_total", peer_label(pair.b, "write", "local")), 4 * size);
  EXPECT_EQ(a.sum("weft_peer_bytes_total", peer_label(pair.b, "read", "local")), 2 * 4096U);
  EXPECT_EQ(a.sum("weft_peer_bytes_total", R"(initiator="remote")"), 0U);
  EXPECT_EQ(a.sum("weft_peer_signals_total"), 0U);
  EXPECT_EQ(a.sum("weft_grants_active"), 0U);
  EXPECT_EQ(a.sum("weft_grants_imported_total"), 1U);
  EXPECT_EQ(a.sum("weft_quarantined_bytes") + b.sum("weft_quarantined_bytes"), 0U);
}

TEST_P(Metrics, OfBothSidesAgreeOnATransferThatFailed) {
  Config config = config_for(GetParam());
  config.chunk_bytes = config.bounce_buffer_bytes = 4096;
  Couple pair = couple(config);
  Board board(pair, size, size);
  const Prepared prepared =
      must(pair.a.prepare(board.local, board.there, Direction::write, all_of_it));
  const std::vector<std::uint32_t> often(10'000);  // more than is moved while the test runs
  TransferOptions options;
  options.deadline = soon();
  options.signal = Signal{1};
  Transfer transfer = must(pair.a.submit(prepared, often, options));
  EXPECT_TRUE(comes_to_be([&] { return transfer.report().bytes_done > 0; }));
  transfer.cancel();
  EXPECT_TRUE(fails_with(transfer.wait(soon()), Code::cancelled));
  const auto told = must(pair.to_a.expect(1, 1)).wait(soon());
  EXPECT_TRUE(fails_with(told, Code::remote_failed));
  const std::uint64_t bytes = Samples(pair.a).sum("weft_transfer_bytes_total");
  EXPECT_GT(bytes, 0U);
  const Samples b(pair.b);
  EXPECT_EQ(b.sum("weft_peer_bytes_total", peer_label(pair.a, "write", "remote")), bytes);
  EXPECT_EQ(b.sum("weft_expectation_errors_total", code_label(Code::remote_failed)), 1U);
}

TEST_P(Metrics, CountWaitsInVain) {
  Couple pair = couple(config_for(GetParam()));
  Expectation late = must(pair.to_a.expect(1, 1, {.deadline = Deadline::in(10ms)}));
  Receive silence = must(pair.to_a.receive(1, ~0ULL, {.deadline = Deadline::in(10ms)}));
  EXPECT_TRUE(fails_with(late.wait(soon()), Code::timed_out));
  EXPECT_TRUE(fails_with(silence.wait(soon()), Code::timed_out));
  {
    const Expectation dropped = must(pair.to_a.expect(1, 1));
    const Receive another = must(pair.to_a.receive(1, ~0ULL));
  }
  Expectation cut = must(pair.to_a.expect(1, 1));
  must(pair.to_b.disconnect());
  EXPECT_TRUE(fails_with(cut.wait(soon()), Code::peer_down));
  const Samples samples(pair.b);
  EXPECT_EQ(samples.sum("weft_expectation_errors_total"), 3U);
  EXPECT_EQ(samples.sum("weft_receive_errors_total"), 2U);
  for (const Code code : {Code::timed_out, Code::cancelled}) {
    EXPECT_EQ(samples.sum("weft_expectation_errors_total", code_label(code)), 1U);
    EXPECT_EQ(samples.sum("weft_receive_errors_total", code_label(code)), 1U);
  }
  EXPECT_EQ(samples.sum("weft_expectation_errors_total", code_label(Code::peer_down)), 1U);
}

TEST_P(Metrics, CountHowGrantsEnd) {
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, size, size);
  Segment other = must(pair.b.add(Memory::own(size)));
  Grant brief = must(other.grant({}, Rights::read, 1ms));
  const Grant lasting = must(other.grant({}, Rights::read));
  const auto ended = [&](const std::string& cause) {
    return Samples(pair.b).sum("weft_grants_ended_total", cause_label(cause));
  };
  EXPECT_TRUE(comes_to_be([&] { return ended("expired") == 1; }));
  EXPECT_EQ(Samples(pair.b).sum("weft_grants_active"), 2U);
  must(brief.revoke(soon()));
  EXPECT_EQ(ended("revoked"), 0U) << "it had ended";
  EXPECT_EQ(must(board.grant.revoke(soon())), Revoked::quiescent);
  must(board.grant.revoke(soon()));
  EXPECT_EQ(ended("revoked"), 1U);
  must(other.release(soon()));
  EXPECT_EQ(ended("released"), 1U);
  const Samples samples(pair.b);
  EXPECT_EQ(samples.sum("weft_grants_ended_total"), 3U);
  EXPECT_EQ(samples.sum("weft_grants_active"), 0U);
  EXPECT_EQ(samples.sum("weft_quarantined_bytes"), 0U);
}

TEST_P(Metrics, TellOfMemoryThatIsNotFree) {
  HeldBack nic;
  Couple pair = couple(config_for(GetParam()), config_for(GetParam()), nic.hooks());
  Board board(pair, size, size, Rights::write);
  const Range part[] = {{4096, 8192}};
  Grant overlapping = must(board.remote.grant(part, Rights::write));
  const Remote there = must(pair.a.import(overlapping.blob()));
  const Pair piece[] = {{0, 4096, 100}};
  const Transfer small = must(pair.a.write(board.local, there, piece));
  EXPECT_TRUE(comes_to_be([&] { return nic.count() == 1; }));
  Transfer transfer = must(pair.a.write(board.local, board.there, all_of_it));
  EXPECT_TRUE(comes_to_be([&] { return nic.count() > 1; }));
  EXPECT_EQ(must(overlapping.revoke(Deadline::in(a_while))), Revoked::quarantined);
  EXPECT_EQ(Samples(pair.b).sum("weft_quarantined_bytes"), 8192U);
  EXPECT_EQ(must(board.grant.revoke(Deadline::in(a_while))), Revoked::quarantined);
  EXPECT_EQ(Samples(pair.b).sum("weft_quarantined_bytes"), size);
  EXPECT_EQ(Samples(pair.a).sum("weft_quarantined_bytes"), 0U);
  EXPECT_TRUE(fails_with(transfer.wait(soon()), Code::stale));
  EXPECT_TRUE(fails_with(board.local.release(Deadline::in(a_while)), Code::quarantined));
  EXPECT_EQ(Samples(pair.a).sum("weft_quarantined_bytes"), size);
  nic.let_go();
  EXPECT_EQ(must(board.grant.revoke(soon())), Revoked::quiescent);
  EXPECT_EQ(must(overlapping.revoke(soon())), Revoked::quiescent);
  EXPECT_EQ(Samples(pair.b).sum("weft_quarantined_bytes"), 0U);
  must(board.local.release(soon()));
  EXPECT_EQ(Samples(pair.a).sum("weft_quarantined_bytes"), 0U);
}

/// Lets a peer connect. Arguments: provider.
WEFT_ROLE(metrics_victim) {
  const Engine engine = must(Engine::open(config_for(arguments.at(0))));
  parent.say(engine.address());
  parent.hear(Deadline::in(300s));
  return 0;
}

/// Looks a grant up, and no more. Arguments: address, provider.
WEFT_ROLE(metrics_idler) {
  Engine engine = must(Engine::open(config_for(arguments.at(1))));
  const Peer peer = must(engine.connect(arguments.at(0), soon()));
  const Remote there = must(peer.lookup("memory", soon()));
  parent.say("holds");
  parent.hear(Deadline::in(300s));
  return 0;
}

// Whatever release() says of a holder that was killed and has not touched anything.
TEST_P(Metrics, TellWhatReleaseSays) {
  for (const Rights rights : {Rights::read, Rights::write}) {
    Engine owner = must(Engine::open(config_for(GetParam())));
    Segment memory = must(owner.add(Memory::own(size)));
    const Grant grant = must(memory.grant({}, rights));
    must(owner.publish("memory", grant));
    Child idler("metrics_idler", {owner.address(), GetParam().provider});
    EXPECT_EQ(idler.hear(), "holds");
    idler.kill();
    EXPECT_TRUE(comes_to_be([&] { return Samples(owner).sum("weft_peers_up") == 0; }));
    const auto released = memory.release(Deadline::in(a_while));
    EXPECT_EQ(released.has_value(), keys_fence(owner));
    EXPECT_EQ(Samples(owner).sum("weft_quarantined_bytes"), released ? 0U : size);
  }
}

// A process of this host went by shared memory: what it had is free, though there are sockets too.
TEST(MetricsOfAHost, AKilledNeighbourKeepsNoMemory) {
  for (const Rights rights : {Rights::read, Rights::write}) {
    Config config = config_for("shm");
    config.providers = {"shm", "tcp"};
    Engine owner = must(Engine::open(config));
    Segment memory = must(owner.add(Memory::own(size)));
    const Grant grant = must(memory.grant({}, rights));
    must(owner.publish("memory", grant));
    Child idler("metrics_idler", {owner.address(), "shm"});
    EXPECT_EQ(idler.hear(), "holds");
    idler.kill();
    EXPECT_TRUE(comes_to_be([&] { return Samples(owner).sum("weft_peers_up") == 0; }));
    EXPECT_TRUE(succeeds(memory.release(soon())));
    EXPECT_EQ(Samples(owner).sum("weft_quarantined_bytes"), 0U);
  }
}

TEST_P(Metrics, CountHowPeersWent) {
  Couple pair = couple(config_for(GetParam()));
  const auto lost = [](const Engine& engine, const std::string& cause = "") {
    return Samples(engine).sum("weft_peers_lost_total", cause_label(cause));
  };
  const auto all_lost = [](const Engine& engine) {
    return Samples(engine).sum("weft_peers_lost_total");
  };
  must(pair.to_b.disconnect());
  EXPECT_TRUE(comes_to_be([&] { return lost(pair.a, "disconnected") == 1; }));
  EXPECT_TRUE(comes_to_be([&] { return lost(pair.b, "goodbye") == 1; }));
  Child victim("metrics_victim", {GetParam().provider});
  must(pair.a.connect(victim.hear(), soon()));
  victim.kill();
  EXPECT_TRUE(comes_to_be([&] { return all_lost(pair.a) == 2; }));
  EXPECT_EQ(lost(pair.a, "connection_lost"), 1U);
  EXPECT_EQ(all_lost(pair.b), 1U);
}

TEST_P(Metrics, CountConnectionsThatWereRefused) {
  const Folder folder;
  Config secret = config_for(GetParam()), another = secret;
  secret.secret_file = folder.write("secret", "a secret of all of them");
  another.secret_file = folder.write("another", "a secret of others alone");
  Engine engine = must(Engine::open(secret)), stranger = must(Engine::open(another)),
         friendly = must(Engine::open(secret));
  EXPECT_TRUE(fails_with(stranger.connect(engine.address(), soon()), Code::permission_denied));
  must(friendly.connect(engine.address(), soon()));
  const Samples samples(engine);
  EXPECT_EQ(samples.sum("weft_connections_refused_total"), 1U);
  EXPECT_EQ(samples.sum("weft_connections_refused_total", cause_label("credentials")), 1U);
  EXPECT_EQ(samples.sum("weft_peers_lost_total"), 0U);
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
  TransferOptions with_signal;
  with_signal.signal = Signal{1};
  board.expect_moved(Direction::write, all_of_it, with_signal);
  must(must(pair.to_a.expect(1, 1)).wait(soon()));
  EXPECT_TRUE(fails_with(pair.a.metrics_text(), Code::unavailable));
  EXPECT_TRUE(fails_with(pair.a.snapshot(), Code::unavailable));
  EXPECT_TRUE(fails_with(pair.a.slowest_transfers(), Code::unavailable));
  config.metrics_listen = "127.0.0.1:0";
  EXPECT_TRUE(fails_with(Engine::open(config), Code::invalid_argument));
}

}  // namespace
}  // namespace weft::test::metrics_tests
