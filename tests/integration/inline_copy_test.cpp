// Transfers that the submitting thread carries itself, where memory is mapped.
#include <array>
#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "engines.hpp"
#include "occupied.hpp"

namespace weft::test {
namespace {

constexpr std::size_t size = 16 << 10, large = 16 * size;

/// Memory that the other side maps, on both sides.
class Inline : public testing::Test {
 protected:
  static Config config(std::uint64_t limit = large, unsigned rails = 2) {
    Config config = config_for("shm");
    config.inline_copy_bytes = limit;
    config.rails = rails;
    return config;
  }
  static Memory shared(std::size_t bytes = size) { return Memory::shared(bytes); }
  /// Who calls back, of a transfer with these options; nobody, where that is once it was submitted.
  std::thread::id who_ends(Couple& pair, Board& board, TransferOptions options,
                           std::uint64_t bytes = size) {
    std::atomic<bool> called{false}, submitted{false};
    std::thread::id by;
    options.on_end = [&](const Ended& ended) {
      EXPECT_EQ(ended.state, State::done);
      if (!submitted) by = std::this_thread::get_id();
      called = true;
    };
    const Pair all[] = {{0, 0, bytes}};
    Transfer transfer = must(pair.a.write(board.local, board.there, all, options));
    submitted = true;
    EXPECT_TRUE(succeeds(transfer.wait(soon())));
    EXPECT_TRUE(called);
    return by;
  }
  static TransferOptions of(Priority priority) {
    TransferOptions options;
    options.priority = priority;
    return options;
  }

  /// Threads are to do all of it.
  static void expect_not_begun(Transfer transfer) {
    EXPECT_EQ(transfer.report().bytes_done, 0U);
    transfer.cancel();
    EXPECT_EQ(transfer.state(), State::cancelled);
  }

  /// Refused at once, or by its end.
  static void expect_stale_read(Board& board, std::span<const Pair> pieces) {
    auto read = board.submit(Direction::read, pieces);
    if (read) {
      EXPECT_TRUE(fails_with(read->wait(soon()), Code::stale));
    } else {
      EXPECT_EQ(read.error().code(), Code::stale);
    }
  }

