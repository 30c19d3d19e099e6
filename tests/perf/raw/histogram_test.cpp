#include "raw/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace weft::perf {
namespace {

TEST(Histogram, IsEmptyAtFirst) {
  const Histogram none;
  EXPECT_EQ(none.count(), 0U);
  EXPECT_EQ(none.quantile(0.99).count(), 0);
  EXPECT_EQ(none.greatest().count(), 0);
  EXPECT_EQ(none.mean(), 0);
  EXPECT_TRUE(none.buckets().empty());
}

/// Each value alone is told within the bound, at all magnitudes and around powers of two.
TEST(Histogram, KeepsItsErrorBound) {
  for (unsigned power = 0; power < 63; ++power) {
    for (const std::int64_t beside : {-1, 0, 1, 12345}) {
      const std::int64_t value = (std::int64_t{1} << power) + beside;
      if (value < 0) continue;
      Histogram histogram;
      histogram.add(Nanoseconds(value));
      histogram.add(Nanoseconds(std::numeric_limits<std::int64_t>::max()));
      const auto told = static_cast<double>(histogram.quantile(0.5).count());
      EXPECT_GE(told, static_cast<double>(value)) << value;
      EXPECT_LE(told, static_cast<double>(value) * (1 + Histogram::error_bound) + 0.5) << value;
    }
  }
}

/// Beside the quantiles of the sorted values themselves, with a long tail.
TEST(Histogram, AgreesWithSortedValues) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> spread(10, 2);
  std::vector<std::int64_t> values;
  Histogram all, first, second;
  for (int i = 0; i < 100'000; ++i) {
    values.push_back(static_cast<std::int64_t>(spread(random)));
    all.add(Nanoseconds(values.back()));
    (i % 3 == 0 ? first : second).add(Nanoseconds(values.back()));
  }
  std::sort(values.begin(), values.end());
  first.add(second);
  EXPECT_EQ(first.buckets(), all.buckets());
  EXPECT_EQ(first.count(), values.size());
  EXPECT_EQ(first.greatest().count(), values.back());
  for (const double share : {0.0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 0.99999, 1.0}) {
    const auto rank = static_cast<std::size_t>(
        std::max(1.0, std::ceil(share * static_cast<double>(values.size()))));
    const auto exact = static_cast<double>(values[rank - 1]);
    const auto told = static_cast<double>(all.quantile(share).count());
    EXPECT_GE(told, exact) << share;
    EXPECT_LE(told, exact * (1 + Histogram::error_bound)) << share;
  }
}

TEST(Histogram, NeverExceedsTheGreatest) {
  Histogram histogram;
  histogram.add(Nanoseconds(1'000'001));
  EXPECT_EQ(histogram.quantile(0.5).count(), 1'000'001);
  histogram.add(Nanoseconds(-5));  // A clock of two cores.
  EXPECT_EQ(histogram.quantile(0.5).count(), 0);
}

TEST(Histogram, IsMadeAgainOfWhatItTells) {
  Histogram histogram;
  std::uint64_t value = 1;
  for (int i = 0; i < 1000; ++i, value = value * 37 % 1'000'003)
    histogram.add(Nanoseconds(static_cast<Nanoseconds::rep>(value * value)));
  const Histogram again(histogram.buckets(), histogram.greatest(), histogram.mean());
  EXPECT_EQ(again.buckets(), histogram.buckets());
  EXPECT_EQ(again.count(), 1000U);
  EXPECT_EQ(again.greatest(), histogram.greatest());
  EXPECT_DOUBLE_EQ(again.mean(), histogram.mean());
  for (const double share : {0.01, 0.5, 0.99, 1.0})
    EXPECT_EQ(again.quantile(share), histogram.quantile(share));
  EXPECT_EQ(Histogram({}, Nanoseconds(0), 0).count(), 0U);
}

}  // namespace
}  // namespace weft::perf
