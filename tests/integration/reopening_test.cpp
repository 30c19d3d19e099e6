// Rails that are closed and opened again under transfers, grants and messages.
#include <algorithm>

#include "engines.hpp"

namespace weft::test::reopening_tests {
namespace {

constexpr std::size_t bytes = std::size_t{1} << 20;
const std::vector<Pair> everything = {{0, 0, bytes}};

class Reopening : public testing::TestWithParam<std::string> {
 protected:
  const Config config = config_for(GetParam());

  static bool reopens(const Engine& engine) {
    // Weft's own shared memory needs it not, and others look into libfabric's.
    return !engine.info().rails.front().capability.same_host_only;
  }
};

Result<void> reopen_all(Engine& engine) {
  for (const auto& rail : engine.info().rails)
    if (auto reopened = engine.reopen(rail.name, soon()); !reopened) return reopened;
  return {};
}

/// Both directions, and messages both ways.
void expect_serves(Couple& pair, Board& board) {
  board.repaint();
  board.expect_moved(Direction::write, everything);
  board.expect_moved(Direction::read, everything);
  const Blob words(100, std::byte{7});
  must(pair.to_b.send(1, words, soon()));
  EXPECT_EQ(must(pair.to_a.recv(1, ~std::uint64_t{0}, soon())).bytes, words);
  must(pair.to_a.send(2, words, soon()));
  EXPECT_EQ(must(pair.to_b.recv(2, ~std::uint64_t{0}, soon())).bytes, words);
}

TEST_P(Reopening, EverythingGoesOnAfterwards) {
  Couple pair = couple(config);
  Board board(pair, bytes, bytes);
  if (!reopens(pair.a)) {
    EXPECT_TRUE(fails_with(reopen_all(pair.a), Code::unsupported));
    return expect_serves(pair, board);
  }
  for (int round = 0; round < 3; ++round) {
    must(reopen_all(pair.a));
    expect_serves(pair, board);
    must(reopen_all(pair.b));
    expect_serves(pair, board);
  }
  EXPECT_TRUE(fails_with(pair.a.reopen("none:7", soon()), Code::invalid_argument));
}

TEST_P(Reopening, GrantsOfBeforeAreGoodForThoseWhoComeLater) {
  Couple pair = couple(config);
  if (!reopens(pair.a)) GTEST_SKIP() << "it does not reopen";
  Board board(pair, bytes, bytes);
  const Blob before = board.grant.blob();
  must(reopen_all(pair.b));
  Engine later = must(Engine::open(config));
  const auto [to_b, from_b] = acquaint(later, pair.b);
  const Segment local = must(later.add(Memory::own(bytes)));
  for (const Blob& blob : {before, board.grant.blob()}) {
    const Remote there = must(later.import(blob));
    fill(bytes_of(local), 9);
    must(must(later.write(local, there, everything)).wait(soon()));
    EXPECT_TRUE(holds(bytes_of(board.remote), 9));
    fill(bytes_of(board.remote), 10);
    must(must(later.read(local, there, everything)).wait(soon()));
    EXPECT_TRUE(holds(bytes_of(local), 10));
  }
}

TEST_P(Reopening, AWriterThatWentWithoutAWordIsFencedOff) {
  Couple pair = couple(config, config, losing<core::RevokeConfirmed>());
  Board board(pair, bytes, bytes, Rights::write), other(pair, bytes, bytes);
  board.expect_moved(Direction::write, everything);
  if (!keys_fence(pair.b)) {
    EXPECT_EQ(must(board.grant.revoke(Deadline::in(a_while))), Revoked::quarantined);
    EXPECT_TRUE(fails_with(board.grant.fence(soon()), Code::unsupported));
    if (!reopens(pair.b)) {
      EXPECT_TRUE(fails_with(board.grant.fence(soon(), FenceScope::rail), Code::unsupported));
      return;
    }
  }
  EXPECT_EQ(must(board.grant.fence(soon(), FenceScope::rail)), Revoked::quiescent);
  EXPECT_EQ(must(board.grant.revoke(soon())), Revoked::quiescent);
  EXPECT_TRUE(succeeds(board.remote.release(soon())));
  expect_serves(pair, other);
}

// Each grant that had ended before is free with the one for which the rails were closed.
TEST_P(Reopening, OnceIsEnoughForAllThatHaveEnded) {
  Couple gone = couple(config, config, losing<core::RevokeConfirmed>());
  if (!reopens(gone.b)) GTEST_SKIP() << "it does not reopen";
  Board one(gone, bytes, bytes), two(gone, bytes, bytes);
  must(gone.a.close(soon()));
  const Deadline deadline = soon();
  while (gone.to_a.up() && !deadline.passed()) std::this_thread::yield();
  const Revoked before = keys_fence(gone.b) ? Revoked::quiescent : Revoked::quarantined;
  EXPECT_EQ(must(one.grant.revoke(soon())), before);
  EXPECT_EQ(must(two.grant.revoke(soon())), before);
  must(reopen_all(gone.b));
  EXPECT_EQ(must(one.grant.revoke(soon())), Revoked::quiescent);
  EXPECT_EQ(must(two.grant.revoke(soon())), Revoked::quiescent);
  EXPECT_TRUE(succeeds(one.remote.release(soon())));
  EXPECT_TRUE(succeeds(two.remote.release(soon())));
}

/// A pair of which `b` does nothing without the pump: what `a` posts stays out.
struct IdlePeer {
  explicit IdlePeer(const std::string& provider) : pair(open(provider)) {
    board.expect_moved(Direction::write, everything);  // the two are connected now
  }
  static Couple open(const std::string& provider) {
    const Config config = config_for(provider, 1);  // the rail that is connected when it falls idle
    Config idle = config;
    idle.progress = Progress::manual;
    return couple(config, idle);
  }

