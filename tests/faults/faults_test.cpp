// Two engines of one process over real providers, with faults on their way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <weft/testkit.hpp>

#include "engines.hpp"

namespace weft::test {
namespace {

using core::hooks_of;
using testkit::Fault, testkit::Faults;

Faults switched(const Fault& fault) {
  Faults faults;
  faults.set(fault);
  return faults;
}

/// The first rail goes wrong in one way, the others in another.
Faults switched(const Fault& first, const Fault& others) {
  Faults faults = switched(others);
  faults.set(0, first);
  return faults;
}

constexpr std::size_t segment_bytes = std::size_t{4} << 20;

/// Unaligned pieces in shuffled order, apart from each other on the written side.
std::vector<Pair> shuffled_pieces(std::size_t count, std::uint32_t seed) {
  const std::uint64_t slot = segment_bytes / count;
  std::vector<std::uint64_t> from(count), to(count);
  for (std::size_t i = 0; i < count; ++i) from[i] = to[i] = i * slot;
  std::mt19937 random(seed);
  std::shuffle(from.begin(), from.end(), random);
  std::shuffle(to.begin(), to.end(), random);
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t length = 1 + random() % (slot - 16);
    pairs.push_back({from[i] + random() % 8, to[i] + random() % 8, length});
  }
  return pairs;
}

class FaultsTest : public testing::TestWithParam<Variant> {
 protected:
  Config config(unsigned rails = 2) const {
    Config config = config_for(GetParam(), rails);
    // Small enough that each transfer is many chunks, and several are in flight.
    config.chunk_bytes = 32 * 1024;
    config.window = 8;
    config.bounce_buffer_bytes = 32 * 1024;
    return config;
  }
  /// Both engines with the same faults.
  Couple faulty(const Faults& faults, unsigned rails = 2) const {
    return couple(config(rails), config(rails), hooks_of(faults), hooks_of(faults));
  }
  /// Every byte is right in both directions, several times over.
  void expect_all_right(const Faults& faults) const {
    Couple pair = faulty(faults);
    Board board(pair, segment_bytes, segment_bytes);
    for (std::uint32_t seed = 0; seed < 3; ++seed)
      for (const Direction direction : {Direction::write, Direction::read}) {
        board.repaint();
        board.expect_moved(direction, shuffled_pieces(40 + 30 * seed, seed));
        if (HasFatalFailure()) return;
      }
  }
  static std::vector<Pair> everything() { return {{0, 0, segment_bytes}}; }
};

TEST_P(FaultsTest, NoneChangesNothing) {
  expect_all_right(Faults());
}

TEST_P(FaultsTest, DelayedCompletions) {
  Fault plan;
  plan.delay = 0.5;
  const Faults faults = switched(plan);
  expect_all_right(faults);
  EXPECT_GT(faults.counts().delayed, 0U);
}

TEST_P(FaultsTest, BurstsOfRefusals) {
  Fault plan;
  plan.again = 0.3;
  const Faults faults = switched(plan);
  expect_all_right(faults);
  EXPECT_GT(faults.counts().again, 0U);
}

TEST_P(FaultsTest, ReorderedCompletions) {
  Fault plan;
  plan.reorder = 0.4;
  const Faults faults = switched(plan);
  expect_all_right(faults);
  EXPECT_GT(faults.counts().reordered, 0U);
}

TEST_P(FaultsTest, ChunksDeliveredTwice) {
  Fault plan;
  plan.duplicate = 0.5;
  const Faults faults = switched(plan);
  expect_all_right(faults);
  EXPECT_GT(faults.counts().duplicated, 0U);
}

TEST_P(FaultsTest, AllOfTheseAtOnceUnderSeveralSeeds) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    Fault plan;
    plan.seed = seed;
    plan.delay = plan.reorder = plan.again = plan.duplicate = 0.2;
    expect_all_right(switched(plan));
    if (HasFailure()) return;
  }
}

TEST_P(FaultsTest, ARailThatRefusesLeavesTheRestToTheOthers) {
  Fault refusing;
  refusing.refuse = 1;
  const Faults faults = switched(refusing, {});
  Couple pair = couple(config(3), config(3), hooks_of(faults));
  Board board(pair, segment_bytes, segment_bytes);
  // On a loaded machine the other rails may be done before the refusing one has had a turn.
  const Deadline deadline = soon();
  do {
    auto transfer = must(pair.a.write(board.local, board.there, everything()));
    ASSERT_TRUE(succeeds(transfer.wait_quiescent(soon())));
    board.expect_pieces(Direction::write, everything());
    const Report report = transfer.report();
    EXPECT_EQ(report.bytes_done, segment_bytes);
    EXPECT_FALSE(report.rails.empty());
    for (const auto& share : report.rails) EXPECT_NE(share.rail, GetParam().provider + ":0");
  } while (faults.counts().refused == 0 && !deadline.passed());
  EXPECT_GT(faults.counts().refused, 0U);
}

