// A figure that was measured several times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace weft::tool {

/// Of an even number of values, the mean of the middle two. 0 of none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Median, least and greatest.
struct Spread {
  double median = 0, least = 0, greatest = 0;
};

/// All 0 of none.
inline Spread spread_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  return {median(values), *least, *greatest};
}

}  // namespace weft::tool