  Couple pair;
  std::optional<Pump> pump{pair.b};
  Board board{pair, bytes, bytes};
};

/// The transfer, with operations in the NIC or on the wire.
Transfer write_to_idle(Couple& pair, const Board& board, Nanoseconds time) {
  TransferOptions options;
  options.deadline = Deadline::in(time);
  Transfer transfer = must(pair.a.write(board.local, board.there, everything, options));
  const auto out = [&] {
    const Info info = pair.a.info();
    return std::any_of(info.rails.begin(), info.rails.end(),
                       [](const auto& rail) { return rail.in_flight > 0; });
  };
  const Deadline deadline = soon();
  while (!out() && transfer.state() == State::active && !deadline.passed())
    std::this_thread::yield();
  return transfer;
}

TEST_P(Reopening, WhatIsOutIsCarriedAnew) {
  IdlePeer idle(GetParam());
  auto& [pair, pump, board] = idle;
  if (!reopens(pair.a)) GTEST_SKIP() << "it does not reopen";
  fill(bytes_of(board.local), 3);
  pump.reset();
  Transfer transfer = write_to_idle(pair, board, 60s);
  for (int round = 0; round < 2; ++round) must(reopen_all(pair.a));
  EXPECT_EQ(transfer.state(), State::active);
  pump.emplace(pair.b);
  EXPECT_TRUE(succeeds(transfer.wait(soon())));
  EXPECT_TRUE(holds(bytes_of(board.remote), 3));
  expect_serves(pair, board);
}

TEST_P(Reopening, MemoryThatAnOverdueTransferHoldsIsFreeAgain) {
  IdlePeer idle(GetParam());
  auto& [pair, pump, board] = idle;
  if (!reopens(pair.a)) GTEST_SKIP() << "it does not reopen";
  pump.reset();
  Transfer transfer = write_to_idle(pair, board, 200ms);
  EXPECT_TRUE(fails_with(transfer.wait(soon()), Code::timed_out));
  EXPECT_FALSE(transfer.quiescent());
  EXPECT_TRUE(fails_with(board.local.release(Deadline::in(a_while)), Code::quarantined));
  must(reopen_all(pair.a));
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::timed_out));
  EXPECT_TRUE(transfer.quiescent());
  EXPECT_TRUE(succeeds(board.local.release(soon())));
  pump.emplace(pair.b);
}

// Each transfer ends, in time, and those that are done have moved every byte.
TEST_P(Reopening, UnderTraffic) {
  Couple pair = couple(config);
  if (!reopens(pair.a)) GTEST_SKIP() << "it does not reopen";
  Board board(pair, bytes, bytes);
  constexpr std::size_t block = std::size_t{64} << 10;
  std::atomic<bool> over{false};
  std::thread reopener([&] {
    for (int round = 0; round < 5; ++round) EXPECT_TRUE(succeeds(reopen_all(pair.a)));
    over = true;
  });
  fill(bytes_of(board.local), 4);
  std::size_t done = 0;
  do {
    fill(bytes_of(board.remote), 5);
    std::vector<Transfer> transfers;
    for (std::size_t at = 0; at < bytes; at += block)
      transfers.push_back(
          must(pair.a.write(board.local, board.there, std::vector<Pair>{{at, at, block}})));
    for (Transfer& each : transfers) {
      EXPECT_TRUE(succeeds(each.wait(soon())));
      done += each.state() == State::done ? 1 : 0;
    }
    EXPECT_TRUE(holds(bytes_of(board.remote), 4));
  } while (!over);
  reopener.join();
  EXPECT_GT(done, 0U);
  expect_serves(pair, board);
}

INSTANTIATE_TEST_SUITE_P(Providers, Reopening, testing::ValuesIn(all_providers()),
                         [](const auto& each) { return name_of(each.param); });

}  // namespace
}  // namespace weft::test::reopening_tests