TEST_P(FaultsTest, ARailThatRefusesNowAndThenLosesNothing) {
  Fault refusing;
  refusing.refuse = 0.2;
  const Faults faults = switched(refusing, {});
  Couple pair = couple(config(2), config(2), hooks_of(faults));
  Board board(pair, segment_bytes, segment_bytes);
  for (std::uint32_t seed = 0; seed < 5; ++seed)
    board.expect_moved(Direction::write, shuffled_pieces(60, seed));
}

// One thread owns both rails: nobody else could take what the refusing rail gives back.
TEST_P(FaultsTest, ARefusingRailDoesNotStopItsThread) {
  Fault refusing;
  refusing.refuse = 1;
  const Faults faults = switched(refusing, {});
  Config single = config(2);
  single.threads = 1;
  Couple pair = couple(single, single, hooks_of(faults));
  Board board(pair, segment_bytes, segment_bytes);
  board.expect_moved(Direction::read, everything());
}

TEST_P(FaultsTest, WhenEveryRailRefusesTheErrorSaysSo) {
  Fault refusing;
  refusing.refuse = 1;
  const Faults faults = switched(refusing);
  Couple pair = couple(config(2), config(2), hooks_of(faults));
  Board board(pair, segment_bytes, segment_bytes);
  auto transfer = must(pair.a.write(board.local, board.there, everything()));
  const auto waited = transfer.wait_quiescent(soon());
  ASSERT_TRUE(fails_with(waited, Code::fabric_failed));
  EXPECT_EQ(transfer.state(), State::failed);
  EXPECT_EQ(waited.error().peer(), pair.b.name());
  EXPECT_EQ(waited.error().operation(), "write");
  EXPECT_THAT(pair.to_b.rails(), testing::Contains(waited.error().rail()));
  EXPECT_NE(waited.error().fabric_code(), 0);
  EXPECT_EQ(transfer.report().bytes_done, 0U);
  board.expect_untouched();
}

TEST_P(FaultsTest, AnErrorCompletionFailsTheTransferWithItsContext) {
  Fault failing;
  failing.fail = 0.1;
  const Faults faults = switched(failing);
  Couple pair = couple(config(2), config(2), hooks_of(faults));
  Board board(pair, segment_bytes, segment_bytes);
  TransferOptions options;
  options.signal = Signal{9, {}};
  auto expectation = must(pair.to_a.expect(9, 1));
  auto transfer = must(pair.a.read(board.local, board.there, everything(), options));
  const auto waited = transfer.wait_quiescent(soon());
  ASSERT_TRUE(fails_with(waited, Code::fabric_failed));
  EXPECT_EQ(waited.error().peer(), pair.b.name());
  EXPECT_EQ(waited.error().operation(), "read");
  EXPECT_THAT(pair.to_b.rails(), testing::Contains(waited.error().rail()));
  EXPECT_THAT(waited.error().message(), testing::HasSubstr("injected"));
  EXPECT_TRUE(transfer.quiescent());
  EXPECT_TRUE(fails_with(expectation.wait(soon()), Code::remote_failed))
      << "whoever expects its signal learns that it will not come";
}

TEST_P(FaultsTest, ADroppedChunkTimesOutAndHoldsItsMemoryUntilTheEngineCloses) {
  Fault dropping;
  dropping.drop = 1;
  const Faults faults = switched(dropping);
  Couple pair = couple(config(2), config(2), hooks_of(faults));
  Board board(pair, segment_bytes, segment_bytes);
  TransferOptions options;
  options.deadline = Deadline::in(100ms);
  std::atomic<int> ended{0};
  options.on_end = [&](const Ended& end) {
    EXPECT_EQ(end.state, State::timed_out);
    ++ended;
  };
  auto transfer = must(pair.a.write(board.local, board.there, everything(), options));
  ASSERT_TRUE(fails_with(transfer.wait(soon()), Code::timed_out));
  EXPECT_EQ(transfer.state(), State::timed_out);
  EXPECT_FALSE(transfer.quiescent());
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(Deadline::in(20ms)), Code::timed_out));
  EXPECT_TRUE(fails_with(board.local.release(Deadline::in(20ms)), Code::quarantined))
      << "the memory must not be reused";
  const auto before = Clock::now();
  EXPECT_TRUE(succeeds(pair.a.close(Deadline::in(10s))));
  EXPECT_LT(Clock::now() - before, 30s);
  EXPECT_TRUE(transfer.quiescent()) << "nothing can touch the memory any more";
  EXPECT_EQ(transfer.state(), State::timed_out);
  EXPECT_EQ(ended, 1);
}

