// A peer that is killed in the middle of traffic.
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "engines.hpp"
#include "process.hpp"

namespace weft::test::death_tests {
namespace {

constexpr std::size_t size = 8 << 20;

/// Serves memory to whoever comes. Arguments: provider, bounce or one_sided, name, listen address.
WEFT_ROLE(server) {
  Config config = config_for(Variant{arguments.at(0), TransportKind::one_sided});
  config.name = arguments.at(2);
  config.listen = arguments.at(3);
  config.rail_address = "127.0.0.1";
  Engine engine = must(Engine::open(config));
  Segment segment = must(engine.add(Memory::own(size)));
  fill(bytes_of(segment), 1);
  Grant grant = must(segment.grant({}, Rights::read_write));
  must(engine.publish("memory", grant));
  parent.say(engine.address());
  parent.say(to_hex(grant.blob()));
  parent.hear(Deadline::in(300s));
  return 0;
}

struct Server {
  Server(const Variant& variant, const std::string& name, const std::string& listen = "127.0.0.1:0")
      : child("server",
              {variant.provider,
               variant.transport == TransportKind::bounce ? "bounce" : "one_sided", name, listen}) {
    address = child.hear();
    blob = from_hex(child.hear());
  }
  Child child;
  std::string address;
  Blob blob;
};

class Death : public testing::TestWithParam<Variant> {
 protected:
  Engine engine = must(Engine::open(config_for(GetParam())));
  Segment segment = must(engine.add(Memory::own(size)));
  const std::vector<Pair> all = {{0, 0, size}};

