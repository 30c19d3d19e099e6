#include "report/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

#include "common/units.hpp"
#include "report/curves.hpp"
#include "report/summary.hpp"
#include "report/title.hpp"

namespace weft::perf {
namespace {

constexpr unsigned picture_width = 1200;
constexpr unsigned least_height = 380;  // of one panel
constexpr unsigned key_line = 20;       // pixels that an entry of the key takes

/// The shape of a curve's points: filled, and open as of p99.
struct Shape {
  int filled = 0, open = 0;
};
/// Of Weft's own curves, and of baselines in the order of their names.
constexpr Shape weft_shape{7, 6},
    baseline_shapes[] = {{5, 4}, {9, 8}, {13, 12}, {11, 10}, {15, 14}, {3, 2}};
constexpr int no_point = -1;
constexpr const char* solid = "dt 1";
constexpr const char* dashed = "dt (8,6)";
constexpr std::size_t widest_name = 44;  // Keys with longer ones stand below their panel.

std::string terminal(Picture picture, unsigned height) {
  return fmt::format("set terminal {} size {},{} font 'DejaVu Sans,11' background rgb 'white'\n",
                     picture == Picture::png ? "pngcairo" : "svg", picture_width, height);
}

/// As different as can be: each series has a hue of its own, and every other one is darker.
std::string color(std::size_t index, std::size_t count) {
  constexpr const char* few[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                 "#e69f00", "#56b4e9", "#8c564b", "#444444"};
  if (count <= std::size(few)) return few[index];
  const double hue = static_cast<double>(index) / static_cast<double>(count) * 6;
  const double most = index % 2 == 0 ? 0.85 : 0.55;
  const auto channel = [&](double offset) {
    const double at = std::fmod(hue + offset, 6);
    return static_cast<int>(255 * most * std::clamp(std::abs(at - 3) - 1, 0.0, 1.0));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(4), channel(2));
}

std::string look(const std::string& color, int point, const char* dash, bool thick = false) {
  return fmt::format("lc rgb '{}' lw {} {} pt {} ps 0.8", color, thick ? 2 : 1, dash, point);
}

/// The values of an axis.
struct Extent {
  double least = std::numeric_limits<double>::max(), greatest = 0;

  void add(double value) {
    if (!(value > 0)) return;
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  /// With room around it, so that nothing is cut at the border, and some round values are in it.
  std::string range(const char* axis) const {
    const double room = greatest < 2 * least ? 2 : 1.3;
    return greatest > 0 ? fmt::format("set {}range [{}:{}]\n", axis, least / room, greatest * room)
                        : fmt::format("set {}range [1:10]\n", axis);
  }
};

/// A number at the round values of an axis: 1, 10, 100, and 2 and 5 between them where it is short.
template <typename Name>
std::string round_tics(const Extent& extent, Name&& name) {
  if (!(extent.greatest > 0)) return "unset ytics\n";
  const int first = static_cast<int>(std::floor(std::log10(extent.least))),
            last = static_cast<int>(std::ceil(std::log10(extent.greatest)));
  const std::vector<int> steps = last - first <= 2 ? std::vector{1, 2, 5} : std::vector{1};
  std::string tics;
  for (int exponent = first; exponent <= last; ++exponent)
    for (const int step : steps) {
      const double value = step * std::pow(10, exponent);
      tics += fmt::format("{}'{}' {}", tics.empty() ? "" : ", ", name(value), value);
    }
  return fmt::format("set ytics ({})\n", tics);
}

/// "10 us", "1 ms".
std::string time_name(double microseconds) {
  const auto [value, unit] = microseconds < 0.999   ? std::pair(microseconds * 1e3, "ns")
                             : microseconds < 999   ? std::pair(microseconds, "us")
                             : microseconds < 999e3 ? std::pair(microseconds / 1e3, "ms")
                                                    : std::pair(microseconds / 1e6, "s");
  return fmt::format("{:g} {}", value, unit);
}

/// "64 KiB", "1.5 MiB".
std::string size_name(std::uint64_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return fmt::format("{:.4g} {}", value, units[unit]);
}

/// Those of some sizes where all would not fit.
std::string size_tics(const std::set<std::uint64_t>& sizes) {
  constexpr std::size_t most = 10;
  const std::size_t step = (sizes.size() + most - 1) / most;
  std::string tics;
  std::size_t index = 0;
  for (const std::uint64_t size : sizes)
    if (index++ % step == 0)
      tics += fmt::format("{}'{}' {}", tics.empty() ? "" : ", ", size_name(size), size);
  return fmt::format("set xtics ({})\n", tics);
}

/// An entry of the key that stands for no curve by itself.
std::string key_entry(const std::string& name, const std::string& look) {
  return fmt::format(", NaN with linespoints {} title {} noenhanced", look, in_quotes(name));
}

/// All that is drawn, collected point by point.
class Plot {
 public:
  explicit Plot(const std::vector<PointResult>& results);
  std::string script(Picture picture) const;

