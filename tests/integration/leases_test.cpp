// Leases: what is read under a grant that has ended is never accepted, and what is granted for
// writing is not reused before its writers have stopped.
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <future>

#include "engines.hpp"
#include "gate.hpp"
#include "held_back.hpp"
#include "process.hpp"
#include "providers/sanitizer.hpp"

namespace weft::test::leases_tests {
namespace {

constexpr std::size_t bytes = 256 << 10, large = 1 << 20;
constexpr Pair everything[] = {{0, 0, bytes}};

class Leases : public testing::TestWithParam<Variant> {
 protected:
  Config config = config_for(GetParam());
};

TEST_P(Leases, AStaleReferenceAfterTheOwnerReusedItsBlocksIsAnErrorAndNotData) {
  // The reader never hears that the grant has ended.
  Couple pair = couple(config, config, {}, losing<core::RevokeRequest>());
  Board board(pair, bytes, bytes, Rights::read);
  const Prepared prepared =
      must(pair.a.prepare(board.local, board.there, Direction::read, everything));
  must(must(pair.a.submit(prepared)).wait(soon()));
  EXPECT_EQ(must(board.grant.revoke(soon())), Revoked::quiescent);
  fill(bytes_of(board.remote), 77);
  for (int round = 0; round < 3; ++round) {
    TransferOptions options;
    options.signal = Signal{5};
    Transfer late = must(pair.a.submit(prepared, options));
    EXPECT_TRUE(fails_with(late.wait(soon()), Code::stale));
    EXPECT_EQ(late.state(), State::failed);
    EXPECT_NE(late.placed(), std::vector{Placed::all});
    const auto told = must(pair.to_a.expect(5, 1)).wait(soon());
    EXPECT_TRUE(fails_with(told, Code::remote_failed)) << "whoever waits for the signal hears";
  }
}

TEST_P(Leases, ReadsThatRaceWithReuseAreWholeOrStale) {
  config.chunk_bytes = config.bounce_buffer_bytes = 16 << 10;
  Couple pair = couple(config, config, {}, losing<core::RevokeRequest>());
  Segment local = must(pair.a.add(Memory::own(bytes)));
  Segment cache = must(pair.b.add(Memory::own(bytes)));
  std::atomic<std::uint64_t> accepted{0}, refused{0};
  for (std::uint64_t generation = 1; generation <= 20; ++generation) {
    fill(bytes_of(cache), generation);
    Grant grant = must(cache.grant({}, Rights::read));
    const Remote there = must(pair.a.import(grant.blob()));
    std::promise<void> reading;
    std::jthread reader([&] {
      for (std::uint64_t round = 0;; ++round) {
        Transfer read = must(pair.a.read(local, there, everything));
        const auto ended = read.wait(soon());
        if (round == 0) reading.set_value();
        if (!ended) {
          EXPECT_TRUE(fails_with(ended, Code::stale));
          // What is still out of it may come while the next generation is read.
          EXPECT_TRUE(fails_with(read.wait_quiescent(soon()), Code::stale));
          ++refused;
          return;
        }
        ++accepted;
        ASSERT_TRUE(holds(bytes_of(local), generation)) << "another generation's bytes";
      }
    });
    ASSERT_EQ(reading.get_future().wait_for(60s), std::future_status::ready);
    ASSERT_EQ(must(grant.revoke(soon())), Revoked::quiescent);
    fill(bytes_of(cache), generation + 1000);
  }
  EXPECT_GE(accepted, 20U);
  EXPECT_EQ(refused, 20U);
}

TEST_P(Leases, WhoeverHearsOfTheEndStopsReadingAtOnce) {
  Gate gate;
  Couple pair = couple(config, config, gate.hooks());
  Board board(pair, bytes, bytes, Rights::read);
  Transfer transfer = must(pair.a.read(board.local, board.there, everything));
  EXPECT_EQ(must(board.grant.revoke(soon())), Revoked::quiescent);
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::stale));
  EXPECT_EQ(transfer.placed(), std::vector{Placed::none});
  EXPECT_TRUE(fails_with(pair.a.read(board.local, board.there, everything), Code::stale));
  gate.open();
  board.expect_untouched();
}