  const std::thread::id self_ = std::this_thread::get_id();
};

TEST_F(Inline, IsDoneWhenItIsSubmitted) {
  Couple pair = couple(config());
  Board board(pair, shared(), shared());
  const Pair pieces[] = {{0, 100, 1000}, {5000, 7000, 3}, {size - 1, 0, 1}};
  for (const Direction direction : {Direction::write, Direction::read}) {
    board.repaint();
    Transfer transfer = must(board.submit(direction, pieces));
    EXPECT_EQ(transfer.state(), State::done);
    board.expect_pieces(direction, pieces);
    const Report report = transfer.report();
    EXPECT_EQ(report.bytes_done, 1004U);
    EXPECT_EQ(report.operations, 3U);
    EXPECT_EQ(report.retries, 0U);
    ASSERT_EQ(report.rails.size(), 1U);
    EXPECT_EQ(report.rails.front().bytes, 1004U);
    EXPECT_EQ(report.amplification, 1.0);
  }
  std::uint64_t operations = 0;
  for (const auto& rail : pair.a.info().rails) operations += rail.operations;
  EXPECT_GE(operations, 6U) << "the rails count it";
}

TEST_F(Inline, IsTheSameHandleAsOthers) {
  Couple pair = couple(config());
  Board board(pair, shared(), shared());
  const Pair pieces[] = {{0, 0, 100}, {100, 100, 50}, {1000, 2000, 7}, {3000, 3000, 9}};
  const Prepared prepared =
      must(pair.a.prepare(board.local, board.there, Direction::write, pieces));
  const std::uint32_t picks[] = {2, 0, 1};
  TransferOptions options;
  options.cookie = 5;
  options.event = true;
  std::optional<Transfer> transfer = must(pair.a.submit(prepared, picks, options));
  EXPECT_EQ(transfer->state(), State::done);
  transfer->cancel();
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_TRUE(transfer->quiescent());
  EXPECT_TRUE(succeeds(transfer->wait(Deadline::now())));
  EXPECT_TRUE(succeeds(transfer->wait_quiescent(Deadline::now())));
  EXPECT_EQ(transfer->placed(), std::vector<Placed>(3, Placed::all));
  const Pair picked[] = {pieces[2], pieces[0], pieces[1]};
  board.expect_pieces(Direction::write, picked);
  std::vector<Event> events(2);
  ASSERT_EQ(pair.a.poll(events), 1U);
  EXPECT_EQ(events.front().kind, Event::Kind::transfer_ended);
  EXPECT_EQ(events.front().cookie, 5U);
  EXPECT_EQ(events.front().state, State::done);
  EXPECT_EQ(events.front().peer, pair.to_b.name());
  const Report report = transfer->report();
  EXPECT_EQ(report.bytes, 157U);
  EXPECT_EQ(report.ranges, 3U);
  EXPECT_EQ(report.runs, 2U);
  EXPECT_GT(report.elapsed.count(), 0);
  const auto slowest = must(pair.a.slowest_transfers());
  ASSERT_EQ(slowest.size(), 1U);
  EXPECT_EQ(slowest.front().report.bytes_done, 157U);
  EXPECT_NE(must(pair.a.metrics_text()).find("} 157\n"), std::string::npos);

  // It may outlive its engine, and be moved.
  ASSERT_TRUE(succeeds(pair.a.close(soon())));
  Transfer moved = std::move(*transfer);
  EXPECT_EQ(moved.state(), State::done);
  EXPECT_TRUE(succeeds(moved.wait(Deadline::now())));
  EXPECT_EQ(moved.report().bytes_done, 157U);
  EXPECT_TRUE(fails_with(transfer->wait(Deadline::now()), Code::closed)) << "moved from";
}

TEST_F(Inline, WhatIsRefusedOthersIsRefused) {
  Config narrow = config();
  narrow.max_transfers = 1;
  Config idle = config();
  idle.progress = Progress::manual;
  Couple pair = couple(narrow, idle);
  Board board(pair, shared(), shared());
  const Pair all[] = {{0, 0, size}};
  TransferOptions late;
  late.deadline = Deadline::now();
  EXPECT_TRUE(fails_with(must(pair.a.write(board.local, board.there, all, late)).wait(soon()),
                         Code::timed_out));
  board.expect_untouched();
  TransferOptions bounced;  // which ends when the other side has copied it
  bounced.transport = TransportKind::bounce;
  Transfer other = must(pair.a.write(board.local, board.there, all, bounced));
  EXPECT_TRUE(fails_with(pair.a.write(board.local, board.there, all), Code::queue_full));
  const Deadline deadline = soon();
  while (other.state() == State::active && !deadline.passed()) must(pair.b.progress());
  EXPECT_TRUE(succeeds(other.wait(soon())));
  must(pair.a.write(board.local, board.there, all));
  ASSERT_TRUE(succeeds(board.local.release(soon())));
  EXPECT_TRUE(fails_with(pair.a.write(board.local, board.there, all), Code::closed));
}

TEST_F(Inline, GoesByClassAndSize) {
  Couple pair = couple(config());
  Board board(pair, shared(large + 1), shared(large + 1));
  EXPECT_EQ(who_ends(pair, board, of(Priority::normal)), self_);
  EXPECT_EQ(who_ends(pair, board, of(Priority::latency), large), self_);
  EXPECT_NE(who_ends(pair, board, of(Priority::latency), large + 1), self_);
  EXPECT_NE(who_ends(pair, board, of(Priority::bulk)), self_);
}

TEST_F(Inline, LargeOnesOfClassNormalWhereEachIsWaitedFor) {
  Couple pair = couple(config());
  Board board(pair, shared(large), shared(large));
  const Pair all[] = {{0, 0, large}};
  for (int round = 0; round < 3; ++round)
    EXPECT_EQ(who_ends(pair, board, of(Priority::normal), large), self_);
  {
    std::optional<Transfer> unseen = must(pair.a.write(board.local, board.there, all));
    EXPECT_NE(who_ends(pair, board, of(Priority::normal), large), self_);
    EXPECT_EQ(who_ends(pair, board, of(Priority::normal)), self_) << "small";
    EXPECT_EQ(who_ends(pair, board, of(Priority::latency), large), self_);
    EXPECT_EQ(unseen->state(), State::done);
    EXPECT_EQ(who_ends(pair, board, of(Priority::normal), large), self_) << "it was looked at";
    EXPECT_EQ(unseen->state(), State::done);
  }
  static_cast<void>(must(pair.a.write(board.local, board.there, all)));
  EXPECT_EQ(who_ends(pair, board, of(Priority::normal), large), self_) << "it was let go";
  TransferOptions tells = of(Priority::normal);
  tells.event = true;
  EXPECT_NE(who_ends(pair, board, tells, large), self_);
}

TEST_F(Inline, AllOfClassNormalWhereOneRailsThreadHelps) {
  Couple pair = couple(config(large, 1), config(large, 1));
  Board board(pair, shared(large + 1), shared(large + 1));
  const Pair all[] = {{0, 0, large}};
  const Occupied occupied(pair, board);
  const Transfer unseen = must(pair.a.write(board.local, board.there, all));
  EXPECT_EQ(who_ends(pair, board, of(Priority::normal), large), self_);
  TransferOptions tells = of(Priority::normal);
  tells.event = true;
  EXPECT_EQ(who_ends(pair, board, tells, size), self_);
  const Pair more[] = {{0, 0, large + 1}};
  expect_not_begun(must(pair.a.write(board.local, board.there, all, tells)));
  expect_not_begun(must(pair.a.write(board.local, board.there, all, of(Priority::bulk))));
  expect_not_begun(must(pair.a.write(board.local, board.there, more, of(Priority::normal))));
}

/// Larger ones yet, of an application that waits for them as soon as it has submitted them. The
/// only rail's thread is busy, so that what is over by then was copied by the caller.
class InlineIfAwaited : public Inline {
 protected:
  static constexpr std::size_t least = 4 * large + 1, most = 64 * large;

