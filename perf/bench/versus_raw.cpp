// The engine and a plain libfabric loop in turn, so that drift of the machine hits both alike.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench.hpp"
#include "raw/loop.hpp"
#include "raw/process.hpp"
#include "report/spread.hpp"
#include "shared/engine_loop.hpp"
#include "shared/options.hpp"

namespace {

using weft::Result;
using weft::perf::EngineConfig;
using weft::perf::RawConfig;
using weft::perf::Spread;
using weft::perf::spread_of;

struct Options {
  std::vector<std::string> providers{"tcp", "shm"};
  std::vector<std::size_t> sizes;
  std::vector<unsigned> windows{1, 2, 4, 8};
  unsigned repeats = 7;
  weft::Direction operation = weft::Direction::write;
  bool json = false;
  EngineConfig engine;
};

Result<double> run_raw_once(const Options& options, const std::string& provider, std::size_t size,
                            unsigned window) {
  RawConfig config;
  config.provider = provider == "tcp" ? "net" : provider;
  if (options.operation == weft::Direction::read) config.operation = weft::perf::RawOperation::read;
  config.size = size;
  config.window = window;
  config.endpoint_window = window;
  config.max_ms = std::chrono::ceil<std::chrono::milliseconds>(options.engine.time).count();
  return weft::perf::run_raw(config).map(
      [](const weft::perf::RawResult& result) { return result.gigabytes_per_second; });
}

/// Rounds by window: transfers in flight.
using Series = std::map<unsigned, std::vector<double>>;

struct Point {
  Series engine, raw;
};

Result<void> one_round(const Options& options, const std::string& provider, std::size_t size,
                       Point& point) {
  for (const unsigned window : options.windows) {
    auto raw = run_raw_once(options, provider, size, window);
    if (!raw) return weft::fail(std::move(raw.error()));
    point.raw[window].push_back(*raw);
    EngineConfig config = options.engine;
    config.provider = provider;
    config.size = size;
    config.window = window;
    config.read = options.operation == weft::Direction::read;
    auto engine = weft::perf::run_engine(config);
    if (!engine) return weft::fail(std::move(engine.error()));
    point.engine[window].push_back(engine->gigabytes_per_second);
  }
  return {};
}

Series::const_iterator best_of(const Series& series) {
  return std::max_element(series.begin(), series.end(), [](const auto& a, const auto& b) {
    return spread_of(a.second).median < spread_of(b.second).median;
  });
}

/// Each side with the window at which its median is best.
nlohmann::json judge(const std::string& provider, std::size_t size, const Point& point) {
  const auto best_raw = best_of(point.raw), best_engine = best_of(point.engine);
  std::vector<double> ratios;
  for (std::size_t round = 0; round < best_engine->second.size(); ++round)
    ratios.push_back(best_engine->second[round] / best_raw->second[round]);
  const Spread engine = spread_of(best_engine->second), raw = spread_of(best_raw->second);
  const Spread ratio = spread_of(ratios);
  return {{"provider", provider},
          {"size", size},
          {"raw_window", best_raw->first},
          {"engine_window", best_engine->first},
          {"raw", {raw.median, raw.least, raw.greatest}},
          {"engine", {engine.median, engine.least, engine.greatest}},
          {"ratio_of_medians", engine.median / raw.median},
          {"ratio_by_round", {ratio.median, ratio.least, ratio.greatest}}};
}

void print(const nlohmann::json& row) {
  const auto triple = [](const nlohmann::json& values) {
    return fmt::format("{:.2f} ({:.2f}-{:.2f})", values[0].get<double>(), values[1].get<double>(),
                       values[2].get<double>());
  };
  fmt::print("{:<4} {:>9}  {:>20} w{}  {:>20} w{}  {:>5.2f}  {:>20}\n",
             row["provider"].get<std::string>(), row["size"].get<std::size_t>(), triple(row["raw"]),
             row["raw_window"].get<unsigned>(), triple(row["engine"]),
             row["engine_window"].get<unsigned>(), row["ratio_of_medians"].get<double>(),
             triple(row["ratio_by_round"]));
  std::fflush(stdout);
}

Result<nlohmann::json> run(const Options& options) {
  nlohmann::json rows = nlohmann::json::array();
  for (const std::string& provider : options.providers) {
    std::vector<Point> points(options.sizes.size());
    for (unsigned round = 0; round < options.repeats; ++round)
      for (std::size_t i = 0; i < points.size(); ++i)
        if (auto ran = one_round(options, provider, options.sizes[i], points[i]); !ran)
          return weft::fail(std::move(ran.error()));
    for (std::size_t i = 0; i < points.size(); ++i) {
      rows.push_back(judge(provider, options.sizes[i], points[i]));
      if (!options.json) print(rows.back());
    }
  }
  return rows;
}

}  // namespace

int weft::perf::bench::versus_raw(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Compares the engine with the best plain libfabric loop over one endpoint: GB/s (10^9 bytes) "
      "as median (least-greatest) of interleaved rounds, FI_DELIVERY_COMPLETE on both."};
  for (std::size_t size = 64 << 10; size <= 64 << 20; size *= 4) options.sizes.push_back(size);
  OptionGroup group(app, "Options");
  add_providers(group, options.providers, "tcp, shm");
  group.choice("--operation", options.operation, tool::direction_names, "What is measured")
      ->default_str("write");
  add_sizes(group, options.sizes);
  add_windows(group, options.windows, "Transfers in flight: each is tried, the best counts");
  add_repeats(group, options.repeats);
  add_time(group, options.engine.time);
  add_engine_progress(group, options.engine.manual);
  group
      .number("--rails", options.engine.rails, Multiples::decimal, {},
              "Rails of the engine; 0: automatic")
      ->default_str("0");
  group
      .number("--chunk", options.engine.chunk, Multiples::binary, {},
              "Largest operation of a rail, in bytes; 0: automatic")
      ->default_str("0");
  group
      .number("--rail-window", options.engine.rail_window, Multiples::decimal, {},
              "Operations in flight on a rail; 0: automatic")
      ->default_str("0");
  app.add_flag("--json", options.json, "Print JSON");
  if (const auto code = parse(app, argc, argv)) return *code;

  if (!options.json)
    fmt::print("{:<4} {:>9}  {:>20} {:2}  {:>20}  {:>5}  {:>20}\n", "", "bytes", "raw", "",
               "engine", "ratio", "ratio by round");
  const auto rows = run(options);
  if (!rows) {
    fmt::print(stderr, "weft-bench versus-raw: {}\n", rows.error().to_string());
    return 1;
  }
  if (options.json) fmt::print("{}\n", rows->dump(2));
  return 0;
}