  /// Reads everything and compares it.
  void expect_serves(const Peer& peer) {
    const Remote remote = must(peer.lookup("memory", soon()));
    fill(bytes_of(segment), 2);
    Transfer transfer = must(engine.read(segment, remote, all));
    const auto ended = transfer.wait(Deadline::in(10s));
    std::string rails;
    for (const RailInfo& rail : engine.info().rails)
      rails += rail.name + ": " + std::to_string(rail.in_flight) + " in flight, " +
               std::to_string(rail.lost) + " lost; ";
    ASSERT_TRUE(succeeds(ended)) << transfer.report().bytes_done << " bytes were done; " << rails;
    EXPECT_TRUE(holds(bytes_of(segment), 1));
  }
};

/// Serves until it is killed, beside a child of its own that has all of its descriptors.
WEFT_ROLE(parent_of_one) {
  Engine engine = must(Engine::open(config_for(arguments.at(0))));
  parent.say(engine.address());
  const Peer peer = must(engine.accept(soon()));
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    for (;;) pause();
  }
  parent.say(std::to_string(child));
  parent.hear(Deadline::in(300s));
  return 0;
}

// As programs do that fork workers: the connections of the dead one stay open.
TEST_P(Death, IsSeenThoughAChildKeepsItsSockets) {
  Child victim("parent_of_one", {GetParam().provider});
  const Peer peer = must(engine.connect(victim.hear(), soon()));
  const pid_t orphan = std::stoi(victim.hear());
  victim.kill();
  const auto killed = Clock::now();
  EXPECT_TRUE(comes_to_be([&] { return !peer.up(); }));
  EXPECT_LT(Clock::now() - killed, config_for(GetParam()).death_after / 2);
  kill(orphan, SIGKILL);
}

TEST_P(Death, FailsItsTransfersAndNoOthers) {
  Server victim(GetParam(), "victim"), other(GetParam(), "other");
  const Peer to_victim = must(engine.connect(victim.address, soon()));
  const Peer to_other = must(engine.connect(other.address, soon()));
  const Remote there = must(to_victim.lookup("memory", soon()));
  Segment source = must(engine.add(Memory::own(size)));
  Expectation expectation = must(to_victim.expect(1, 1));
  Receive receive = must(to_victim.receive(1, 1));

  // Always some transfers under way, some of them with signals, each to a place of its own.
  constexpr std::size_t under_way = 6, part = size / under_way;
  std::vector<Transfer> transfers;
  const auto submit = [&](std::size_t i) -> Result<Transfer> {
    TransferOptions options;
    if (i % 2 == 0) options.signal = Signal{1};
    const Pair piece[] = {{i * part, i * part, part}};
    return engine.write(source, there, piece, options);
  };
  for (std::size_t i = 0; i < under_way; ++i) transfers.push_back(must(submit(i)));
  must(transfers[0].wait(soon()));
  transfers[0] = must(submit(0));

  victim.child.signal(SIGKILL);
  const auto killed = Clock::now();
  Clock::time_point last{};
  for (std::size_t i = 0; i < under_way; ++i) {
    Transfer& transfer = transfers[i];
    auto ended = transfer.wait(Deadline::at(killed + 5s));
    // Some may have been done before the signal came; there are always others then.
    while (ended) {
      auto next = submit(i);
      if (!next) break;
      transfer = std::move(*next);
      ended = transfer.wait(Deadline::at(killed + 5s));
    }
    last = Clock::now();
    if (ended) continue;  // it was known to be dead before anything more could begin
    // A rail may hear of it before the control connection does.
    EXPECT_TRUE(ended.error().code() == Code::peer_down ||
                ended.error().code() == Code::fabric_failed)
        << ended.error().to_string();
    EXPECT_EQ(transfer.state(), State::failed);
    EXPECT_EQ(ended.error().peer(), "victim");
  }
  RecordProperty("milliseconds", static_cast<int>((last - killed) / 1ms));
  std::printf("%s: failed %.1f ms after the kill\n", name_of(GetParam()).c_str(),
              std::chrono::duration<double, std::milli>(last - killed).count());
  EXPECT_TRUE(fails_with(expectation.wait(soon()), Code::peer_down));
  EXPECT_TRUE(fails_with(receive.wait(soon()), Code::peer_down));
  EXPECT_TRUE(fails_with(submit(0), Code::peer_down));
  EXPECT_TRUE(fails_with(to_victim.lookup("memory", soon()), Code::peer_down));
  // Where the provider emulates writes (efa in libfabric 1.17) those to a dead peer never complete;
  // their memory stays the NIC's until the endpoint is closed.
  const bool emulated = engine.info().rails.front().capability.write == Origin::emulated &&
                        GetParam().transport == TransportKind::one_sided;
  for (Transfer& transfer : transfers) {
    const Deadline deadline = emulated ? Deadline::now() : soon();
    EXPECT_NE(transfer.wait_quiescent(deadline).has_value(), transfer.state() != State::done);
    if (!emulated) {
      EXPECT_TRUE(transfer.quiescent());
    }
  }

  EXPECT_TRUE(to_other.up());
  expect_serves(to_other);
}

TEST_P(Death, DoesNotDisturbTrafficWithOthers) {
  Server victim(GetParam(), "victim"), other(GetParam(), "other");
  const Peer to_victim = must(engine.connect(victim.address, soon()));
  const Peer to_other = must(engine.connect(other.address, soon()));
  const Remote there = must(to_victim.lookup("memory", soon()));
  const Remote elsewhere = must(to_other.lookup("memory", soon()));
  std::atomic<bool> stop{false};
  std::atomic<int> good{0}, bad{0};
  std::jthread traffic([&] {
    while (!stop) {
      auto transfer = engine.read(segment, elsewhere, all);
      (transfer && transfer->wait(soon()) ? good : bad)++;
    }
  });
  Segment source = must(engine.add(Memory::own(size)));
  Transfer lost = must(engine.write(source, there, all));
  victim.child.signal(SIGKILL);
  while (auto transfer = engine.write(source, there, all))
    if (!transfer->wait(soon())) break;
  const int then = good;
  const Deadline deadline = soon();
  while (good < then + 3 && bad == 0 && !deadline.passed()) std::this_thread::yield();
  stop = true;
  traffic.join();
  EXPECT_EQ(bad, 0);
  EXPECT_GE(good, then + 3);
  EXPECT_TRUE(holds(bytes_of(segment), 1));
}

/// An address that no other test listens at or connects from: its ports stay free.
std::string own_loopback() {
  const auto pid = static_cast<unsigned>(getpid());
  return "127." + std::to_string(1 + pid / 62'500 % 250) + "." +
         std::to_string(1 + pid / 250 % 250) + "." + std::to_string(1 + pid % 250) + ":0";
}

TEST_P(Death, IsFollowedByANewIncarnationAtTheSameAddress) {
  auto server = std::make_unique<Server>(GetParam(), "server", own_loopback());
  const std::string address = server->address;
  const Peer before = must(engine.connect(address, soon()));
  const Remote old = must(before.lookup("memory", soon()));
  const Prepared prepared = must(engine.prepare(segment, old, Direction::read, all));
  expect_serves(before);
  server->child.kill();
  EXPECT_TRUE(fails_with(must(before.expect(1, 1)).wait(soon()), Code::peer_down));

  Server reborn(GetParam(), "server", address);
  EXPECT_EQ(reborn.address, address);
  const Peer after = must(engine.connect(address, soon()));
  EXPECT_EQ(after.name(), before.name());
  EXPECT_NE(after.incarnation(), before.incarnation());
  EXPECT_FALSE(before.up());
  EXPECT_TRUE(fails_with(engine.import(server->blob), Code::stale));
  EXPECT_TRUE(fails_with(engine.read(segment, old, all), Code::peer_down));
  EXPECT_TRUE(fails_with(engine.submit(prepared), Code::peer_down));
  EXPECT_TRUE(fails_with(before.signal({1}, soon()), Code::peer_down));
  EXPECT_TRUE(succeeds(engine.import(reborn.blob)));
  expect_serves(after);
}

/// Connects, and writes for ever.
WEFT_ROLE(writer) {
  Engine engine = must(Engine::open(config_for(
      Variant{arguments.at(0),
              arguments.at(1) == "bounce" ? TransportKind::bounce : TransportKind::one_sided})));
  const Peer peer = must(engine.connect(arguments.at(2), soon()));
  const Remote there = must(peer.lookup("board", soon()));
  Segment segment = must(engine.add(Memory::own(size)));
  fill(bytes_of(segment), 3);
  const Pair all[] = {{0, 0, size}};
  must(must(engine.write(segment, there, all)).wait(soon()));
  parent.say("writing");
  while (true) {
    std::vector<Transfer> transfers;
    for (std::size_t i = 0; i < 4; ++i) {
      const Pair quarter[] = {{i * size / 4, i * size / 4, size / 4}};
      transfers.push_back(must(engine.write(segment, there, quarter)));
    }
    for (Transfer& transfer : transfers) must(transfer.wait(soon()));
  }
}

TEST_P(Death, OfAnInitiatorLeavesTheTargetWorking) {
  Segment board = must(engine.add(Memory::own(size)));
  const std::vector<std::string> words = {
      GetParam().provider, GetParam().transport == TransportKind::bounce ? "bounce" : "one_sided",
      engine.address()};
  for (int round = 0; round < 3; ++round) {
    Grant grant = must(board.grant({}, Rights::read_write));
    must(engine.publish("board", grant));
    Child writer("writer", words);
    const Peer peer = must(engine.accept(soon()));
    ASSERT_EQ(writer.hear(), "writing");
    writer.kill();
    EXPECT_TRUE(fails_with(must(peer.expect(1, 1)).wait(soon()), Code::peer_down));
    // Where closing its keys does not keep out what is under way, only closing the engine does.
    EXPECT_EQ(must(grant.revoke(soon())),
              keys_fence(engine) ? Revoked::quiescent : Revoked::quarantined);
    EXPECT_TRUE(holds(bytes_of(board), 3));
  }
}

/// An engine that listens at an address, grants memory under "memory", and waits to be killed.
/// Arguments: provider, address.
WEFT_ROLE(service) {
  Config config = config_for(arguments.at(0));
  config.name = "service";
  config.listen = arguments.at(1);
  Engine engine = must(Engine::open(config));
  Segment segment = must(engine.add(Memory::own(size)));
  Grant grant = must(segment.grant({}, Rights::read_write));
  must(engine.publish("memory", grant));
  parent.say(engine.address());
  parent.hear(Deadline::in(300s));
  return 0;
}

TEST_P(Death, AServiceThatComesBackAtItsAddressIsMetAgainAndItsOldGrantsAreStale) {
  const std::string address = lasting_address();
  Segment source = must(engine.add(Memory::own(size)));
  std::optional<Remote> old;
  std::optional<Peer> before;
  for (int life = 0; life < 3; ++life) {
    Child service("service", {GetParam().provider, address});
    EXPECT_EQ(service.hear(), address);
    if (!before) must(engine.keep_connected(address, soon()));
    const Peer peer = must(engine.peer("service", soon()));
    ASSERT_TRUE(peer.up());
    if (before) {
      EXPECT_NE(peer.incarnation(), before->incarnation());
      EXPECT_FALSE(before->up());
      EXPECT_FALSE(engine.write(source, *old, all)) << "what the dead one granted";
    }
    const Remote there = must(peer.lookup("memory", soon()));
    must(must(engine.write(source, there, all)).wait(soon()));
    before = peer;
    old = there;
    service.kill();
    EXPECT_TRUE(fails_with(must(peer.expect(1, 1)).wait(soon()), Code::peer_down));
  }
  EXPECT_TRUE(fails_with(engine.peer("service", Deadline::in(100ms)), Code::timed_out));
}

TEST_P(Death, WhoDisconnectsIsNotMetAgain) {
  Engine other = must(Engine::open(config_for(GetParam())));
  const Peer peer = must(engine.keep_connected(other.address(), soon()));
  must(must(other.peer(engine.name(), soon())).disconnect());
  EXPECT_FALSE(must(peer.expect(1, 1)).wait(soon()));
  const Peer again = must(engine.peer(other.name(), soon()));
  EXPECT_EQ(again.incarnation(), peer.incarnation()) << "the same one, over another link";
  must(again.disconnect());
  EXPECT_FALSE(must(again.expect(1, 1)).wait(soon()));
  EXPECT_TRUE(fails_with(engine.peer(other.name(), Deadline::in(500ms)), Code::timed_out));
}

TEST_P(Death, OfAFrozenPeerIsNoticedByItsSilence) {
  Config config = config_for(GetParam());
  config.heartbeat = 100ms;
  config.death_after = 1s;
  Engine impatient = must(Engine::open(config));
  Server victim(GetParam(), "victim");
  const Peer peer = must(impatient.connect(victim.address, soon()));
  const Remote there = must(peer.lookup("memory", soon()));
  Segment source = must(impatient.add(Memory::own(size)));
  victim.child.signal(SIGSTOP);
  Transfer transfer = must(impatient.write(source, there, all));
  // shm needs nobody at the other end to carry out... what was not done fails.
  const auto ended = transfer.wait(soon());
  if (!ended) {
    EXPECT_TRUE(fails_with(ended, Code::peer_down));
  }
  EXPECT_TRUE(fails_with(must(peer.expect(1, 1)).wait(soon()), Code::peer_down));
  victim.child.signal(SIGCONT);
}

/// A dead peer that is only frozen keeps its connection, over tcp, with what is in it.
TEST_P(Death, OfAFrozenPeerFreesTheMemoryThatIsStillOut) {
  Config config = config_for(GetParam());
  config.heartbeat = 100ms;
  config.suspect_after = 1s;
  config.death_after = 2s;
  Engine impatient = must(Engine::open(config));
  Server victim(GetParam(), "victim"), other(GetParam(), "other");
  const Peer to_victim = must(impatient.connect(victim.address, soon()));
  const Peer to_other = must(impatient.connect(other.address, soon()));
  const Remote there = must(to_victim.lookup("memory", soon()));
  Segment source = must(impatient.add(Memory::own(size)));
  EXPECT_TRUE(succeeds(must(impatient.write(source, there, all)).wait(soon()))) << "they have met";
  victim.child.signal(SIGSTOP);
  std::vector<Transfer> stuck;
  for (int i = 0; i < 16; ++i) {
    stuck.push_back(must(impatient.write(source, there, all)));
    if (i % 2 == 0) stuck.back().cancel();
  }
  for (Transfer& transfer : stuck) {
    std::ignore = transfer.wait_quiescent(soon());
    EXPECT_TRUE(transfer.quiescent());
  }
  const Remote elsewhere = must(to_other.lookup("memory", soon()));
  EXPECT_TRUE(succeeds(must(impatient.read(source, elsewhere, all)).wait(soon())));
  EXPECT_TRUE(holds(bytes_of(source), 1));
  victim.child.signal(SIGCONT);
}

TEST_P(Death, APauseCostsTimeAndNoTransfer) {
  Config config = config_for(GetParam());
  config.heartbeat = 50ms;
  config.suspect_after = 500ms;
  config.death_after = 300s;
  Engine patient = must(Engine::open(config));
  Server paused(GetParam(), "paused");
  const Peer peer = must(patient.connect(paused.address, soon()));
  const Remote there = must(peer.lookup("memory", soon()));
  Segment source = must(patient.add(Memory::own(size)));
  EXPECT_TRUE(comes_to_be([&] { return peer.health() == Health::up; }));
  paused.child.signal(SIGSTOP);
  Transfer transfer = must(patient.write(source, there, all));
  EXPECT_TRUE(comes_to_be([&] { return peer.health() == Health::silent; }));
  EXPECT_TRUE(peer.up());
  EXPECT_NE(must(patient.metrics_text()).find("\nweft_peers_silent 1\n"), std::string::npos);
  Transfer late = must(patient.write(source, there, all, {.deadline = Deadline::in(100ms)}));
  // shm needs nobody at the other end.
  if (const auto ended = late.wait(soon()); !ended) {
    EXPECT_TRUE(fails_with(ended, Code::timed_out));
    EXPECT_NE(ended.error().message().find("nothing has been heard"), std::string::npos);
  }
  paused.child.signal(SIGCONT);
  EXPECT_TRUE(succeeds(transfer.wait(soon())));
  EXPECT_TRUE(comes_to_be([&] { return peer.health() == Health::up; }));
}

TEST_P(Death, DoesNotSpreadFromAFrozenPeer) {
  Server frozen(GetParam(), "frozen"), other(GetParam(), "other");
  const Peer to_frozen = must(engine.connect(frozen.address, soon()));
  const Peer to_other = must(engine.connect(other.address, soon()));
  const Remote there = must(to_frozen.lookup("memory", soon()));
  Segment source = must(engine.add(Memory::own(size)));
  frozen.child.signal(SIGSTOP);
  constexpr std::size_t count = 64, part = size / count;
  std::vector<Transfer> stuck;
  for (std::size_t i = 0; i < count; ++i) {
    const Pair piece[] = {{i * part, i * part, part}};
    stuck.push_back(must(engine.write(source, there, piece)));
  }
  for (int round = 0; round < 5; ++round) expect_serves(to_other);
  EXPECT_TRUE(to_frozen.up()) << "long before anybody gives it up";
  frozen.child.signal(SIGCONT);
  for (Transfer& transfer : stuck) EXPECT_TRUE(succeeds(transfer.wait(soon())));
}

INSTANTIATE_TEST_SUITE_P(All, Death, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test::death_tests
