// The order of transfers to one peer, turn by turn.
#include "rail/fair_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "parts.hpp"

namespace weft::core::test {
namespace {

class FairQueueTest : public testing::Test {
 protected:
  using Transfer = std::shared_ptr<TransferState>;

  /// A transfer that waits, and whose deadline is so far away.
  Transfer add(Priority priority, Nanoseconds left = 1h) {
    Submission submission = make_submission(prepared);
    submission.priority = priority;
    submission.deadline = start + left;
    auto transfer = std::make_shared<TransferState>(std::move(submission), host);
    turns.add(transfer);
    return transfer;
  }

  /// Has so many turns taken, by transfers that always have more; returns who had them.
  std::vector<const TransferState*> take(std::size_t count) {
    std::vector<const TransferState*> taken;
    for (std::size_t i = 0; i < count; ++i) {
      FairQueue::Turn turn = turns.next();
      taken.push_back(&turn.transfer());
      turn.sent(FairQueue::cost_of(1));
      turns.end(std::move(turn), true);
    }
    return taken;
  }

  static int count(const std::vector<const TransferState*>& taken, const Transfer& whose) {
    return static_cast<int>(std::count(taken.begin(), taken.end(), whose.get()));
  }

  const Clock::time_point start = Clock::now();
  const std::shared_ptr<PreparedState> prepared = make_prepared(make_peer(1), scattered(4, 10));
  NoHost host;
  FairQueue turns;
};

TEST_F(FairQueueTest, LatencyGoesBeforeNormalBeforeBulk) {
  const auto bulk = add(Priority::bulk, 1s), normal = add(Priority::normal, 2s),
             latency = add(Priority::latency, 3s);
  for (const auto& expected : {latency, normal, bulk}) {
    FairQueue::Turn turn = turns.next();
    EXPECT_EQ(&turn.transfer(), expected.get());
    EXPECT_EQ(turn.chunks(8), 8U);
    turns.end(std::move(turn), false);
  }
  EXPECT_TRUE(turns.empty());
}

TEST_F(FairQueueTest, ALowerClassHasItsShare) {
  const auto bulk = add(Priority::bulk), normal = add(Priority::normal),
             latency = add(Priority::latency);
  const auto taken = take(100 * FairQueue::share);
  EXPECT_NEAR(count(taken, bulk), 100, 1);
  EXPECT_NEAR(count(taken, normal), 100, 1);
  EXPECT_EQ(count(taken, latency),
            static_cast<int>(taken.size()) - count(taken, bulk) - count(taken, normal));
}

TEST_F(FairQueueTest, TheShareIsOfTheClassesThatWait) {
  const auto bulk = add(Priority::bulk), normal = add(Priority::normal);
  const auto taken = take(100 * FairQueue::share);
  EXPECT_NEAR(count(taken, bulk), 100, 1);
  EXPECT_NEAR(count(taken, normal), 100 * int{FairQueue::share - 1}, 1);
}

TEST_F(FairQueueTest, TheShareIsOfBytes) {
  const auto bulk = add(Priority::bulk), latency = add(Priority::latency);
  constexpr std::uint64_t small = 64 << 10, large = 1 << 20;
  std::uint64_t bulk_bytes = 0, latency_bytes = 0;
  for (int i = 0; i < 10000; ++i) {
    FairQueue::Turn turn = turns.next();
    const bool is_bulk = &turn.transfer() == bulk.get();
    EXPECT_EQ(turn.chunks(8), is_bulk ? 1U : 8U);
    turn.sent(FairQueue::cost_of(is_bulk ? large : small));
    (is_bulk ? bulk_bytes : latency_bytes) += is_bulk ? large : small;
    turns.end(std::move(turn), true);
  }
  EXPECT_NEAR(static_cast<double>(latency_bytes) / static_cast<double>(bulk_bytes),
              FairQueue::share - 1, 0.5);
}

TEST_F(FairQueueTest, WhatOnlyUrgentOnesCouldHaveCountsForNoShare) {
  const auto bulk = add(Priority::bulk), latency = add(Priority::latency);
  EXPECT_EQ(count(take(FairQueue::share), bulk), 1);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(turns.urgent());
    FairQueue::Turn turn = turns.next_urgent();
    EXPECT_EQ(&turn.transfer(), latency.get());
    turn.sent(FairQueue::cost_of(1));
    turns.end(std::move(turn), true);
  }
  EXPECT_EQ(count(take(FairQueue::share), bulk), 1);
}

TEST_F(FairQueueTest, TheEarliestDeadlineFirstAndNowAndThenWhoeverHasWaitedLongest) {
  const auto late = add(Priority::normal, 30s), middle = add(Priority::normal, 20s),
             early = add(Priority::normal, 10s);
  const std::map<const TransferState*, std::string> names = {
      {late.get(), "l"}, {middle.get(), "m"}, {early.get(), "e"}};
  std::string order;
  for (const TransferState* each : take(16)) order += names.at(each);
  EXPECT_EQ(order, "eeeleeemeeeleeem");
}

TEST_F(FairQueueTest, OnesThatComeLaterGoFirstIfTheirDeadlinesAreEarlier) {
  const auto late = add(Priority::latency, 20s);
  EXPECT_EQ(take(1).front(), late.get());
  const auto early = add(Priority::latency, 10s);
  EXPECT_EQ(take(1).front(), early.get());
}

TEST_F(FairQueueTest, ThoseOfOneDeadlineTakeTurns) {
  std::vector<Transfer> all;
  for (int i = 0; i < 7; ++i) all.push_back(add(Priority::normal));
  const auto taken = take(7 * 50);
  for (std::size_t i = 0; i < taken.size(); ++i) EXPECT_EQ(taken[i], all[i % 7].get()) << i;
}

TEST_F(FairQueueTest, NobodyStarves) {
  constexpr std::size_t each = 300;
  std::vector<Transfer> all;
  for (std::size_t i = 0; i < each; ++i)
    for (const Priority priority : {Priority::latency, Priority::normal, Priority::bulk})
      all.push_back(add(priority, 1h + i * 1s));
  const auto taken = take(each * FairQueue::patience * static_cast<std::size_t>(FairQueue::share));
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_GE(count(taken, all[i]), 1) << "number " << i;
}

TEST_F(FairQueueTest, WhatIsErasedHasNoTurn) {
  const auto one = add(Priority::normal, 1s), other = add(Priority::normal, 2s);
  turns.add(one);  // twice
  turns.erase(*one);
  for (const TransferState* each : take(20)) EXPECT_EQ(each, other.get());
  turns.erase(*other);
  EXPECT_TRUE(turns.empty());
}

TEST_F(FairQueueTest, ThoseThatTimedOutAreNextByTheirDeadlinesAndGo) {
  std::vector<Transfer> all;
  for (int i = 0; i < 20; ++i) all.push_back(add(Priority::normal, i * 1s));
  for (int i = 0; i < 10; ++i)
    all[static_cast<std::size_t>(i)]->end_early(State::timed_out, Error(Code::timed_out, "late"));
  turns.drop_ended();
  EXPECT_EQ(turns.next().transfer().state(), State::active);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(all[static_cast<std::size_t>(i)].use_count(), 1) << "it holds nothing of them";
}

TEST_F(FairQueueTest, ThoseThatEndedInAnyOrderAreLetGoWhenMoreCome) {
  std::vector<std::weak_ptr<TransferState>> ended;
  const auto first = add(Priority::normal, 1s);
  for (int i = 0; i < 1000; ++i) {
    const auto transfer = add(Priority::normal, 1h - i * 1s);
    transfer->end_early(State::cancelled, Error(Code::cancelled, "cancelled"));
    ended.push_back(transfer);
  }
  const auto kept =
      std::count_if(ended.begin(), ended.end(), [](const auto& each) { return !each.expired(); });
  EXPECT_LT(kept, 150);
}

}  // namespace
}  // namespace weft::core::test