/// Renews a grant of `ttl` until it is past the end that it had at first, and the first end after
/// that, and writes by one list all the while. The error of the first call that fails.
Result<void> write_while_renewing(Couple& pair, Segment& local, Segment& cache, Grant& grant,
                                  const Prepared& list, Nanoseconds ttl) {
  const auto begin = Clock::now();
  auto renewed = begin;
  for (std::uint64_t seed = 1; Clock::now() < begin + 5 * ttl / 4; ++seed) {
    if (Clock::now() - renewed >= ttl / 8) {
      if (auto done = grant.renew(ttl); !done) return done;
      renewed = Clock::now();
    }
    fill(bytes_of(local), seed);
    auto transfer = pair.a.submit(list);
    if (!transfer) return fail(transfer.error());
    if (auto done = transfer->wait(soon()); !done) return done;
    EXPECT_TRUE(holds(bytes_of(cache), seed));
  }
  return {};
}

TEST_P(Leases, ARenewedOneHoldsOnAndItsListsStayGood) {
  Couple pair = couple(config);
  Segment local = must(pair.a.add(Memory::own(bytes))),
          cache = must(pair.b.add(Memory::own(bytes)));
  // A machine on which threads stand still for longer gets another try.
  Result<void> held;
  for (Nanoseconds ttl = 1s; ttl <= 16s; ttl *= 4) {
    Grant grant = must(cache.grant({}, Rights::read_write, ttl));
    const Remote there = must(pair.a.import(grant.blob()));
    const Prepared list = must(pair.a.prepare(local, there, Direction::write, everything));
    held = write_while_renewing(pair, local, cache, grant, list, ttl);
    if (!held && held.error().code() == Code::stale) continue;
    ASSERT_TRUE(succeeds(held));
    const auto end = Clock::now() + ttl;
    EXPECT_TRUE(comes_to_be([&] { return Clock::now() > end; }));
    EXPECT_TRUE(fails_with(grant.renew(ttl), Code::stale));
    auto late = pair.a.submit(list);
    EXPECT_TRUE(fails_with(late ? late->wait(soon()) : fail(late.error()), Code::stale));
    EXPECT_EQ(must(grant.revoke(soon())), Revoked::quiescent);
    return;
  }
  FAIL() << held.error().to_string();
}

TEST_P(Leases, RenewalReachesTransfersThatAreUnderWay) {
  Gate gate;
  Couple pair = couple(config, config, gate.hooks());
  Segment local = must(pair.a.add(Memory::own(bytes))),
          cache = must(pair.b.add(Memory::own(bytes)));
  fill(bytes_of(local), 3);
  constexpr auto ttl = 1s;
  Grant grant = must(cache.grant({}, Rights::write, ttl));
  const auto end = Clock::now() + ttl;
  const Remote there = must(pair.a.import(grant.blob()));
  Transfer transfer = must(pair.a.write(local, there, everything, {.deadline = soon()}));
  must(grant.renew(300s));
  EXPECT_TRUE(comes_to_be([&] { return Clock::now() > end; }));
  EXPECT_EQ(transfer.state(), State::active) << "it would have ended with its lease";
  gate.open();
  EXPECT_TRUE(succeeds(transfer.wait(soon())));
  EXPECT_TRUE(holds(bytes_of(cache), 3));
}

TEST_P(Leases, IsNeverShortenedByARenewal) {
  Couple pair = couple(config);
  Segment local = must(pair.a.add(Memory::own(bytes))),
          cache = must(pair.b.add(Memory::own(bytes)));
  Grant grant = must(cache.grant({}, Rights::write));
  const Remote there = must(pair.a.import(grant.blob()));
  EXPECT_TRUE(fails_with(grant.renew(0ns), Code::invalid_argument));
  must(grant.renew(1ns));
  EXPECT_TRUE(succeeds(must(pair.a.write(local, there, everything)).wait(soon())));
  EXPECT_EQ(must(grant.revoke(soon())), Revoked::quiescent);
  EXPECT_TRUE(fails_with(grant.renew(1s), Code::stale));
}

// What a sanitizer sees: a key that outlives its rail because nobody was left to close it.
TEST_P(Leases, AReadersWordThatComesDuringARevokeLeavesNoKeyOpen) {
  Couple pair = couple(config, config);
  Segment cache = must(pair.b.add(Memory::own(bytes)));
  std::vector<Grant> kept;
  for (int round = 0; round < 300; ++round) {
    kept.push_back(must(cache.grant({}, Rights::read)));
    const Remote there = must(pair.a.import(kept.back().blob()));
    EXPECT_EQ(must(kept.back().revoke(soon())), Revoked::quiescent);
  }
  must(pair.b.close(soon()));
  kept.clear();
}