  /// Whether it was over when it was submitted.
  bool submit(std::uint64_t bytes, const std::function<void(Transfer&)>& then) {
    const Pair all[] = {{0, 0, bytes}};
    Transfer transfer = must(pair_.a.write(board_.local, board_.there, all));
    const bool over = transfer.state() == State::done;
    then(transfer);
    EXPECT_TRUE(succeeds(transfer.wait(Deadline::now())));
    return over;
  }
  static void wait(Transfer& transfer) { EXPECT_TRUE(succeeds(transfer.wait(soon()))); }
  /// Whether it comes to that: a thread that loses its core in between does not wait promptly.
  bool trusts_waits(std::uint64_t bytes) {
    for (int round = 0; round < 1000; ++round)
      if (submit(bytes, wait)) return true;
    return false;
  }

  /// What it does after submit() costs it the trust that it had.
  void expect_no_trust_in(const std::function<void(Transfer&)>& then) {
    ASSERT_TRUE(trusts_waits(least));
    submit(least, then);
    for (int round = 0; round < 20; ++round) EXPECT_FALSE(submit(least, then));
  }

  Couple pair_ = couple(config(large, 1), config(large, 1));
  Board board_{pair_, shared(most + 1), shared(most + 1)};
  const Occupied occupied_{pair_, board_};
};

TEST_F(InlineIfAwaited, AfterOneThatWas) {
  EXPECT_FALSE(submit(least, wait)) << "nothing is known yet";
  EXPECT_TRUE(trusts_waits(least));
  EXPECT_TRUE(trusts_waits(most));
  for (int round = 0; round < 20; ++round) EXPECT_FALSE(submit(most + 1, wait));
}

TEST_F(InlineIfAwaited, NotWhereSomethingElseIsDoneInBetween) {
  expect_no_trust_in([](Transfer& transfer) {
    const auto then = Clock::now() + 60us;
    while (Clock::now() < then) {
    }
    wait(transfer);
  });
}

TEST_F(InlineIfAwaited, NotWhereItIsLookedAtFromTimeToTime) {
  expect_no_trust_in([](Transfer& transfer) {
    const Deadline deadline = soon();
    while (!transfer.wait(Deadline::in(1ms)) && !deadline.passed()) {
    }
  });
}

TEST_F(InlineIfAwaited, AFewTimesWhereNobodyWaits) {
  ASSERT_TRUE(trusts_waits(least));
  int believed = 0;
  const Pair all[] = {{0, 0, least}};
  for (; believed < 100; ++believed) {
    Transfer transfer = must(pair_.a.write(board_.local, board_.there, all));
    EXPECT_NE(transfer.state(), State::failed);
    if (transfer.state() == State::done) continue;
    transfer.cancel();
    break;
  }
  EXPECT_LE(believed, 16);
}

/// Nobody is kept busy here: who waits for what was cut short has its end soon.
TEST_F(Inline, IfAwaitedItStopsAtItsDeadline) {
  constexpr std::size_t bytes = 64 * large;
  Couple pair = couple(config(large, 1), config(large, 1));
  Board board(pair, shared(bytes), shared(bytes));
  const Pair all[] = {{0, 0, bytes}};
  bool cut_short = false;
  for (int round = 0; round < 1000 && !cut_short; ++round) {
    Transfer before = must(pair.a.write(board.local, board.there, all));
    EXPECT_TRUE(succeeds(before.wait(soon())));
    TransferOptions options;
    options.deadline = Deadline::in((1 + round % 20) * 100us);
    Transfer transfer = must(pair.a.write(board.local, board.there, all, options));
    const auto ended = transfer.wait(soon());
    if (ended) continue;  // quick enough
    ASSERT_EQ(ended.error().code(), Code::timed_out) << ended.error().to_string();
    const Report report = transfer.report();
    cut_short = report.bytes_done > 0 && report.queued == 0ns;  // by submit(), not by others
    (void)transfer.wait_quiescent(soon());
    ASSERT_TRUE(transfer.quiescent());  // before its memory is used again
  }
  EXPECT_TRUE(cut_short);
}

TEST_F(Inline, IfAwaitedWithTwoRailsAndNotWithThree) {
  constexpr std::size_t bytes = 4 * large + 1;
  for (const unsigned rails : {2U, 3U}) {
    Couple pair = couple(config(large, rails), config(large, rails));
    Board board(pair, shared(bytes), shared(bytes));
    const Pair all[] = {{0, 0, bytes}};
    bool whole = false;
    for (int round = 0; round < (rails == 2 ? 1000 : 20) && !whole; ++round) {
      Transfer transfer = must(pair.a.write(board.local, board.there, all));
      EXPECT_TRUE(succeeds(transfer.wait(soon())));
      whole = transfer.report().queued == 0ns;  // by submit(), not by others
    }
    EXPECT_EQ(whole, rails == 2);
  }
}

TEST_F(Inline, LargeOnesOfClassNormalNotBesideOthers) {
  Config idle = config();
  idle.progress = Progress::manual;
  Couple pair = couple(config(), idle);
  Board board(pair, shared(large), shared(large));
  TransferOptions bounced;  // which ends when the other side has copied it
  bounced.transport = TransportKind::bounce;
  const Pair some[] = {{0, 0, size}};
  Transfer other = must(pair.a.write(board.local, board.there, some, bounced));
  EXPECT_NE(who_ends(pair, board, of(Priority::normal), large), self_);
  EXPECT_EQ(who_ends(pair, board, of(Priority::normal)), self_) << "small";
  const Deadline deadline = soon();
  while (other.state() == State::active && !deadline.passed()) must(pair.b.progress());
  EXPECT_TRUE(succeeds(other.wait(soon())));
  EXPECT_EQ(who_ends(pair, board, of(Priority::normal), large), self_);
}

TEST_F(Inline, LargeOnesUnderManualProgress) {
  Config manual = config();
  manual.progress = Progress::manual;
  Couple pair = couple(manual);
  Board board(pair, shared(large), shared(large));
  const Pair all[] = {{0, 0, large}};
  const Transfer first = must(pair.a.write(board.local, board.there, all));
  const Transfer second = must(pair.a.write(board.local, board.there, all));
  EXPECT_EQ(second.state(), State::done);
  EXPECT_EQ(first.state(), State::done);
}

TEST_F(Inline, WhereEachIsWaitedForUpToFourTimesAsMuch) {
  Config one = config();
  one.rails = one.threads = 1;
  Couple pair = couple(one);
  constexpr std::size_t most = 4 * large;
  Board board(pair, shared(most + 1), shared(most + 1));
  const Pair all[] = {{0, 0, most}}, more[] = {{0, 0, most + 1}};
  for (const Direction direction : {Direction::write, Direction::read}) {
    const Occupied occupied(pair, board);
    board.repaint();
    const auto submit = [&](std::span<const Pair> pieces, Priority priority) {
      return must(board.submit(direction, pieces, of(priority)));
    };
    {
      const Transfer transfer = submit(all, Priority::normal);
      EXPECT_EQ(transfer.state(), State::done);
      board.expect_pieces(direction, all);
    }
    // Larger ones, and those of other classes, threads do alone.
    expect_not_begun(submit(more, Priority::normal));
    expect_not_begun(submit(all, Priority::bulk));
  }
}

TEST_F(Inline, WhoWaitsMayCopyTheLastOfIt) {
  Couple pair = couple(config());
  constexpr std::size_t more = 4 * large + 1;
  Board board(pair, shared(more), shared(more));
  const Pair all[] = {{0, 0, more}};
  for (int round = 0; round < 200; ++round)
    for (const Direction direction : {Direction::write, Direction::read}) {
      SCOPED_TRACE(round);
      board.expect_moved(direction, all);
    }
}

TEST_F(Inline, IsSwitchedOff) {
  Couple pair = couple(config(0));
  Board board(pair, shared(), shared());
  for (const Priority priority : {Priority::latency, Priority::normal})
    for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{size}})
      EXPECT_NE(who_ends(pair, board, of(priority), bytes), self_);
}

