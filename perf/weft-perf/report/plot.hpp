// Bandwidth and latency against size, drawn by gnuplot.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure/point_result.hpp"

namespace weft::perf {

enum class Picture : std::uint8_t { svg, png };

/// What gnuplot draws: bandwidth above, latency below, over logarithmic axes. Points that differ in
/// size alone are one series. A series has one colour; the points' shape says whether a curve is
/// Weft's or a baseline's, and dashes which quantile it is.
std::string plot_script(const std::vector<PointResult>& results, Picture picture);

/// What a file of that name should hold; nothing for other names than *.svg and *.png.
std::optional<Picture> picture_of(const std::string& path);

/// Whether pictures of that kind can be drawn. `not_found` without gnuplot.
Result<void> check_drawing(Picture picture);

/// The file's bytes. `not_found` without gnuplot.
Result<std::string> plot(const std::vector<PointResult>& results, Picture picture);

}  // namespace weft::perf
