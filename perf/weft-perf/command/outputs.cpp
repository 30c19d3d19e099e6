#include "command/outputs.hpp"

#include <fmt/format.h>

#include "command/outcome.hpp"
#include "common/replace_file.hpp"
#include "report/csv.hpp"
#include "report/html.hpp"
#include "report/plot.hpp"

namespace weft::perf {
namespace {

constexpr const char* standard_output = "-";

Result<void> write(const std::string& path, const std::string& text) {
  if (path != standard_output) return tool::replace_file(path, text);
  fmt::print("{}", text);
  return {};
}

}  // namespace

bool takes_standard_output(const Options& options) {
  return options.json == standard_output || options.csv == standard_output;
}

Result<void> check_outputs(const Options& options) {
  for (const std::string& path : {options.json, options.csv, options.plot, options.html})
    if (!path.empty() && path != standard_output)
      if (auto checked = tool::check_replaceable(path); !checked) return checked;
  if (const auto picture = picture_of(options.plot))
    if (auto checked = check_drawing(*picture); !checked) return checked;
  return options.html.empty() ? Result<void>() : check_drawing(Picture::svg);
}

bool write_results(const Options& options, const Json& results,
                   const std::vector<PointResult>& points) {
  bool all = true;
  const auto written = [&](const Result<void>& result) {
    if (!result) say(result.error().message());
    all = all && result;
  };
  if (!options.json.empty()) written(write(options.json, results.dump(2) + "\n"));
  if (!options.csv.empty())
    written(write(options.csv, csv(points, results.at("settings"), results.at("machines"))));
  if (const auto picture = picture_of(options.plot))
    written(plot(points, *picture).and_then([&](const std::string& drawn) {
      return tool::replace_file(options.plot, drawn);
    }));
  if (!options.html.empty())
    written(plot(points, Picture::svg).and_then([&](const std::string& drawn) {
      return tool::replace_file(options.html, html(points, drawn, results));
    }));
  return all;
}

}  // namespace weft::perf