TEST_P(Leases, AWriterStopsInTheMiddleAndTheMemoryIsFree) {
  config.chunk_bytes = config.bounce_buffer_bytes = 4096;
  Couple pair = couple(config);
  Board board(pair, bytes, bytes, Rights::write);
  const Prepared prepared =
      must(pair.a.prepare(board.local, board.there, Direction::write, everything));
  // Far more than can be moved while the test runs.
  const std::vector<std::uint32_t> often(1'000'000);
  TransferOptions options;
  options.deadline = soon();
  options.signal = Signal{9};
  Transfer transfer = must(pair.a.submit(prepared, often, options));
  const Deadline deadline = soon();
  while (transfer.report().bytes_done == 0 && !deadline.passed()) std::this_thread::yield();
  EXPECT_EQ(must(board.grant.revoke(soon())), Revoked::quiescent);
  fill(bytes_of(board.remote), 5);
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::stale));
  EXPECT_LT(transfer.report().bytes_done, transfer.report().bytes);
  EXPECT_TRUE(fails_with(must(pair.to_a.expect(9, 1)).wait(soon()), Code::remote_failed));
  EXPECT_TRUE(holds(bytes_of(board.remote), 5));
}

TEST_P(Leases, AWriterThatCannotDrainLeavesTheMemoryQuarantinedUntilItHas) {
  HeldBack nic;
  Couple pair = couple(config, config, nic.hooks());
  Board board(pair, bytes, bytes, Rights::write);
  Transfer transfer = must(pair.a.write(board.local, board.there, everything));
  const Deadline deadline = soon();
  while (nic.count() == 0 && !deadline.passed()) std::this_thread::yield();
  EXPECT_EQ(must(board.grant.revoke(Deadline::in(a_while))), Revoked::quarantined);
  EXPECT_TRUE(fails_with(board.remote.release(Deadline::in(a_while)), Code::quarantined));
  EXPECT_TRUE(fails_with(transfer.wait(soon()), Code::stale));
  EXPECT_FALSE(transfer.quiescent());
  EXPECT_TRUE(fails_with(board.local.release(Deadline::in(a_while)), Code::quarantined));
  nic.let_go();
  EXPECT_EQ(must(board.grant.revoke(soon())), Revoked::quiescent);
  EXPECT_TRUE(succeeds(board.remote.release(soon())));
  EXPECT_TRUE(succeeds(board.local.release(soon())));
  EXPECT_TRUE(transfer.quiescent());
}

TEST_P(Leases, AWriterThatDoesNotAnswerCanBeFencedWhereKeysDoThat) {
  Couple pair = couple(config, config, losing<core::RevokeConfirmed>());
  Board board(pair, bytes, bytes, Rights::write);
  EXPECT_EQ(must(board.grant.revoke(Deadline::in(a_while))), Revoked::quarantined);
  EXPECT_EQ(must(board.grant.revoke(Deadline::in(a_while))), Revoked::quarantined);
  const auto fenced = board.grant.fence(soon());
  if (keys_fence(pair.b)) {
    EXPECT_EQ(must(fenced), Revoked::quiescent);
    EXPECT_EQ(must(board.grant.revoke(soon())), Revoked::quiescent);
    EXPECT_TRUE(succeeds(board.remote.release(soon())));
  } else {
    EXPECT_TRUE(fails_with(fenced, Code::unsupported));
    EXPECT_TRUE(fails_with(board.remote.release(Deadline::in(a_while)), Code::quarantined));
  }
}

TEST_P(Leases, AWriterThatWentWithoutAWordCountsAsFrozen) {
  Couple pair = couple(config, config, losing<core::RevokeConfirmed>());
  Board board(pair, bytes, bytes, Rights::write);
  must(pair.a.close(soon()));
  const Deadline deadline = soon();
  while (pair.to_a.up() && !deadline.passed()) std::this_thread::yield();
  const bool safe = keys_fence(pair.b);
  EXPECT_EQ(must(board.grant.revoke(soon())), safe ? Revoked::quiescent : Revoked::quarantined);
  const auto released = board.remote.release(soon());
  EXPECT_EQ(released.has_value(), safe);
  if (released) return;
  for (const Error& why : {board.grant.why_quarantined(), released.error()})
    EXPECT_NE(why.to_string().find("is gone"), std::string::npos) << why.to_string();
}

