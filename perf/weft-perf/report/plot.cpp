#include "report/plot.hpp"

#include <fmt/format.h>

#include "report/curves.hpp"

namespace weft::perf {
namespace {

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char each : text) {
    if (each == '<')
      safe += "&lt;";
    else if (each == '&')
      safe += "&amp;";
    else
      safe += each;
  }
  return safe;
}

std::string terminal(Picture picture) {
  return fmt::format("set terminal {} size 1400,600 background rgb 'white'\n",
                     picture == Picture::png ? "pngcairo" : "svg");
}

}  // namespace

std::string plot_script(const std::vector<PointResult>& results, Picture picture) {
  Curves speeds, latencies;
  for (const PointResult& result : results) {
    if (result.runs.empty()) continue;
    const Summary sum = summarize(result);
    const std::uint64_t size = result.point.work.size;
    const std::string name = result.provider + " " + series_title(result.point);
    // Where nothing was moved there is no place for it: both axes are logarithmic.
    const auto add_speed = [&](const std::string& of, const Spread& gigabytes) {
      if (gigabytes.median > 0)
        speeds.add(of, fmt::format("{} {} {} {}\n", size, gigabytes.median, gigabytes.least,
                                   gigabytes.greatest));
    };
    const auto add_latency = [&](const std::string& of, double nanoseconds) {
      if (nanoseconds > 0) latencies.add(of, fmt::format("{} {}\n", size, nanoseconds / 1e3));
    };
    add_speed(name, sum.gigabytes);
    for (const auto& [baseline, values] : result.baselines) {
      const double middle = median(values);
      add_speed(baseline + " for " + name, {middle, middle, middle});
    }
    const double ceiling = result.runs.back().ceiling_gbps / 8;
    add_speed("ceiling of " + result.provider, {ceiling, ceiling, ceiling});
    add_latency(name + " p50", static_cast<double>(sum.latency.quantile(0.5).count()));
    add_latency(name + " p99", static_cast<double>(sum.latency.quantile(0.99).count()));
    for (const auto& [baseline, its] : result.latencies) {
      add_latency(baseline + " for " + name + " p50", median(its.p50));
      add_latency(baseline + " for " + name + " p99", median(its.p99));
    }
  }
  return fmt::format(
      "{}{}{}"
      "set logscale x 2\nset logscale y\nset format x '%.0b %BB'\nset grid\n"
      "set key outside below\nset xlabel 'bytes of an operation'\n"
      "set multiplot layout 1,2\n"
      "set ylabel 'GB/s (10^9 bytes)'\n{}"
      "set ylabel 'latency, us'\n{}"
      "unset multiplot\n",
      terminal(picture), speeds.data('s'), latencies.data('l'),
      speeds.plot('s', "using 1:2:3:4 with yerrorlines"),
      latencies.plot('l', "using 1:2 with linespoints"));
}

Picture picture_of(const std::string& path) {
  return path.ends_with(".png") ? Picture::png : Picture::svg;
}

Result<void> check_drawing(Picture picture) {
  return drawn_by_gnuplot(terminal(picture) + "plot 0\n").map([](const std::string&) {});
}

Result<std::string> plot(const std::vector<PointResult>& results, Picture picture) {
  return drawn_by_gnuplot(plot_script(results, picture));
}

std::string html(const std::vector<PointResult>& results, const std::string& picture,
                 const Json& document) {
  std::vector<std::string> names;
  std::string rows;
  for (const PointResult& result : results) {
    if (result.runs.empty()) continue;
    if (names.empty())
      for (const auto& [name, values] : result.baselines) names.push_back(name);
    rows += table_row(result);
  }
  // "</script>" must not come up within.
  std::string data = document.dump(2);
  for (std::size_t at = 0; (at = data.find("</", at)) != data.npos; at += 3)
    data.replace(at, 2, "<\\/");
  const std::size_t svg = picture.find("<svg");
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">"
      "<title>weft-perf</title></head>\n<body>\n<h1>weft-perf</h1>\n{}\n<pre>{}{}{}</pre>\n"
      "<h2>Machines and settings</h2>\n<pre>{}\n{}</pre>\n"
      "<script type=\"application/json\" id=\"results\">\n{}\n</script>\n</body>\n</html>\n",
      svg == picture.npos ? "" : picture.substr(svg), escaped(table_head(names)), escaped(rows),
      escaped(table_foot(results, document.at("machines"))),
      escaped(document.at("machines").dump(2)), escaped(document.at("settings").dump(2)), data);
}

}  // namespace weft::perf
