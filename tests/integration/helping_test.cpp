// Mapped memory: threads that copy beside the one that a transfer is for. Who waits for it, and who
// polls while the caller copies.
#include <algorithm>
#include <atomic>
#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include "engines.hpp"
#include "occupied.hpp"

namespace weft::test {
namespace {

class Helping : public testing::Test {
 protected:
  static constexpr std::size_t size = 8 << 20, small = 256 << 10;
  static constexpr Direction directions[] = {Direction::write, Direction::read};

  static Config one_rail() {
    Config config = config_for("shm");
    config.rails = config.threads = 1;
    return config;
  }
  Transfer submit(Direction direction, TransferOptions options = {}) {
    return submit(direction, {0, 0, size}, std::move(options));
  }
  Transfer submit(Direction direction, const Pair& piece, TransferOptions options = {}) {
    options.priority = Priority::bulk;  // of which the caller copies nothing
    return must(direction == Direction::write
                    ? pair.a.write(board.local, board.there, {&piece, 1}, options)
                    : pair.a.read(board.local, board.there, {&piece, 1}, options));
  }
  static bool comes_to(const Transfer& transfer, std::uint64_t bytes) {
    const Deadline deadline = soon();
    while (transfer.report().bytes_done < bytes && !deadline.passed()) std::this_thread::yield();
    return transfer.report().bytes_done == bytes;
  }

