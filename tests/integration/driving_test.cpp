// Who drives the rails: the application by its calls, or the engine's threads.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "engines.hpp"
#include "forwarding.hpp"
#include "held_back.hpp"

namespace weft::test::driving_tests {
namespace {

class Drivers : public testing::TestWithParam<Variant> {
 protected:
  /// Everything of one engine's by calls.
  static Config by_calls() {
    Config config = config_for(GetParam());
    config.progress = Progress::manual;
    return config;
  }
  /// By threads that wait for each of theirs; `pumped`: another makes progress besides.
  static void submit_by_threads(const Config& config, bool pumped);
};

enum class Manual { here, there, both };

/// Everything once, whoever makes the progress.
void exchange(const Variant& variant, Manual manual) {
  Config ours = config_for(variant), theirs = ours;
  if (manual != Manual::there) ours.progress = Progress::manual;
  if (manual != Manual::here) theirs.progress = Progress::manual;
  Couple pair = couple(ours, theirs);
  std::optional<Pump> pump;
  if (manual != Manual::here) pump.emplace(pair.b);

  Board board(pair, 3 << 20, 3 << 20);
  const Pair pieces[] = {{1, 3, 2 << 20}, {(2 << 20) + 9, (2 << 20) + 4, 77'777}};
  board.expect_moved(Direction::write, pieces);
  board.repaint();
  TransferOptions options;
  options.signal = Signal{4};
  board.expect_moved(Direction::read, pieces, options);
  EXPECT_TRUE(succeeds(must(pair.to_a.expect(4, 1)).wait(soon())));

  // While one side waits, somebody has to make the other's progress.
  std::optional<Pump> sender;
  if (manual != Manual::there) sender.emplace(pair.a);
  const Blob text = pattern(1000, 5);
  must(pair.to_b.send(8, text, soon()));
  EXPECT_TRUE(same_bytes(must(pair.to_a.recv(8, ~0ULL, soon())).bytes, text));
  must(pair.to_a.send(9, text, soon()));
  EXPECT_TRUE(same_bytes(must(pair.to_b.recv(9, ~0ULL, soon())).bytes, text));
  EXPECT_EQ(must(board.grant.revoke(soon())), Revoked::quiescent);
}

TEST_P(Drivers, ManualHere) {
  exchange(GetParam(), Manual::here);
}
TEST_P(Drivers, ManualThere) {
  exchange(GetParam(), Manual::there);
}
TEST_P(Drivers, ManualOnBothSides) {
  exchange(GetParam(), Manual::both);
}

TEST_P(Drivers, ByCallsOnly) {
  Couple pair = couple(by_calls());
  Board board(pair, 1 << 20, 1 << 20);
  const Pair piece[] = {{0, 0, 1 << 20}};
  Transfer transfer = must(pair.a.write(board.local, board.there, piece));
  const Deadline deadline = soon();
  while (transfer.state() == State::active && !deadline.passed()) {
    must(pair.a.progress());
    must(pair.b.progress());
  }
  EXPECT_EQ(transfer.state(), State::done);
  board.expect_pieces(Direction::write, piece);
}

TEST_P(Drivers, RailsWithoutWorkServeWhileAnotherWaits) {
  Config ours = by_calls();
  ours.inline_copy_bytes = 0;
  HeldBack nic;
  Couple pair = couple(ours, config_for(GetParam()), nic.hooks());
  Board board(pair, 4 << 20, 4 << 20);
  const Pair small[] = {{0, 0, 100}};
  Transfer waiting = must(pair.a.write(board.local, board.there, small));
  const Pump pump(pair.a);
  const Deadline deadline = soon();
  while (nic.count() == 0 && !deadline.passed()) std::this_thread::yield();
  ASSERT_GT(nic.count(), 0U);

  board.expect_written_back({4096, 4096, 3 << 20});
  EXPECT_EQ(waiting.state(), State::active);
  nic.let_go();
  EXPECT_TRUE(succeeds(waiting.wait(soon())));
}

TEST_P(Drivers, CallsBesideTheThreadsDoNoHarm) {
  Couple pair = couple(config_for(GetParam()));
  const Pump ours(pair.a), theirs(pair.b);
  Board board(pair, 3'000'000, 3'000'000);
  const Pair piece[] = {{0, 0, 3'000'000}};
  for (int round = 0; round < 5; ++round) {
    board.repaint();
    board.expect_moved(round % 2 == 0 ? Direction::write : Direction::read, piece);
  }
}

/// Counts what is handed to the provider.
class Outgoing {
 public:
  std::size_t count() const { return *count_; }
  core::EngineHooks hooks() const { return hooks_wrapping<Counting>(count_); }

 private:
  using Count = std::shared_ptr<std::atomic<std::size_t>>;
  class Counting final : public ForwardingTransport {
   public:
    Counting(core::Transport& inner, Count count)
        : ForwardingTransport(inner), count_(std::move(count)) {}
    providers::BatchPost post_all(std::span<core::Op* const> ops) override {
      *count_ += ops.size();
      inner().set_sink(sink());
      return inner().post_all(ops);
    }

   private:
    const Count count_;
  };
  const Count count_ = std::make_shared<std::atomic<std::size_t>>(0);
};

constexpr std::size_t small = 4096, slot = 64 * 1024;

TEST_P(Drivers, WhatIsSmallGoesOutBeforeItsSubmissionReturns) {
  const Outgoing nic;
  Couple pair = couple(by_calls(), config_for(GetParam()), nic.hooks());
  Board board(pair, 4 << 20, 4 << 20);
  const auto write = [&](const Pair& piece, TransferOptions options = {}) {
    return must(pair.a.write(board.local, board.there, std::span(&piece, 1), std::move(options)));
  };
  const Pair first{0, 0, small}, large{2 << 20, 2 << 20, 2 << 20}, bulk{small, small, small};
  Transfer one = write(first);
  EXPECT_EQ(nic.count(), 1U);
  ASSERT_TRUE(succeeds(one.wait(soon())));

  const std::size_t before = nic.count();  // with the proof, where one is owed
  Transfer two = write(large);
  EXPECT_EQ(nic.count(), before);
  TransferOptions later;
  later.priority = Priority::bulk;
  Transfer three = write(bulk, later);
  EXPECT_EQ(nic.count(), before);
  for (Transfer* each : {&two, &three}) ASSERT_TRUE(succeeds(each->wait_quiescent(soon())));
  const Pair all[] = {first, large, bulk};
  board.expect_pieces(Direction::write, all);
}

TEST_P(Drivers, NothingGoesOutAtOnceWhereNothingIsToBeDoneAtOnce) {
  const Outgoing nic;
  Config config = by_calls();
  config.inline_copy_bytes = 0;
  Couple pair = couple(config, config_for(GetParam()), nic.hooks());
  Board board(pair, small, small);
  const Pair piece[] = {{0, 0, small}};
  Transfer transfer = must(pair.a.read(board.local, board.there, piece));
  EXPECT_EQ(nic.count(), 0U);
  ASSERT_TRUE(succeeds(transfer.wait_quiescent(soon())));
  board.expect_pieces(Direction::read, piece);
}

TEST_P(Drivers, ACallbackSubmitsTheNext) {
  Couple pair = couple(by_calls(), config_for(GetParam()));
  Board board(pair, 40 * slot, 40 * slot);
  std::vector<Pair> pieces;
  for (std::uint64_t i = 0; i < 40; ++i) pieces.push_back({i * slot, i * slot, small + i});
  std::vector<Transfer> chain;
  std::atomic<std::size_t> ended{0};
  std::function<void()> submit_next = [&] {
    TransferOptions options;
    options.on_end = [&](const Ended& end) {
      EXPECT_EQ(end.state, State::done);
      if (++ended < pieces.size()) submit_next();
    };
    const std::span piece(&pieces[ended], 1);
    chain.push_back(must(pair.a.write(board.local, board.there, piece, std::move(options))));
  };
  submit_next();
  const Deadline deadline = soon();
  while (ended < pieces.size() && !deadline.passed()) must(pair.a.progress());
  ASSERT_EQ(ended, pieces.size());
  board.expect_pieces(Direction::write, pieces);
}

void Drivers::submit_by_threads(const Config& config, bool pumped) {
  constexpr std::size_t threads = 3, each = 100;
  Couple pair = couple(config, config_for(GetParam()));
  Board board(pair, threads * each * small, threads * each * small);
  std::vector<Pair> pieces;
  for (std::uint64_t i = 0; i < threads * each; ++i)
    pieces.push_back({i * small, i * small, small - i % 7});
  const Prepared prepared =
      must(pair.a.prepare(board.local, board.there, Direction::write, pieces));
  {
    std::optional<Pump> pump;
    if (pumped) pump.emplace(pair.a);
    std::vector<std::jthread> submitters;
    for (std::size_t thread = 0; thread < threads; ++thread)
      submitters.emplace_back([&, thread] {
        for (std::size_t i = 0; i < each; ++i) {
          const std::uint32_t pick[] = {static_cast<std::uint32_t>(thread * each + i)};
          EXPECT_TRUE(succeeds(must(pair.a.submit(prepared, pick)).wait_quiescent(soon())));
        }
      });
  }
  board.expect_pieces(Direction::write, pieces);
}

TEST_P(Drivers, SeveralThreadsSubmitAndWait) {
  submit_by_threads(by_calls(), false);
}

TEST_P(Drivers, SeveralThreadsSubmitWhileAnotherMakesProgress) {
  submit_by_threads(by_calls(), true);
}

TEST_P(Drivers, WhoPollsBesideTheThreadsMayStopAtAnyTime) {
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, slot, slot);
  const Pair piece[] = {{0, 0, small}};
  const Prepared prepared = must(pair.a.prepare(board.local, board.there, Direction::write, piece));
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 50; ++i) {
      const Transfer polled = must(pair.a.submit(prepared));
      while (polled.state() == State::active) must(pair.a.progress());
    }
    // Nobody but the threads, which have rested, sees to this one.
    const Transfer left_alone = must(pair.a.submit(prepared));
    const Deadline deadline = soon();
    while (left_alone.state() == State::active && !deadline.passed()) std::this_thread::yield();
    ASSERT_EQ(left_alone.state(), State::done);
  }
  board.expect_pieces(Direction::write, piece);
}

TEST_P(Drivers, WhatComesWhileACallerPollsIsSeenTo) {
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, slot, slot);
  const Pair piece[] = {{0, 0, small}};
  // The other side polls for what never comes, and is written to and read from all the while.
  std::atomic<bool> stop{false};
  std::jthread poller([&] {
    while (!stop) must(pair.b.progress());
  });
  for (int round = 0; round < 20; ++round) {
    board.repaint();
    board.expect_moved(round % 2 == 0 ? Direction::write : Direction::read, piece);
  }
  stop = true;
}

