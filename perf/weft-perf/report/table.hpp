// The table for people, a line for each point.
#pragma once

#include <string>
#include <vector>

#include "report/columns.hpp"

namespace weft::perf {

class Table {
 public:
  /// For those points beside those baselines. Columns that do not fit lines of `width` are left
  /// out, the least important first.
  Table(const std::vector<Point>& points, const std::vector<std::string>& baselines,
        std::size_t width);

  std::string head() const;
  std::string row(const PointResult& result) const;
  /// What the columns mean, and what is not in them.
  std::string foot(const std::vector<PointResult>& results, const Json& machines) const;

 private:
  std::size_t width_;
  std::size_t label_width_ = 0;
  std::vector<Column> columns_;
  std::vector<std::string> left_out_;
};

}  // namespace weft::perf