 private:
  void add(const PointResult& result);
  void add_speed(std::uint64_t size, const std::string& curve, const Spread& gigabytes,
                 const std::string& look);
  void add_latency(std::uint64_t size, const std::string& curve, double nanoseconds,
                   const std::string& look);
  std::string color_of(const std::string& series) const;
  Shape shape_of(const std::string& baseline) const;
  std::string series_key() const;
  std::string baseline_key(const std::vector<std::string>& baselines) const;
  bool key_is_below() const;
  unsigned key_lines() const;
  unsigned panel_height() const;
  std::string key_place() const;

  std::vector<std::string> series_;
  std::vector<std::string> baselines_, timed_;  // all, and those that note latencies
  std::set<std::uint64_t> sizes_;
  Curves speeds_, latencies_;
  Extent size_extent_, speed_extent_, latency_extent_;
  bool has_ceiling_ = false;
};

std::string series_of(const PointResult& result) {
  return result.provider + " " + series_title(result.point);
}

template <typename Value>
void add_once(const Value& value, std::vector<Value>& values) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

Plot::Plot(const std::vector<PointResult>& results) {
  for (const PointResult& result : results) {
    if (result.runs.empty()) continue;
    add_once(series_of(result), series_);
    for (const auto& [baseline, values] : result.baselines) add_once(baseline, baselines_);
    for (const auto& [baseline, values] : result.latencies) add_once(baseline, timed_);
  }
  for (const PointResult& result : results)
    if (!result.runs.empty()) add(result);
}

void Plot::add(const PointResult& result) {
  const Summary sum = summarize(result);
  const std::uint64_t size = result.point.work.size;
  const std::string series = series_of(result), color = color_of(series);
  sizes_.insert(size);
  size_extent_.add(static_cast<double>(size));
  add_speed(size, series, sum.gigabytes, look(color, weft_shape.filled, solid, true));
  for (const auto& [baseline, values] : result.baselines) {
    const double middle = median(values);
    add_speed(size, series + " " + baseline, {middle, middle, middle},
              look(color, shape_of(baseline).filled, solid));
  }
  if (const double ceiling = result.runs.back().ceiling_gbps / 8; ceiling > 0) {
    has_ceiling_ = true;
    add_speed(size, "ceiling of " + result.provider, {ceiling, ceiling, ceiling},
              look("#000000", no_point, "dt (2,4)"));
  }
  const auto latencies = [&](const std::string& curve, Shape shape, double p50, double p99,
                             bool thick) {
    add_latency(size, curve + " p50", p50, look(color, shape.filled, solid, thick));
    add_latency(size, curve + " p99", p99, look(color, shape.open, dashed, thick));
  };
  latencies(series, weft_shape, static_cast<double>(sum.latency.quantile(0.5).count()),
            static_cast<double>(sum.latency.quantile(0.99).count()), true);
  for (const auto& [baseline, its] : result.latencies)
    latencies(series + " " + baseline, shape_of(baseline), median(its.p50), median(its.p99), false);
}

/// Where nothing was moved there is no place for it: both axes are logarithmic.
void Plot::add_speed(std::uint64_t size, const std::string& curve, const Spread& gigabytes,
                     const std::string& look) {
  if (!(gigabytes.median > 0)) return;
  const double least = gigabytes.least > 0 ? gigabytes.least : gigabytes.median;
  speeds_.add(
      curve, fmt::format("{} {} {} {}\n", size, gigabytes.median, least, gigabytes.greatest), look);
  speed_extent_.add(least);
  speed_extent_.add(gigabytes.greatest);
}

void Plot::add_latency(std::uint64_t size, const std::string& curve, double nanoseconds,
                       const std::string& look) {
  if (!(nanoseconds > 0)) return;
  latencies_.add(curve, fmt::format("{} {}\n", size, nanoseconds / 1e3), look);
  latency_extent_.add(nanoseconds / 1e3);
}

std::string Plot::color_of(const std::string& series) const {
  const auto at = std::find(series_.begin(), series_.end(), series) - series_.begin();
  return color(static_cast<std::size_t>(at), series_.size());
}

Shape Plot::shape_of(const std::string& baseline) const {
  const auto at = std::find(baselines_.begin(), baselines_.end(), baseline) - baselines_.begin();
  return baseline_shapes[static_cast<std::size_t>(at) % std::size(baseline_shapes)];
}

std::string Plot::series_key() const {
  std::string key;
  for (const std::string& series : series_)
    key += key_entry(series, look(color_of(series), weft_shape.filled, solid, true));
  return key;
}

std::string Plot::baseline_key(const std::vector<std::string>& baselines) const {
  std::string key;
  for (const std::string& baseline : baselines)
    key += key_entry(baseline + " (colour of its series)",
                     look("#000000", shape_of(baseline).filled, solid));
  return key;
}

bool Plot::key_is_below() const {
  return std::ranges::any_of(series_,
                             [](const std::string& name) { return name.size() > widest_name; });
}

/// Of an entry for each series, each baseline and what else there may be.
unsigned Plot::key_lines() const {
  return static_cast<unsigned>(series_.size() + baselines_.size() + 2);
}

unsigned Plot::panel_height() const {
  return key_is_below() ? least_height + key_line * key_lines()
                        : std::max(least_height, 90 + key_line * key_lines());
}

std::string Plot::key_place() const {
  if (!key_is_below()) return "set key outside right top vertical Left reverse samplen 3\n";
  constexpr unsigned axis_lines = 5;
  return fmt::format(
      "set key bmargin left vertical Left reverse samplen 3 maxcols 1\nset bmargin {}\n",
      key_lines() + axis_lines);
}

std::string Plot::script(Picture picture) const {
  const std::string ceiling =
      has_ceiling_ ? key_entry("ceiling of the path", look("#000000", no_point, "dt (2,4)")) : "";
  const std::string quantiles = key_entry("p50", look("#000000", weft_shape.filled, solid)) +
                                key_entry("p99", look("#000000", weft_shape.open, dashed));
  const auto drawn = [](const Curves& curves, char prefix, const char* how,
                        const std::string& key) {
    if (curves.empty()) return std::string("plot NaN notitle\n");
    std::string text = curves.plot(prefix, how, false);
    text.pop_back();
    return text + key + "\n";
  };
  return fmt::format(
      "{}{}{}"
      "set logscale xy\nset grid\nset bars small\n{}{}{}"
      "set multiplot layout 2,1\n"
      "set title 'Bandwidth'\nset ylabel 'GB/s (10^9 bytes)' noenhanced\n"
      "set xlabel 'size of an operation'\n{}{}{}"
      "set title 'Latency'\nset ylabel 'time of an operation'\n{}{}{}"
      "unset multiplot\n",
      terminal(picture, 2 * panel_height()), speeds_.data('s'), latencies_.data('l'), key_place(),
      size_tics(sizes_), size_extent_.range("x"), speed_extent_.range("y"),
      round_tics(speed_extent_, [](double value) { return fmt::format("{:g}", value); }),
      drawn(speeds_, 's', "using 1:2:3:4 with yerrorlines",
            series_key() + baseline_key(baselines_) + ceiling),
      latency_extent_.range("y"), round_tics(latency_extent_, time_name),
      drawn(latencies_, 'l', "using 1:2 with linespoints",
            series_key() + baseline_key(timed_) + quantiles));
}

}  // namespace

std::string plot_script(const std::vector<PointResult>& results, Picture picture) {
  return Plot(results).script(picture);
}

std::optional<Picture> picture_of(const std::string& path) {
  if (path.ends_with(".svg")) return Picture::svg;
  if (path.ends_with(".png")) return Picture::png;
  return std::nullopt;
}

Result<void> check_drawing(Picture picture) {
  return drawn_by_gnuplot(terminal(picture, least_height) + "plot 0\n").map([](const std::string&) {
  });
}

Result<std::string> plot(const std::vector<PointResult>& results, Picture picture) {
  return drawn_by_gnuplot(plot_script(results, picture));
}

}  // namespace weft::perf
