// What several measurements of one thing come to.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "report/spread.hpp"

namespace weft::perf {

/// Where a figure lies, with a confidence.
struct Interval {
  double low = 0, middle = 0, high = 0;
};

/// Of the median of `a[i] / b[i]`, for values measured in pairs: what drifts hits both of a pair.
/// By the percentile bootstrap, whose random numbers are the same every time.
Interval paired_ratio(std::span<const double> a, std::span<const double> b,
                      double confidence = 0.95);

/// How likely values that were measured apart differ as much in rank as `a` and `b`, or more, if
/// nothing but chance parts them: the two-sided test of Mann and Whitney, which asks nothing of how
/// values are distributed. Exact, equal values included, for up to 50 values in all.
double rank_test(std::span<const double> a, std::span<const double> b);

/// The least that rank_test() can come to for so many values: fewer can't show a rarer difference.
double least_rank_test(std::size_t a, std::size_t b);

}  // namespace weft::perf