TEST_P(Leases, AWriterThatLeavesInOrderGivesItsGrantsBack) {
  for (const bool close : {true, false}) {
    Couple pair = couple(config);
    Board board(pair, bytes, bytes, Rights::write);
    board.expect_moved(Direction::write, everything);
    must(close ? pair.a.close(soon()) : pair.to_b.disconnect());
    const Deadline deadline = soon();
    while (pair.to_a.up() && !deadline.passed()) std::this_thread::yield();
    EXPECT_EQ(must(board.grant.revoke(soon())), Revoked::quiescent);
    EXPECT_TRUE(succeeds(board.remote.release(soon())));
  }
}

TEST_P(Leases, NobodyIsWaitedForWhoNeverImportedTheGrant) {
  Couple pair = couple(config, config, losing<core::RevokeConfirmed>());
  Segment segment = must(pair.b.add(Memory::own(bytes)));
  Grant grant = must(segment.grant({}, Rights::read_write));
  EXPECT_EQ(must(grant.revoke(soon())), Revoked::quiescent);
}

TEST_P(Leases, TimeRunsOutOnBothSides) {
  Gate gate;
  Couple pair = couple(config, config, gate.hooks());
  Board board(pair, bytes, bytes);
  Grant grant = must(board.remote.grant({}, Rights::read_write, 300ms));
  const Remote there = must(pair.a.import(grant.blob()));
  TransferOptions patient;
  patient.deadline = soon();
  for (const bool write : {true, false}) {
    auto transfer = write ? pair.a.write(board.local, there, everything, patient)
                          : pair.a.read(board.local, there, everything, patient);
    // A slow machine may be late for the second.
    if (!transfer) {
      EXPECT_TRUE(fails_with(transfer, Code::stale));
      continue;
    }
    EXPECT_TRUE(fails_with(transfer->wait_quiescent(soon()), Code::stale));
    EXPECT_EQ(transfer->state(), State::failed);
  }
  EXPECT_TRUE(fails_with(pair.a.write(board.local, there, everything), Code::stale));
  // It is over here first: its time counts from before the owner was asked.
  const Deadline patience = soon();
  while (pair.a.import(grant.blob()) && !patience.passed()) {
  }
  EXPECT_TRUE(fails_with(pair.a.import(grant.blob()), Code::stale));
  EXPECT_TRUE(fails_with(pair.b.publish("name", grant), Code::stale));
  gate.open();
  EXPECT_EQ(must(grant.revoke(soon())), Revoked::quiescent);
  board.expect_untouched();
  board.expect_moved(Direction::write, everything);  // by the other grant
}

TEST_P(Leases, ATimeThatIsNoneIsRefused) {
  Couple pair = couple(config);
  Board board(pair, bytes, bytes);
  EXPECT_TRUE(fails_with(board.remote.grant({}, Rights::read, 0ns), Code::invalid_argument));
  EXPECT_TRUE(fails_with(board.remote.grant({}, Rights::read, -1ns), Code::invalid_argument));
}

TEST_P(Leases, WordsOfManyGrantsAreTheirOwn) {
  Couple pair = couple(config);
  Board board(pair, bytes, bytes);
  // More than a page of words, some of them used again.
  std::vector<Grant> grants;
  std::vector<Remote> there;
  for (std::size_t i = 0; i < 600; ++i) {
    grants.push_back(must(board.remote.grant({}, Rights::read)));
    there.push_back(must(pair.a.import(grants.back().blob())));
    if (i % 3 == 2) {
      must(grants[i - 1].revoke(soon()));
      EXPECT_TRUE(fails_with(pair.a.import(grants[i - 1].blob()), Code::stale));
    }
  }
  const Pair piece[] = {{0, 0, 100}};
  for (std::size_t i = 0; i < grants.size(); i += 7) {
    const auto read = pair.a.read(board.local, there[i], piece).and_then([](Transfer&& transfer) {
      return transfer.wait(soon());
    });
    if (i % 3 == 1)
      EXPECT_TRUE(fails_with(read, Code::stale)) << i;
    else
      EXPECT_TRUE(succeeds(read)) << i;
  }
}

