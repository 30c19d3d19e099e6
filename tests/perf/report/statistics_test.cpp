#include "report/statistics.hpp"

#include <gtest/gtest.h>

#include <random>

namespace weft::perf {
namespace {

TEST(Statistics, Median) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 3}), 3);
  EXPECT_EQ(median({1, 4, 2, 9}), 3);
}

TEST(Statistics, RatioOfEqualPairsHasNoWidth) {
  const std::vector<double> a{2, 4, 8}, b{1, 2, 4};
  const Interval ratio = paired_ratio(a, b);
  EXPECT_EQ(ratio.low, 2);
  EXPECT_EQ(ratio.middle, 2);
  EXPECT_EQ(ratio.high, 2);
}

/// With three ratios a resample's median is the least one with the probability 7/27: beyond 2.5 %.
TEST(Statistics, IntervalSpansWhatResamplesReach) {
  const std::vector<double> a{1, 2, 3}, b{1, 1, 1};
  const Interval ratio = paired_ratio(a, b);
  EXPECT_EQ(ratio.low, 1);
  EXPECT_EQ(ratio.middle, 2);
  EXPECT_EQ(ratio.high, 3);
}

/// Of nine values the median lies between the 2nd and the 8th with 96 % confidence, as the binomial
/// distribution has it.
TEST(Statistics, IntervalOfNineValues) {
  std::vector<double> a, b(9, 1);
  for (int i = 1; i <= 9; ++i) a.push_back(i);
  const Interval ratio = paired_ratio(a, b);
  EXPECT_GE(ratio.low, 2);
  EXPECT_LE(ratio.low, 3);
  EXPECT_EQ(ratio.middle, 5);
  EXPECT_GE(ratio.high, 7);
  EXPECT_LE(ratio.high, 8);
  const Interval wider = paired_ratio(a, b, 0.999);
  EXPECT_LE(wider.low, 2);
  EXPECT_GE(wider.high, 8);
}

/// By the tables of Mann and Whitney.
TEST(RankTest, KnownChances) {
  using List = std::vector<double>;
  EXPECT_DOUBLE_EQ(rank_test(List{1, 2, 3, 4, 5}, List{6, 7, 8, 9, 10}), 2.0 / 252);
  EXPECT_DOUBLE_EQ(rank_test(List{6, 7, 8, 9, 10}, List{1, 2, 3, 4, 5}), 2.0 / 252);
  EXPECT_DOUBLE_EQ(rank_test(List{1, 2, 3, 5}, List{4, 6, 7, 8}), 4.0 / 70);
  EXPECT_DOUBLE_EQ(rank_test(List{1, 4}, List{2, 3}), 1);
  EXPECT_DOUBLE_EQ(rank_test(List{7, 7, 7}, List{7, 7, 7, 7}), 1);
  // Of the 10 choices of 2 of the ranks 2, 2, 2, 4.5, 4.5, 3 have the sum 4 and 1 has 9; the rest
  // is nearer to the mean of 6.
  EXPECT_DOUBLE_EQ(rank_test(List{5, 5}, List{1, 1, 1}), 1.0 / 10);
  EXPECT_DOUBLE_EQ(rank_test(List{1, 1}, List{1, 5, 5}), 4.0 / 10);
  EXPECT_EQ(rank_test(List{}, List{1}), 1);
}

TEST(RankTest, TheLeastChanceIsThatOfNoOverlap) {
  for (const std::size_t runs : {1U, 2U, 5U, 8U, 20U}) {
    std::vector<double> low, high;
    for (std::size_t i = 0; i < runs; ++i)
      low.push_back(double(i)), high.push_back(double(100 + i));
    EXPECT_NEAR(rank_test(low, high) / least_rank_test(runs, runs), 1, 1e-9) << runs;
  }
  EXPECT_DOUBLE_EQ(least_rank_test(5, 5), 2.0 / 252);
  EXPECT_DOUBLE_EQ(least_rank_test(3, 4), least_rank_test(4, 3));
  EXPECT_EQ(least_rank_test(0, 9), 1);
}

/// With many values as well, where the normal distribution takes the place of the exact test.
TEST(RankTest, FalseAlarmsAreAsRareAsItSays) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> noise(0, 0.5);
  constexpr int trials = 20'000;
  for (const std::size_t runs : {6U, 30U}) {
    int alarms = 0;
    for (int trial = 0; trial < trials; ++trial) {
      std::vector<double> a(runs), b(runs);
      for (double& value : a) value = noise(random);
      for (double& value : b) value = noise(random);
      alarms += rank_test(a, b) <= 0.05 ? 1 : 0;
    }
    EXPECT_LE(alarms, trials * 0.055) << runs;
    EXPECT_GE(alarms, trials * 0.03) << runs;
  }
}

TEST(Statistics, NothingIsNoRatio) {
  EXPECT_EQ(paired_ratio({}, {}).middle, 0);
  EXPECT_EQ(paired_ratio(std::vector<double>{1}, std::vector<double>{0}).middle, 0);
}

/// The interval holds the true ratio about as often as it says.
TEST(Statistics, IntervalHoldsTheTruth) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(1.25, 0.1);
  int held = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> a(15), b(15, 1);
    for (double& value : a) value = noise(random);
    const Interval ratio = paired_ratio(a, b);
    held += ratio.low <= 1.25 && ratio.high >= 1.25 ? 1 : 0;
  }
  EXPECT_GE(held, 180);
  EXPECT_LT(held, 200);
}

}  // namespace
}  // namespace weft::perf
