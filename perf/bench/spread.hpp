// A figure that was measured several times.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace weft::perf {

/// Median, least and greatest.
struct Spread {
  double median = 0, least = 0, greatest = 0;
};

inline Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

/// The median, and bounds that hold the true one in 19 of 20 cases.
struct MedianInterval {
  double median = 0, low = 0, high = 0;
};

inline MedianInterval median_interval_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  // By rank: how many of them lie below the true one is binomial.
  const double half = 0.98 * std::sqrt(count);
  const auto at = [&](double rank) {
    return values[static_cast<std::size_t>(std::clamp(rank, 0.0, count - 1))];
  };
  return {values[values.size() / 2], at(std::floor(count / 2 - half)),
          at(std::ceil(count / 2 + half))};
}

}  // namespace weft::perf
