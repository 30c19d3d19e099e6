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
  /// `line`: a point, with an end of line. `look`: line and point of the curve, as gnuplot has it;
  /// empty: its own choice.
  void add(const std::string& name, const std::string& line, const std::string& look = {});
  bool empty() const noexcept { return all_.empty(); }
  /// Their data, under names that begin with `prefix`.
  std::string data(char prefix) const;
  /// The command that draws them: `how` is what stands between data and title, e.g. "using 1:2 with
  /// linespoints". `titles`: whether each has its name in the key.
  std::string plot(char prefix, std::string_view how, bool titles = true) const;

 private:
  struct Curve {
    std::string name;
    std::string lines;
    std::string look;
  };
  std::vector<Curve> all_;
};

/// Text as gnuplot wants it.
std::string in_quotes(std::string_view text);

/// `not_found` without gnuplot.
Result<void> check_gnuplot();

/// What gnuplot makes of a script. `not_found` without gnuplot.
Result<std::string> drawn_by_gnuplot(const std::string& script);

}  // namespace weft::perf