TEST_P(Drivers, SeveralThreadsWaitBesideTheEnginesOwn) {
  submit_by_threads(config_for(GetParam()), false);
}

void close_while_others_submit(const Config& ours, const Config& theirs) {
  Couple pair = couple(ours, theirs);
  Board board(pair, small, small);
  const Pair piece[] = {{0, 0, small}};
  const Prepared prepared = must(pair.a.prepare(board.local, board.there, Direction::write, piece));
  std::atomic<std::size_t> ended{0};
  std::vector<std::jthread> submitters;
  for (int thread = 0; thread < 3; ++thread)
    submitters.emplace_back([&] {
      const Deadline deadline = soon();
      while (!deadline.passed()) {
        auto transfer = pair.a.submit(prepared);
        if (!transfer) {
          EXPECT_TRUE(fails_with(transfer, Code::closed));
          return;
        }
        const auto waited = transfer->wait(soon());
        EXPECT_TRUE(waited || waited.error().code() == Code::closed) << waited.error().to_string();
        ++ended;
      }
      ADD_FAILURE() << "the engine was not closed";
    });
  const Deadline deadline = soon();
  while (ended < 50 && !deadline.passed()) std::this_thread::yield();
  must(pair.a.close(soon()));
}

TEST_P(Drivers, ClosingWhileOthersSubmit) {
  close_while_others_submit(by_calls(), config_for(GetParam()));
}
TEST_P(Drivers, ClosingWhileOthersWaitBesideTheThreads) {
  close_while_others_submit(config_for(GetParam()), config_for(GetParam()));
}

TEST_P(Drivers, WhatWentOutAtOnceKeepsItsDeadline) {
  HeldBack nic;
  Couple pair = couple(by_calls(), config_for(GetParam()), nic.hooks());
  Board board(pair, small, small);
  const Pair piece[] = {{0, 0, small}};
  TransferOptions options;
  options.deadline = Deadline::in(50ms);
  Transfer transfer = must(pair.a.write(board.local, board.there, piece, options));
  EXPECT_TRUE(fails_with(transfer.wait(soon()), Code::timed_out));
  nic.let_go();
  static_cast<void>(transfer.wait_quiescent(soon()));
  EXPECT_TRUE(transfer.quiescent());
}

INSTANTIATE_TEST_SUITE_P(All, Drivers, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test::driving_tests