TEST_F(Inline, WithTheSmallestLimits) {
  for (std::uint64_t limit = 1; limit < 9; ++limit) {
    Couple pair = couple(config(limit));
    Board board(pair, shared(), shared());
    for (std::uint64_t bytes = 1; bytes < 9; ++bytes) {
      const Pair some[] = {{0, 0, bytes}};
      for (const Direction direction : {Direction::write, Direction::read})
        board.expect_moved(direction, some);
    }
  }
}

TEST_F(Inline, LargerOnesKeepToTheRailsChunks) {
  Config fine = config();
  fine.rails = 1;
  fine.chunk_bytes = size / 4;
  Couple pair = couple(fine);
  constexpr std::size_t more = 4 * large + size;
  Board board(pair, shared(more), shared(more));
  const Pair all[] = {{0, 0, more}};
  Transfer transfer = must(pair.a.write(board.local, board.there, all));
  ASSERT_TRUE(succeeds(transfer.wait(soon())));
  EXPECT_EQ(transfer.report().operations, more / fine.chunk_bytes);
}

/// Memory that the kernel copies for the thread that submits.
class InlineByKernel : public Inline {
 protected:
  static constexpr std::size_t most = 4 * large;

  Couple pair_ = couple(config());
  Blob remote_ = Blob(most + 1);
  Board board_{pair_, shared(most + 1), Memory::adopt(remote_.data(), remote_.size())};
  const Pair all_[1] = {{0, 0, large}};
};

