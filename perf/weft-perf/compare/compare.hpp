// What has changed between two documents of results, beyond noise.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/layout.hpp"
#include "workload/point.hpp"

namespace weft::perf {

enum class Verdict : std::uint8_t {
  same,  ///< Within noise, or by less than the threshold.
  better,
  worse,
  unknown,  ///< Too few runs to tell, whatever they are, or no ratio.
};

/// GB/s, and the runs' p50 and p99.
constexpr std::size_t figures_of_a_point = 3;

/// One figure of one point.
struct Change {
  std::string point, figure;
  bool more_is_better = true;
  Verdict verdict = Verdict::unknown;
  std::optional<double> ratio;  ///< Of the medians, new by old; none if the old one is 0.
  double chance = 1;            ///< rank_test() of the runs.
  double least_chance = 1;      ///< What that can come to for as many runs.
};

struct Comparison {
  std::vector<Change> changes;
  std::size_t unmatched = 0;                  ///< New points that the old document lacks.
  std::size_t gone = 0;                       ///< Old points that the new document lacks.
  std::size_t fewest_runs = ~std::size_t{0};  ///< Of a point, on either side.
  bool other_machine = false;
  bool other_environment = false;
  bool other_settings = false;  ///< Of the runs: how long, after what warm-up, verified or not.
  bool regressed() const;
  /// Whether any figure could be judged.
  bool tells() const;
};

/// Points that are the same in every setting: GB/s, and the runs' p50 and p99. A figure has changed
/// if a rank test of its runs says so, and its median differs by more than `threshold`. The chance
/// that any figure is named although nothing has changed is 1 % for all together (Holm), if runs
/// are independent of each other. Figures with too few runs for that are not judged.
/// `protocol_mismatch` for documents that read_document() would not have taken.
Result<Comparison> compare(const Json& old_results, const Json& new_results, double threshold);

/// Why results can't be what others are compared with, or planned by: their sweep failed, or bytes
/// were wrong. `name`: of the file.
Result<void> check_baseline(const Json& results, const std::string& name);

/// On both sides, to tell a change of any one of so many figures.
std::size_t runs_needed(std::size_t figures);

/// In lines of `width`.
std::string text_of(const Comparison& comparison, std::size_t width = tool::line_width());

}  // namespace weft::perf