  Couple pair = couple(one_rail());
  Board board{pair, Memory::shared(size), Memory::shared(size)};
};

TEST_F(Helping, WhoWaitsCopiesWhatTheRailsThreadHasNotBegun) {
  for (const Direction direction : directions) {
    std::optional<Occupied> occupied(std::in_place, pair, board);
    board.repaint();
    std::atomic<int> called{0};
    TransferOptions options;
    options.on_end = [&](const Ended& ended) {
      EXPECT_EQ(ended.state, State::done);
      ++called;
    };
    Transfer transfer = submit(direction, options);
    {
      std::jthread waiter([&] { EXPECT_TRUE(succeeds(transfer.wait(soon()))); });
      EXPECT_TRUE(comes_to(transfer, size)) << "by the one who waits, for the other is busy";
      if (direction == Direction::write) {
        waiter.join();
        EXPECT_EQ(called, 1) << "nothing is left to others";
      } else {
        EXPECT_EQ(transfer.state(), State::active) << "that the lease held is not proven yet";
        occupied.reset();
      }
    }
    EXPECT_EQ(called, 1);
    occupied.reset();
    const Pair all[] = {{0, 0, size}};
    board.expect_pieces(direction, all);
    const Report report = transfer.report();
    EXPECT_EQ(report.retries, 0U);
    EXPECT_EQ(report.amplification, 1.0);
  }
}

/// Reads, for what it waits for itself has not ended before the rail's thread has proven it.
TEST_F(Helping, WhoWaitsForOneCopiesOfThoseBehindIt) {
  std::optional<Occupied> occupied(std::in_place, pair, board);
  board.repaint();
  std::vector<Pair> pieces;
  for (std::uint64_t at = 0; at < size; at += small) pieces.push_back({at, at, small});
  std::vector<Transfer> transfers;
  for (const Pair& piece : pieces) transfers.push_back(submit(Direction::read, piece));
  transfers[1].cancel();  // It ends, since nobody has begun it.
  EXPECT_TRUE(fails_with(transfers[1].wait(Deadline::now()), Code::cancelled));
  {
    std::jthread waiter([&] { EXPECT_TRUE(succeeds(transfers[2].wait(soon()))); });
    for (std::size_t i = 0; i < transfers.size(); ++i)
      EXPECT_TRUE(comes_to(transfers[i], i == 1 ? 0 : small)) << i;
    for (std::size_t i = 2; i < transfers.size(); ++i)
      EXPECT_EQ(transfers[i].state(), State::active);
    occupied.reset();
  }
  transfers.erase(transfers.begin() + 1);
  pieces.erase(pieces.begin() + 1);
  for (Transfer& transfer : transfers) {
    EXPECT_TRUE(succeeds(transfer.wait(soon())));
    EXPECT_EQ(transfer.report().retries, 0U);
  }
  board.expect_pieces(Direction::read, pieces);
}

/// What is not mapped the kernel copies, for the rail's thread alone.
TEST_F(Helping, WhoWaitsPassesOverWhatItCanNotCopy) {
  Board own(pair, Memory::own(size), Memory::own(size));
  std::optional<Occupied> occupied(std::in_place, pair, board);
  board.repaint();
  const Pair all[] = {{0, 0, size}}, first[] = {{0, 0, small}}, second[] = {{small, small, small}};
  TransferOptions urgent;
  urgent.deadline = soon();
  urgent.priority = Priority::bulk;
  Transfer unmapped = must(pair.a.write(own.local, own.there, all, urgent));
  Transfer waited = submit(Direction::read, first[0]), behind = submit(Direction::read, second[0]);
  {
    std::jthread waiter([&] { EXPECT_TRUE(succeeds(waited.wait(soon()))); });
    EXPECT_TRUE(comes_to(waited, small));
    EXPECT_TRUE(comes_to(behind, small));
    EXPECT_EQ(unmapped.report().bytes_done, 0U);
    occupied.reset();
  }
  for (Transfer* each : {&unmapped, &waited, &behind}) EXPECT_TRUE(succeeds(each->wait(soon())));
  const Pair both[] = {first[0], second[0]};
  board.expect_pieces(Direction::read, both);
  own.expect_pieces(Direction::write, all);
}

/// Each of its own part, as they please: in the order in which they began them, or the last first.
TEST_F(Helping, ManyWhoHaveSeveralUnderWay) {
  constexpr std::size_t threads = 3, window = 4, rounds = 100;
  const std::size_t each = size / threads / window / 64 * 64;
  for (const Direction direction : directions) {
    board.repaint();
    {
      std::vector<std::jthread> running;
      for (std::size_t mine = 0; mine < threads; ++mine)
        running.emplace_back([&, mine] {
          for (std::size_t round = 0; round < rounds; ++round) {
            std::vector<Transfer> transfers;
            for (std::size_t i = 0; i < window; ++i) {
              const std::uint64_t at = (mine * window + i) * each;
              transfers.push_back(submit(direction, {at, at, each}));
            }
            if ((mine + round) % 2 == 0) std::reverse(transfers.begin(), transfers.end());
            if (round % 10 == 3) transfers.front().cancel();
            for (Transfer& transfer : transfers) {
              const auto ended = transfer.wait_quiescent(soon());
              EXPECT_TRUE(ended || ended.error().code() == Code::cancelled)
                  << ended.error().to_string();
            }
          }
        });
    }
    const Pair all[] = {{0, 0, threads * window * each}};
    board.expect_pieces(direction, all);
  }
}

TEST_F(Helping, WhoOnlyLooksCopiesNothing) {
  std::optional<Occupied> occupied(std::in_place, pair, board);
  board.repaint();
  Transfer transfer = submit(Direction::write);
  EXPECT_TRUE(fails_with(transfer.wait(Deadline::now()), Code::timed_out));
  EXPECT_EQ(transfer.report().bytes_done, 0U);
  transfer.cancel();
  EXPECT_TRUE(fails_with(transfer.wait(soon()), Code::cancelled));
  board.expect_untouched();
}

TEST_F(Helping, WhereTheCallerShallCopyNothingItDoesNotWhenItWaits) {
  Config none = one_rail();
  none.inline_copy_bytes = 0;
  Couple others = couple(none);
  Board far(others, Memory::shared(size), Memory::shared(size));
  std::optional<Occupied> occupied(std::in_place, others, far);
  const Pair all[] = {{0, 0, size}};
  Transfer transfer = must(others.a.write(far.local, far.there, all));
  EXPECT_TRUE(fails_with(transfer.wait(Deadline::in(20ms)), Code::timed_out));
  EXPECT_EQ(transfer.report().bytes_done, 0U);
  occupied.reset();
  EXPECT_TRUE(succeeds(transfer.wait(soon())));
}

TEST_F(Helping, SeveralWhoWaitForOne) {
  for (int round = 0; round < 20; ++round)
    for (const Direction direction : directions) {
      board.repaint();
      Transfer transfer = submit(direction);
      {
        std::vector<std::jthread> waiters;
        for (int i = 0; i < 3; ++i)
          waiters.emplace_back([&] { EXPECT_TRUE(succeeds(transfer.wait(soon()))); });
      }
      const Pair all[] = {{0, 0, size}};
      board.expect_pieces(direction, all);
    }
}

TEST_F(Helping, ASignalFollowsTheLastByteWhoeverCopiedIt) {
  for (int round = 0; round < 50; ++round) {
    board.repaint();
    Expectation expectation = must(pair.to_a.expect(7, 1));
    TransferOptions options;
    options.signal = Signal{7};
    options.verify = round % 2 == 0;
    Transfer transfer = submit(Direction::write, options);
    std::jthread waiter([&] { EXPECT_TRUE(succeeds(transfer.wait(soon()))); });
    ASSERT_TRUE(succeeds(expectation.wait(soon())));
    const Pair all[] = {{0, 0, size}};
    board.expect_pieces(Direction::write, all);
  }
}

/// Once it is quiescent nobody copies, the one who waits included.
TEST_F(Helping, WhatIsCancelledMeanwhileIsQuiescentWhenItSaysSo) {
  for (int round = 0; round < 100; ++round) {
    board.repaint();
    Transfer transfer = submit(Direction::read);
    std::latch waits(1);
    std::jthread waiter([&] {
      waits.count_down();
      static_cast<void>(transfer.wait(soon()));
    });
    waits.wait();
    const auto then = Clock::now() + round * 4us;
    while (Clock::now() < then) std::this_thread::yield();
    transfer.cancel();
    const auto ended = transfer.wait_quiescent(soon());
    ASSERT_TRUE(ended || ended.error().code() == Code::cancelled) << ended.error().to_string();
    ASSERT_TRUE(transfer.quiescent());
    fill(bytes_of(board.local), 4711);
    waiter.join();
    ASSERT_TRUE(holds(bytes_of(board.local), 4711)) << "round " << round;
  }
}

TEST_F(Helping, TheEngineCloses) {
  for (int round = 0; round < 10; ++round) {
    Couple others = couple(one_rail());
    Board far(others, Memory::shared(size), Memory::shared(size));
    const Pair all[] = {{0, 0, size}};
    std::latch waits(1);
    Transfer transfer = must(others.a.write(far.local, far.there, all));
    std::jthread waiter([&] {
      waits.count_down();
      const auto ended = transfer.wait(soon());
      EXPECT_TRUE(ended || ended.error().code() == Code::closed) << ended.error().to_string();
    });
    waits.wait();
    EXPECT_TRUE(succeeds(others.a.close(soon())));
  }
}

/// By whom each byte was copied can't be told; that all are there can. Who polls is woken up by the
/// first few of such a burst.
TEST_F(Helping, WhoPollsTakesPartInWhatTheCallerCopies) {
  std::vector<Pair> pieces;
  for (std::uint64_t at = 0; at + small <= size; at += small)
    pieces.push_back({at + 1, at + 3, small - at / 64 - 5});
  for (const Direction direction : directions)
    for (int burst = 0; burst < 20; ++burst) {
      board.repaint();
      for (const Pair& piece : pieces) {
        const Pair one[] = {piece};
        Transfer transfer =
            must(direction == Direction::write ? pair.a.write(board.local, board.there, one)
                                               : pair.a.read(board.local, board.there, one));
        EXPECT_EQ(transfer.state(), State::done) << "when it is submitted";
      }
      board.expect_pieces(direction, pieces);
    }
}

TEST_F(Helping, SeveralWhoCopyAtATimeAndOneWhoPolls) {
  constexpr std::size_t threads = 3, rounds = 200;
  {
    std::vector<std::jthread> running;
    for (std::size_t mine = 0; mine < threads; ++mine)
      running.emplace_back([&, mine] {
        TransferOptions options;
        options.priority = Priority::latency;  // which the caller copies, whatever others do
        const Pair part[] = {{mine * small, mine * small, small}};
        for (std::size_t round = 0; round < rounds; ++round)
          EXPECT_TRUE(
              succeeds(must(pair.a.write(board.local, board.there, part, options)).wait(soon())));
      });
  }
  const Pair all[] = {{0, 0, threads * small}};
  board.expect_pieces(Direction::write, all);
}

}  // namespace
}  // namespace weft::test