TEST_P(FaultsTest, SomeDroppedChunksTimeOutAndOthersGoOn) {
  Fault dropping;
  dropping.drop = 0.2;  // of 60: none at all in one run of a million
  const Faults faults = switched(dropping);
  Couple pair = couple(config(2), config(2), hooks_of(faults));
  Board board(pair, segment_bytes, segment_bytes);
  TransferOptions options;
  options.deadline = Deadline::in(3s);
  std::vector<Transfer> transfers;
  for (std::size_t i = 0; i < 60; ++i) {
    const std::vector<Pair> small = {{i * 1000, i * 1000, 1000}};
    transfers.push_back(must(pair.a.write(board.local, board.there, small, options)));
  }
  int done = 0, timed_out = 0;
  for (Transfer& transfer : transfers) {
    const auto waited = transfer.wait(soon());
    done += waited.has_value() ? 1 : 0;
    timed_out += waited ? 0 : 1;
    if (!waited) {
      EXPECT_EQ(waited.error().code(), Code::timed_out);
    }
  }
  EXPECT_EQ(done + timed_out, 60);
  EXPECT_GT(faults.counts().dropped, 0U);
  EXPECT_GE(static_cast<std::uint64_t>(timed_out), faults.counts().dropped);
  EXPECT_GT(done, 0);
  EXPECT_TRUE(succeeds(pair.a.close(Deadline::in(10s))));
  for (Transfer& transfer : transfers) EXPECT_TRUE(transfer.quiescent());
}

TEST_P(FaultsTest, ACancelledTransferUnderRefusalsIsNeverDoneWithoutItsBytes) {
  Fault plan;
  plan.again = 0.3;
  plan.delay = 0.3;
  Fault refusing = plan;
  refusing.refuse = 0.3;
  const Faults faults = switched(refusing, plan);
  Couple pair = couple(config(2), config(2), hooks_of(faults));
  Board board(pair, segment_bytes, segment_bytes);
  for (int round = 0; round < 30; ++round) {
    auto transfer = must(pair.a.write(board.local, board.there, shuffled_pieces(64, 1)));
    if (round % 2 == 0) std::this_thread::yield();
    transfer.cancel();
    std::ignore = transfer.wait_quiescent(soon());
    ASSERT_TRUE(transfer.quiescent());
    const Report report = transfer.report();
    EXPECT_EQ(report.state == State::done, report.bytes_done == report.bytes);
  }
}

TEST_P(FaultsTest, APushThatFailsToPostEndsTheExpectationOfItsSignal) {
  Fault plan;
  plan.refuse = 1;
  const Faults faults = switched(plan);
  Couple pair = couple(config(2), config(2), hooks_of(faults));
  Board board(pair, segment_bytes, segment_bytes);
  Expectation expectation = must(pair.to_a.expect(7, 1));
  TransferOptions options;
  options.signal = Signal{7};
  auto transfer = must(pair.a.write(board.local, board.there, everything(), options));
  EXPECT_FALSE(transfer.wait_quiescent(soon()));
  EXPECT_EQ(transfer.state(), State::failed);
  EXPECT_TRUE(fails_with(expectation.wait(soon()), Code::remote_failed));
  EXPECT_GT(faults.counts().refused, 0U);
  for (const Placed each : transfer.placed()) EXPECT_EQ(each, Placed::none);
  board.expect_untouched();
}

TEST_P(FaultsTest, ThePeersEndSettlesWhatIsDelayed) {
  Fault plan;
  plan.delay = 1;
  plan.delay_by = 1h;
  const Faults faults = switched(plan);
  Couple pair = couple(config(2), config(2), hooks_of(faults));
  Board board(pair, segment_bytes, segment_bytes);
  auto transfer = must(pair.a.write(board.local, board.there, everything()));
  while (faults.counts().delayed == 0) std::this_thread::yield();
  EXPECT_TRUE(succeeds(pair.b.close(Deadline::in(10s))));
  EXPECT_TRUE(fails_with(transfer.wait(soon()), Code::peer_down));
  EXPECT_TRUE(succeeds(pair.a.close(Deadline::in(10s))));
  EXPECT_TRUE(transfer.quiescent());
}

INSTANTIATE_TEST_SUITE_P(Over, FaultsTest, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