TEST_F(InlineByKernel, WhereEachIsWaitedFor) {
  const Pair pieces[] = {{0, 100, 1000}, {5000, 7000, 3}, {size, 2 * size, large / 2}};
  for (const Direction direction : {Direction::write, Direction::read}) {
    board_.repaint();
    Transfer transfer = must(board_.submit(direction, pieces));
    EXPECT_EQ(transfer.state(), State::done);
    board_.expect_pieces(direction, pieces);
    const Report report = transfer.report();
    EXPECT_EQ(report.operations, 3U);
    EXPECT_EQ(report.retries, 0U);
    ASSERT_EQ(report.copied.size(), 1U);
    EXPECT_EQ(report.copied.front().by, Mover::kernel);
    EXPECT_EQ(report.copied.front().known, Report::Copied::Known::declared);
    EXPECT_EQ(report.copied.front().bytes, 1003 + large / 2);
    EXPECT_EQ(report.amplification, 1.0);
  }
}

TEST_F(InlineByKernel, GoesByClassAndSize) {
  EXPECT_EQ(who_ends(pair_, board_, of(Priority::normal), most), self_);
  EXPECT_NE(who_ends(pair_, board_, of(Priority::normal), most + 1), self_);
  EXPECT_EQ(who_ends(pair_, board_, of(Priority::latency), large), self_);
  EXPECT_NE(who_ends(pair_, board_, of(Priority::latency), large + 1), self_);
  EXPECT_NE(who_ends(pair_, board_, of(Priority::bulk)), self_);
}

