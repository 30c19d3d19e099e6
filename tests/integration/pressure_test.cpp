// Full queues, many queued transfers, and urgent ones among them.
#include <future>
#include <numeric>
#include <random>

#include "engines.hpp"
#include "gate.hpp"

namespace weft::test {
namespace {

class FullQueue;

class Pressure : public testing::TestWithParam<Variant> {
 protected:
  template <typename Body>
  void with_full_queues(Body&& body);
  Config config = config_for(GetParam());
  Gate gate;
};

TEST_P(Pressure, WhatIsUrgentDoesNotWaitForALargeTransferNorForManySmallOnes) {
  constexpr std::uint64_t piece = 1 << 20, pieces = 16, most = 512;
  Couple pair = couple(config, config, gate.hooks());
  Board board(pair, (pieces + 1) * piece, (pieces + 1) * piece);
  const Strided form{{0, 0, piece}, pieces + 1, piece, piece};
  const Prepared prepared = must(pair.a.prepare(board.local, board.there, Direction::write, form));
  // The same pieces again and again, 512 MiB in one transfer, and as much in one for each piece.
  // The last piece is the urgent one's.
  std::vector<std::uint32_t> picks(most);
  for (std::uint32_t i = 0; i < most; ++i) picks[i] = i % pieces;
  TransferOptions options;
  options.priority = Priority::bulk;
  std::vector<Transfer> bulk;
  bulk.push_back(must(pair.a.submit(prepared, picks, options)));
  for (const std::uint32_t pick : picks)
    bulk.push_back(must(pair.a.submit(prepared, std::span(&pick, 1), options)));

  std::promise<std::uint64_t> carried;
  options.priority = Priority::latency;
  options.on_end = [&](const Ended&) {
    std::uint64_t bytes = 0;
    for (const Transfer& each : bulk) bytes += each.report().bytes_done;
    carried.set_value(bytes);
  };
  const std::uint32_t last[] = {pieces};
  Transfer urgent = must(pair.a.submit(prepared, last, options));
  gate.open();
  ASSERT_TRUE(succeeds(urgent.wait(soon())));
  EXPECT_LT(carried.get_future().get(), most * piece);  // half of all
  for (Transfer& each : bulk) each.cancel();
  for (Transfer& each : bulk) {
    const auto ended = each.wait_quiescent(soon());
    EXPECT_TRUE(ended || fails_with(ended, Code::cancelled));
  }
}

TEST_P(Pressure, TwentyThousandQueuedTransfersAllEnd) {
  constexpr std::size_t count = 20'000, bytes = 1000;
  Couple pair = couple(config, config, gate.hooks());
  Board board(pair, count * bytes, count * bytes);
  std::vector<std::uint32_t> here(count), there(count);
  std::iota(here.begin(), here.end(), 0U);
  std::iota(there.begin(), there.end(), 0U);
  std::shuffle(there.begin(), there.end(), std::mt19937(count));
  const Paged form{bytes, 0, bytes, 0, bytes, here, there};
  const Prepared prepared = must(pair.a.prepare(board.local, board.there, Direction::write, form));
  std::vector<Transfer> transfers;
  for (std::uint32_t i = 0; i < count; ++i) {
    TransferOptions options;
    options.priority = static_cast<Priority>(static_cast<int>(i % 3) - 1);
    const std::uint32_t pick[] = {i};
    transfers.push_back(must(pair.a.submit(prepared, pick, options)));
  }
  EXPECT_EQ(pair.a.info().transfers_active, count);
  gate.open();
  for (Transfer& transfer : transfers) ASSERT_TRUE(succeeds(transfer.wait(soon())));
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < count; ++i) pairs.push_back({i * bytes, there[i] * bytes, bytes});
  board.expect_pieces(Direction::write, pairs);
  EXPECT_EQ(pair.a.info().transfers_active, 0U);
}

/// An engine with as many transfers as it may have, which don't end before the gate opens.
class FullQueue {
 public:
  FullQueue(Config config, Gate& gate)
      : config_(limited(std::move(config))),
        pair(couple(config_, listening(config_), gate.hooks())),
        board(pair, 1000, 1000) {
    for (std::size_t i = 0; i < most; ++i) transfers.push_back(must(submit(std::nullopt)));
  }

  Result<Transfer> submit(std::optional<Deadline> wait_for_room) {
    TransferOptions options;
    options.wait_for_room = wait_for_room;
    return submit(std::move(options));
  }
  Result<Transfer> submit(TransferOptions options) {
    const Pair piece[] = {{0, 0, 1000}};
    return pair.a.write(board.local, board.there, piece, std::move(options));
  }

  static constexpr std::size_t most = 10;

 private:
  static Config limited(Config config) {
    config.max_transfers = most;
    return config;
  }
  static Config listening(Config config) {
    config.progress = Progress::threads;
    return config;
  }
  const Config config_;

