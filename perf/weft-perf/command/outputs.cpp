#include "command/outputs.hpp"

#include "command/outcome.hpp"
#include "common/output.hpp"
#include "report/csv.hpp"
#include "report/html.hpp"
#include "report/plot.hpp"

namespace weft::perf {

bool takes_standard_output(const Options& options) {
  return options.json == tool::standard_output || options.csv == tool::standard_output;
}

Result<void> check_outputs(const Options& options) {
  for (const std::string& path : {options.json, options.csv, options.plot, options.html})
    if (!path.empty())
      if (auto checked = tool::check_output(path); !checked) return checked;
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
  if (!options.json.empty()) written(tool::write_output(options.json, results.dump(2) + "\n"));
  if (!options.csv.empty())
    written(tool::write_output(options.csv,
                               csv(points, results.at("settings"), results.at("machines"))));
  if (const auto picture = picture_of(options.plot))
    written(plot(points, *picture).and_then([&](const std::string& drawn) {
      return tool::write_output(options.plot, drawn);
    }));
  if (!options.html.empty())
    written(plot(points, Picture::svg).and_then([&](const std::string& drawn) {
      return tool::write_output(options.html, html(points, drawn, results));
    }));
  return all;
}

}  // namespace weft::perf
