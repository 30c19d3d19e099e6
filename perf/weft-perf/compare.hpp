// What has changed between two documents of results, beyond noise.
#pragma once

#include <string>
#include <vector>

#include "results.hpp"

namespace weft::perf {

enum class Verdict : std::uint8_t {
  same,  ///< Within noise, or by less than the threshold.
  better,
  worse,
  unknown,  ///< Too few runs to tell.
};

/// One figure of one point.
struct Change {
  std::string point, figure;
  Verdict verdict = Verdict::unknown;
  Interval ratio;  ///< New by old, with 99 % confidence.
};

struct Comparison {
  std::vector<Change> changes;
  std::size_t unmatched = 0;  ///< New points that the old document lacks.
  bool other_machine = false;
  bool regressed() const;
};

/// Points that are the same in every setting: GB/s, and the runs' p50 and p99. A figure has changed
/// if the interval of its ratio excludes 1, and its median differs by more than `threshold`.
/// Figures with fewer than 4 runs on either side are not judged. `protocol_mismatch` for documents
/// that read_document() would not have taken.
Result<Comparison> compare(const Json& old_results, const Json& new_results, double threshold);

std::string text_of(const Comparison& comparison);

}  // namespace weft::perf