TEST_F(InlineByKernel, NotTheNextBeforeOneWasLookedAtHoweverSmall) {
  const Pair small[] = {{0, 0, 1}};
  {
    const Transfer unseen = must(pair_.a.write(board_.local, board_.there, small));
    EXPECT_NE(who_ends(pair_, board_, of(Priority::normal), 1), self_);
    EXPECT_EQ(unseen.state(), State::done);
    EXPECT_EQ(who_ends(pair_, board_, of(Priority::normal), 1), self_);
  }
  static_cast<void>(must(pair_.a.write(board_.local, board_.there, small)));
  EXPECT_EQ(who_ends(pair_, board_, of(Priority::normal), 1), self_) << "it was let go";
}

TEST_F(InlineByKernel, NothingThatSomethingFollows) {
  Config one = config(large, 1);
  one.threads = 1;
  Couple pair = couple(one);
  Board board(pair, shared(most), Memory::adopt(remote_.data(), remote_.size()));
  const Occupied occupied(pair, board);
  EXPECT_EQ(must(pair.a.write(board.local, board.there, all_, of(Priority::latency))).state(),
            State::done);
  TransferOptions signals = of(Priority::latency), checked = of(Priority::latency);
  signals.signal = Signal{7};
  checked.verify = true;
  expect_not_begun(must(pair.a.write(board.local, board.there, all_, signals)));
  expect_not_begun(must(pair.a.write(board.local, board.there, all_, checked)));
}

TEST_F(InlineByKernel, OthersMoveWhatIsTooLarge) {
  const Pair some[] = {{0, 0, large + size}};
  Transfer transfer = must(board_.submit(Direction::write, some, of(Priority::latency)));
  ASSERT_TRUE(succeeds(transfer.wait(soon())));
  EXPECT_EQ(transfer.report().retries, 0U);
  EXPECT_EQ(transfer.report().operations, 1U);
  board_.expect_pieces(Direction::write, some);
  const Pair more[] = {{0, 0, most + 1}};
  for (const Direction direction : {Direction::write, Direction::read})
    board_.expect_moved(direction, more);
}

TEST_F(InlineByKernel, WhatIsRefusedOthersIsRefused) {
  board_.expect_moved(Direction::read, all_);
  EXPECT_EQ(must(board_.grant.revoke(soon())), Revoked::quiescent);
  const Blob before(board_.local.data(), board_.local.data() + large);
  expect_stale_read(board_, all_);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), board_.local.data()));
}

TEST_F(Inline, ASignalFollowsTheBytes) {
  Couple pair = couple(config());
  Board board(pair, shared(), shared());
  const Pair all[] = {{0, 0, size}};
  for (int round = 0; round < 100; ++round) {
    board.repaint();
    Expectation expectation = must(pair.to_a.expect(7, 1));
    TransferOptions options;
    options.signal = Signal{7};
    Transfer transfer = must(pair.a.write(board.local, board.there, all, options));
    ASSERT_TRUE(succeeds(expectation.wait(soon())));
    board.expect_pieces(Direction::write, all);
    EXPECT_TRUE(succeeds(transfer.wait(soon())));
  }
}

/// While another thread sends the signal the one that submits returns.
TEST_F(Inline, LargeOnesWithSignals) {
  Couple pair = couple(config());
  Board board(pair, shared(large), shared(large));
  const Pair all[] = {{0, 0, large}};
  for (int round = 0; round < 200; ++round) {
    Expectation expectation = must(pair.to_a.expect(7, 1));
    TransferOptions options = of(round % 2 == 0 ? Priority::normal : Priority::latency);
    options.signal = Signal{7};
    Transfer transfer = must(pair.a.write(board.local, board.there, all, options));
    ASSERT_TRUE(succeeds(expectation.wait(soon())));
    ASSERT_TRUE(succeeds(transfer.wait(soon())));
  }
  board.expect_pieces(Direction::write, all);
}

TEST_F(Inline, IsCheckedLikeOthers) {
  Couple pair = couple(config());
  Board board(pair, shared(), shared());
  TransferOptions options;
  options.verify = true;
  const Pair all[] = {{0, 0, size}};
  board.expect_moved(Direction::write, all, options);
}

