// Bandwidth and latency against size, drawn by gnuplot.
#pragma once

#include <string>

#include "report/results.hpp"

namespace weft::perf {

enum class Picture : std::uint8_t { svg, png };

/// What gnuplot draws: a line for each series of points that differ in size alone, one for each
/// baseline and each ceiling, over logarithmic axes.
std::string plot_script(const std::vector<PointResult>& results, Picture picture);

/// What a file of that name should hold: PNG where it ends with .png.
Picture picture_of(const std::string& path);

/// Whether pictures of that kind can be drawn. `not_found` without gnuplot.
Result<void> check_drawing(Picture picture);

/// The file's bytes. `not_found` without gnuplot.
Result<std::string> plot(const std::vector<PointResult>& results, Picture picture);

/// A report that is one file: the picture, the table, the machines, and the whole document.
std::string html(const std::vector<PointResult>& results, const std::string& picture,
                 const Json& document);

}  // namespace weft::perf
