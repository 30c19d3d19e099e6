#include "statistics.hpp"

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

TEST(Statistics, UnpairedRatio) {
  const std::vector<double> fast{10, 11, 12, 13, 14}, slow{5, 5.5, 6, 6.5, 7};
  const Interval ratio = unpaired_ratio(fast, slow, 0.99);
  EXPECT_EQ(ratio.middle, 2);
  EXPECT_GT(ratio.low, 1.4);
  EXPECT_LT(ratio.high, 2.8);
  EXPECT_GT(ratio.high, ratio.low);
  const Interval again = unpaired_ratio(fast, slow, 0.99);
  EXPECT_EQ(again.low, ratio.low);  // The random numbers are the same every time.
}

TEST(Statistics, NothingIsNoRatio) {
  EXPECT_EQ(paired_ratio({}, {}).middle, 0);
  EXPECT_EQ(unpaired_ratio({}, std::vector<double>{1}).middle, 0);
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