 public:
  Couple pair;
  Board board;
  std::vector<Transfer> transfers;
};

/// Under both kinds of progress.
template <typename Body>
void Pressure::with_full_queues(Body&& body) {
  for (const Progress progress : {Progress::threads, Progress::manual}) {
    SCOPED_TRACE(progress == Progress::manual ? "manual" : "threads");
    gate.shut();
    config.progress = progress;
    FullQueue queue(config, gate);
    body(queue);
  }
}

TEST_P(Pressure, AFullQueueSaysSoAtOnceOrAfterAWait) {
  with_full_queues([&](FullQueue& queue) {
    const auto at_once = queue.submit(std::nullopt);
    ASSERT_TRUE(fails_with(at_once, Code::queue_full));
    EXPECT_NE(at_once.error().message().find("10 transfers"), std::string::npos);
    const Deadline until = Deadline::in(20ms);
    const auto late = queue.submit(until);
    ASSERT_TRUE(fails_with(late, Code::queue_full));
    EXPECT_TRUE(until.passed());
    EXPECT_NE(late.error().message().find("none has ended in time"), std::string::npos);
    gate.open();
    for (Transfer& transfer : queue.transfers) EXPECT_TRUE(succeeds(transfer.wait(soon())));
  });
}

TEST_P(Pressure, WhoWaitsForRoomHasItWhenATransferEnds) {
  with_full_queues([&](FullQueue& queue) {
    auto waiting = std::async(std::launch::async, [&] { return queue.submit(soon()); });
    // Under manual progress nothing ends but by the wait itself.
    gate.open();
    auto transfer = waiting.get();
    ASSERT_TRUE(succeeds(transfer));
    EXPECT_TRUE(succeeds(transfer->wait(soon())));
    for (Transfer& each : queue.transfers) EXPECT_TRUE(succeeds(each.wait(soon())));
    // Again and again, more than there is room for.
    std::vector<Transfer> more;
    for (std::size_t i = 0; i < 20 * FullQueue::most; ++i)
      more.push_back(must(queue.submit(soon())));
    for (Transfer& each : more) EXPECT_TRUE(succeeds(each.wait(soon())));
  });
}

/// Who looks at state() instead of waiting, on another core, and submits the next at once.
TEST_P(Pressure, WhoSeesTheEndOfATransferHasItsRoom) {
  config.max_transfers = 1;
  config.inline_copy_bytes = 0;  // else they end before the caller has them
  Couple pair = couple(config, config);
  Board board(pair, 1000, 1000);
  const Pair piece[] = {{0, 0, 1000}};
  for (int i = 0; i < 1000; ++i) {
    const auto transfer = pair.a.write(board.local, board.there, piece);
    ASSERT_TRUE(succeeds(transfer)) << "transfer " << i;
    const Deadline until = soon();
    while (transfer->state() == State::active && !until.passed()) std::this_thread::yield();
    ASSERT_EQ(transfer->state(), State::done);
  }
}

TEST_P(Pressure, TimeSpentWaitingForRoomIsNotTheTransfersOwn) {
  config.default_timeout = 1s;
  with_full_queues([&](FullQueue& queue) {
    // Room comes as the others time out, at about the time at which this one was submitted.
    auto transfer = queue.submit(soon());
    const auto begun = Clock::now();
    ASSERT_TRUE(succeeds(transfer));
    EXPECT_TRUE(fails_with(transfer->wait(soon()), Code::timed_out));
    EXPECT_GT(Clock::now() - begun, 500ms);
    gate.open();
  });
}

TEST_P(Pressure, ACallbackDoesNotWaitForRoom) {
  with_full_queues([&](FullQueue& queue) {
    queue.transfers[0].cancel();
    std::ignore = queue.transfers[0].wait(soon());
    std::promise<Result<Transfer>> refused;
    std::optional<Result<Transfer>> again;
    TransferOptions options;
    options.on_end = [&](const Ended&) {
      again = queue.submit(soon());  // the room that the transfer left
      refused.set_value(queue.submit(soon()));
    };
    Transfer transfer = must(queue.submit(std::move(options)));
    transfer.cancel();
    std::ignore = transfer.wait(soon());
    auto result = refused.get_future().get();
    ASSERT_TRUE(fails_with(result, Code::queue_full));
    EXPECT_NE(result.error().message().find("callback"), std::string::npos);
    gate.open();
    EXPECT_TRUE(succeeds(again.value()));
    EXPECT_TRUE(succeeds(again.value()->wait(soon())));
    for (Transfer& each : std::span(queue.transfers).subspan(1))
      EXPECT_TRUE(succeeds(each.wait(soon())));
  });
}

TEST_P(Pressure, ClosingTheEngineEndsTheWaitForRoom) {
  with_full_queues([&](FullQueue& queue) {
    auto waiting = std::async(std::launch::async, [&] { return queue.submit(soon()); });
    const Deadline begun = Deadline::in(0s);
    std::ignore = queue.pair.a.close(soon());
    const auto result = waiting.get();
    // Closing may have made room before it said that there will be none.
    EXPECT_TRUE(result || fails_with(result, Code::closed));
    EXPECT_LT(Clock::now() - begun.when(), 50s);
  });
}

INSTANTIATE_TEST_SUITE_P(All, Pressure, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
