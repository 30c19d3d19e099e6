// A figure that was measured several times.
#pragma once

#include <algorithm>
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

}  // namespace weft::perf
