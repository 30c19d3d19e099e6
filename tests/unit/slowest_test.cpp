// The transfers that took longest lately.
#include "metrics/slowest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace weft::core {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr auto period = SlowestTransfers::period;
const Clock::time_point start{1h};

void add(SlowestTransfers& slowest, Nanoseconds elapsed, Clock::time_point ended) {
  if (!slowest.wants(elapsed, ended)) return;
  SlowTransfer transfer;
  transfer.ended = ended;
  transfer.report.elapsed = elapsed;
  slowest.add(std::move(transfer));
}

std::vector<Nanoseconds> times(const SlowestTransfers& slowest, Clock::time_point now) {
  std::vector<Nanoseconds> times;
  for (const SlowTransfer& each : slowest.list(now)) times.push_back(each.report.elapsed);
  return times;
}

TEST(SlowestTransfers, AreNoneAtFirst) {
  EXPECT_THAT(times(SlowestTransfers(), start), ElementsAre());
}

TEST(SlowestTransfers, ComeSlowestFirst) {
  SlowestTransfers slowest;
  for (const auto elapsed : {2ms, 9ms, 5ms}) add(slowest, elapsed, start);
  EXPECT_THAT(times(slowest, start), ElementsAre(9ms, 5ms, 2ms));
}

TEST(SlowestTransfers, AreTheSlowestOfMany) {
  SlowestTransfers slowest;
  constexpr int count = 1000;
  for (int i = 0; i < count; ++i) add(slowest, std::chrono::microseconds(i * 7 % count), start);
  std::vector<Nanoseconds> expected;
  for (std::size_t i = 1; i <= SlowestTransfers::most; ++i)
    expected.push_back(std::chrono::microseconds(count - i));
  EXPECT_EQ(times(slowest, start), expected);
}

TEST(SlowestTransfers, DoNotWantAFastOneWhenTheListIsFull) {
  SlowestTransfers slowest;
  EXPECT_TRUE(slowest.wants(0ns, start));
  for (std::size_t i = 0; i < SlowestTransfers::most; ++i) add(slowest, 1ms, start);
  EXPECT_FALSE(slowest.wants(1ms, start));
  EXPECT_TRUE(slowest.wants(1ms + 1ns, start));
}

TEST(SlowestTransfers, OfThePeriodBeforeStayOneMore) {
  SlowestTransfers slowest;
  add(slowest, 9ms, start);
  add(slowest, 2ms, start + period);
  EXPECT_THAT(times(slowest, start + period), ElementsAre(9ms, 2ms));
  add(slowest, 3ms, start + 2 * period);
  EXPECT_THAT(times(slowest, start + 2 * period), ElementsAre(3ms, 2ms));
}

TEST(SlowestTransfers, ANewPeriodTakesFastOnesAgain) {
  SlowestTransfers slowest;
  for (std::size_t i = 0; i < SlowestTransfers::most; ++i) add(slowest, 1s, start);
  EXPECT_FALSE(slowest.wants(1us, start + period - 1ns));
  EXPECT_TRUE(slowest.wants(1us, start + period));
}

TEST(SlowestTransfers, LeaveWhenNothingElseEnds) {
  SlowestTransfers slowest;
  add(slowest, 9ms, start);
  EXPECT_THAT(times(slowest, start + 2 * period), ElementsAre(9ms));
  EXPECT_THAT(times(slowest, start + 2 * period + 1ns), ElementsAre());
}

TEST(SlowestTransfers, OfLongAgoAreNotKeptAsThoseOfThePeriodBefore) {
  SlowestTransfers slowest;
  add(slowest, 9ms, start);
  add(slowest, 2ms, start + 3 * period);
  EXPECT_THAT(times(slowest, start + 3 * period), ElementsAre(2ms));
}

TEST(SlowestTransfers, AreFoundAmongManyThreads) {
  SlowestTransfers slowest;
  constexpr int threads = 4, each = 2000;
  std::vector<std::thread> adding;
  for (int thread = 0; thread < threads; ++thread)
    adding.emplace_back([&slowest, thread] {
      for (int i = 0; i < each; ++i)
        add(slowest, std::chrono::microseconds(i * threads + thread), start);
    });
  for (int look = 0; look < 100; ++look)
    EXPECT_LE(slowest.list(start).size(), SlowestTransfers::most);
  for (std::thread& thread : adding) thread.join();
  std::vector<Nanoseconds> expected;
  for (std::size_t i = 1; i <= SlowestTransfers::most; ++i)
    expected.push_back(std::chrono::microseconds(threads * each - static_cast<int>(i)));
  EXPECT_EQ(times(slowest, start), expected);
}

}  // namespace
}  // namespace weft::core
