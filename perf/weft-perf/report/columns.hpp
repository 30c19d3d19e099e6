// The figures of a point as text, column by column.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/summary.hpp"

namespace weft::perf {

/// One column of the table and of the report.
struct Column {
  std::string name;
  std::size_t width = 0;  ///< What most of its figures take.
  unsigned rank = 0;      ///< 0: never left out; the greater, the sooner.
  std::function<std::string(const PointResult&, const Summary&)> text;
};

/// Of ratios, the middle alone or with its interval.
enum class Ratios : std::uint8_t { middles, intervals };

/// In the order in which they stand.
std::vector<Column> columns_of(const std::vector<std::string>& baselines,
                               Ratios ratios = Ratios::intervals);

/// "shm write 64.00 KiB, window 4".
std::string label_of(const PointResult& result);

/// What has to be said of a point besides its figures, a sentence each.
std::vector<std::string> remarks_on(const PointResult& result, const Summary& sum);

/// What those columns mean, and what on these machines may have been in the way; a paragraph each.
std::vector<std::string> explanations(const std::vector<Column>& columns,
                                      const std::vector<PointResult>& results,
                                      const Json& machines);

/// The baselines of any of the results, in the order of their columns.
std::vector<std::string> baselines_of(const std::vector<PointResult>& results);

}  // namespace weft::perf
