// What several measurements of one thing come to.
#pragma once

#include <span>
#include <vector>

namespace weft::perf {

/// Of an even number of values, the mean of the middle two. 0 of none.
double median(std::vector<double> values);

/// Where a figure lies, with a confidence.
struct Interval {
  double low = 0, middle = 0, high = 0;
};

/// Of the median of `a[i] / b[i]`, for values measured in pairs: what drifts hits both of a pair.
/// By the percentile bootstrap, whose random numbers are the same every time.
Interval paired_ratio(std::span<const double> a, std::span<const double> b,
                      double confidence = 0.95);

/// Of the median of `a` by the median of `b`, for values that were measured apart.
Interval unpaired_ratio(std::span<const double> a, std::span<const double> b,
                        double confidence = 0.95);

}  // namespace weft::perf