TEST_P(Leases, EveryPieceOfACancelledTransferHasItsOutcome) {
  config.chunk_bytes = config.bounce_buffer_bytes = 4096;
  Couple pair = couple(config);
  constexpr std::size_t pieces = 512, piece = 12'000;
  Board board(pair, pieces * piece, pieces * piece);
  const Blob before(bytes_of(board.remote).begin(), bytes_of(board.remote).end());
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::uint64_t at = (i * 7 % pieces) * piece;  // no neighbours
    pairs.push_back({at, at, piece});
  }
  Transfer transfer = must(pair.a.write(board.local, board.there, pairs));
  const Deadline deadline = soon();
  while (transfer.report().bytes_done < 20 * piece && !deadline.passed()) std::this_thread::yield();
  transfer.cancel();
  static_cast<void>(transfer.wait_quiescent(soon()));
  ASSERT_TRUE(transfer.quiescent());
  const std::vector<Placed> placed = transfer.placed();
  ASSERT_EQ(placed.size(), pieces);
  std::size_t all = 0;
  for (std::size_t i = 0; i < pieces; ++i) {
    const Bytes now(board.remote.data() + pairs[i].remote, piece);
    const std::byte* wanted = placed[i] == Placed::all ? board.local.data() + pairs[i].local
                                                       : before.data() + pairs[i].remote;
    if (placed[i] != Placed::unknown) {
      ASSERT_TRUE(same_bytes(now, Bytes(wanted, piece))) << i;
    }
    all += placed[i] == Placed::all ? 1 : 0;
  }
  EXPECT_GE(all, 15U);
}

std::string text_of(Revoked revoked) {
  return revoked == Revoked::quiescent ? "quiescent" : "quarantined";
}

/// Ends its grant when it is told to, and then uses the memory for something else. Arguments:
/// provider.
WEFT_ROLE(owner_that_revokes) {
  Engine engine = must(Engine::open(config_for(arguments.at(0), 1)));
  Segment segment = must(engine.add(Memory::own(large)));
  Grant grant = must(segment.grant({}, Rights::write));
  parent.say(engine.address());
  parent.say(to_hex(grant.blob()));
  parent.hear(soon());
  parent.say(text_of(must(grant.revoke(soon()))));
  parent.hear(soon());
  const Revoked fenced = must(grant.fence(soon(), FenceScope::rail));
  std::memset(segment.data(), 0xee, segment.size());
  parent.say(text_of(fenced));
  parent.hear(soon());
  const auto is_ours = [](std::byte each) { return each == std::byte{0xee}; };
  const Deadline later = Deadline::in(a_while);
  bool all = true;
  while (all && !later.passed()) all = std::ranges::all_of(bytes_of(segment), is_ours);
  parent.say(all ? "no" : "yes");
  parent.hear(soon());
  return 0;
}

/// As a broken network would.
void cut_connections_but(std::uint16_t port) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(entry.path().filename().string());
    sockaddr_in peer{};
    socklen_t length = sizeof peer;
    if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
        peer.sin_family == AF_INET && ntohs(peer.sin_port) != port)
      shutdown(descriptor, SHUT_RDWR);
  }
}

/// Its operations end with their connection, and what they sent lies in the sockets of the owner.
TEST_P(Leases, WhatAFrozenOwnerHasNotTakenInDoesNotLandLater) {
  if (GetParam().transport == TransportKind::bounce) GTEST_SKIP() << "the owner copies by itself";
  Engine writer = must(Engine::open(config_for(GetParam(), 1)));
  Segment source = must(writer.add(Memory::own(large)));
  const std::vector<Pair> all = {{0, 0, large}};
  Child owner("owner_that_revokes", {GetParam().provider});
  const std::string address = owner.hear();
  const Peer peer = must(writer.connect(address, soon()));
  const Remote there = must(writer.import(from_hex(owner.hear())));
  must(must(writer.write(source, there, all)).wait(soon()));
  owner.freeze();
  std::vector<Transfer> stuck;
  for (int i = 0; i < 16; ++i) stuck.push_back(must(writer.write(source, there, all)));
  std::ignore = stuck.back().wait(Deadline::in(a_while));
  for (Transfer& each : stuck) each.cancel();
  const auto control =
      static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  cut_connections_but(control);
  const bool over_sockets = writer.info().rails[0].capability.fence == FenceScope::rail;
  for (Transfer& each : stuck)
    EXPECT_TRUE(!over_sockets || comes_to_be([&] { return each.quiescent(); }));
  owner.say("revoke");
  owner.signal(SIGCONT);
  EXPECT_EQ(owner.hear(), over_sockets ? "quarantined" : "quiescent");
  EXPECT_EQ(owner.ask("fence"), "quiescent");
  EXPECT_EQ(owner.ask("has anything changed"), "no");
  owner.say("end");
  EXPECT_EQ(owner.join(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, Leases, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test::leases_tests