TEST_F(Inline, WhoSubmitsInACallbackHasNoneInIt) {
  Couple pair = couple(config());
  Board board(pair, shared(), shared());
  const Pair all[] = {{0, 0, size}};
  constexpr int most = 20'000;  // each within the last would overflow the stack
  std::atomic<int> left{most};
  std::latch over(1);
  std::function<void(const Ended&)> again = [&](const Ended& ended) {
    EXPECT_EQ(ended.state, State::done);
    if (--left == 0) return over.count_down();
    TransferOptions options;
    options.on_end = again;
    must(pair.a.write(board.local, board.there, all, options));
  };
  TransferOptions options;
  options.on_end = again;
  must(pair.a.write(board.local, board.there, all, options));
  over.wait();
  EXPECT_EQ(left, 0);
}

TEST_F(Inline, LeavesItsSeatBeforeItTells) {
  Config narrow = config();
  narrow.max_transfers = 1;
  Couple pair = couple(narrow);
  Board board(pair, shared(), shared());
  const Pair all[] = {{0, 0, size}};
  std::optional<Transfer> next;
  TransferOptions options;
  options.on_end = [&](const Ended&) { next = must(pair.a.write(board.local, board.there, all)); };
  must(pair.a.write(board.local, board.there, all, options));
  ASSERT_TRUE(next);
  EXPECT_TRUE(succeeds(next->wait(soon())));
}

TEST_F(Inline, AReadUnderALeaseThatHasEndedIsStale) {
  Couple pair = couple(config());
  Board board(pair, shared(), shared());
  const Pair all[] = {{0, 0, size}};
  board.expect_moved(Direction::read, all);
  EXPECT_EQ(must(board.grant.revoke(soon())), Revoked::quiescent);
  const Blob before(board.local.data(), board.local.data() + size);
  expect_stale_read(board, all);
}

TEST_F(Inline, AfterTheEndOfALeaseNothingIsWritten) {
  Couple pair = couple(config());
  for (int round = 0; round < 50; ++round) {
    Board board(pair, shared(), shared());
    const Pair all[] = {{0, 0, size}};
    std::atomic<bool> stop{false};
    std::atomic<unsigned> attempts{0};
    std::latch begun(1);
    std::thread writer([&] {
      for (bool first = true; !stop; first = false) {
        auto transfer = pair.a.write(board.local, board.there, all);
        if (transfer) static_cast<void>(transfer->wait(soon()));
        ++attempts;
        if (first) begun.count_down();
      }
    });
    begun.wait();
    EXPECT_EQ(must(board.grant.revoke(soon())), Revoked::quiescent);
    fill(bytes_of(board.remote), 4711);
    const Blob mine(board.remote.data(), board.remote.data() + size);
    for (const unsigned enough = attempts + 20; attempts < enough;) std::this_thread::yield();
    EXPECT_TRUE(same_bytes(bytes_of(board.remote), mine));
    stop = true;
    writer.join();
  }
}

TEST_F(Inline, ManyThreadsBesideTransfersOfTheEngines) {
  constexpr std::size_t threads = 4, rounds = 300, large = 4 << 20;
  Couple pair = couple(config());
  Board board(pair, shared(threads * size + large), shared(threads * size + large));
  std::vector<std::jthread> running;
  for (std::size_t mine = 0; mine < threads; ++mine)
    running.emplace_back([&, mine] {
      const Pair part[] = {{mine * size, mine * size, size}};
      for (std::size_t round = 0; round < rounds; ++round) {
        const bool write = round % 2 == 0;
        Transfer transfer = must(write ? pair.a.write(board.local, board.there, part)
                                       : pair.a.read(board.local, board.there, part));
        EXPECT_TRUE(succeeds(transfer.wait(soon())));
      }
    });
  const Pair rest[] = {{threads * size, threads * size, large}};
  for (int round = 0; round < 20; ++round)
    EXPECT_TRUE(succeeds(must(pair.a.write(board.local, board.there, rest)).wait(soon())));
  running.clear();
  const Pair all[] = {{0, 0, threads * size + large}};
  board.expect_pieces(Direction::write, all);
}

}  // namespace
}  // namespace weft::test
