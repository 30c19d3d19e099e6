// Figures as curves, drawn by gnuplot.
#pragma once

#include <string>
#include <string_view>
#include <vector>
#include <weft/error.hpp>

namespace weft::perf {

/// The points of each curve as gnuplot reads them, in the order in which the curves' names come
/// first.
class Curves {
 public:
  /// `line`: a point, with an end of line.
  void add(const std::string& name, const std::string& line);
  /// Their data, under names that begin with `prefix`.
  std::string data(char prefix) const;
  /// The command that draws them: `how` is what stands between data and title, e.g. "using 1:2 with
  /// linespoints".
  std::string plot(char prefix, std::string_view how) const;

 private:
  struct Curve {
    std::string name;
    std::string lines;
  };
  std::vector<Curve> all_;
};

/// `not_found` without gnuplot.
Result<void> check_gnuplot();

/// What gnuplot makes of a script. `not_found` without gnuplot.
Result<std::string> drawn_by_gnuplot(const std::string& script);

}  // namespace weft::perf
