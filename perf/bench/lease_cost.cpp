// What leases cost: the engine as it is, with grants that run out and reads that are proven, and
// the same without, in turn.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "bench.hpp"
#include "rail/hooks.hpp"
#include "report/spread.hpp"
#include "shared/engine_loop.hpp"
#include "shared/options.hpp"

namespace {

using weft::Result;
using weft::perf::EngineConfig;
using weft::perf::EngineResult;

struct Options {
  std::vector<std::string> providers{"tcp", "shm"};
  std::vector<std::size_t> sizes{4 << 10, 64 << 10, 1 << 20, 16 << 20};
  std::vector<unsigned> windows{1, 16};
  std::uint32_t pieces = 1;
  unsigned repeats = 7;
  weft::Nanoseconds time = std::chrono::milliseconds(300);
};

Result<EngineResult> run(EngineConfig config, bool leases) {
  if (leases) {
    config.ttl = std::chrono::hours(1);
  } else {
    config.open = [](const weft::Config& settings) {
      weft::core::EngineHooks hooks;
      hooks.trusts_reads = true;
      return weft::core::open_engine(settings, hooks);
    };
  }
  return weft::perf::run_engine(config);
}

Result<void> compare(const Options& options, const EngineConfig& config) {
  std::vector<double> with, without, ratios;
  for (unsigned round = 0; round < options.repeats; ++round) {
    // The order changes from round to round.
    const bool first = round % 2 == 0;
    const auto one = run(config, first), other = run(config, !first);
    if (!one || !other) return weft::fail(one ? other.error() : one.error());
    with.push_back((first ? one : other)->gigabytes_per_second);
    without.push_back((first ? other : one)->gigabytes_per_second);
    ratios.push_back(with.back() / without.back());
  }
  const auto ratio = weft::perf::spread_of(ratios);
  fmt::print("{:<4} {:<5} {:>9} {:>3}  {:>8.3f} {:>8.3f}  {:>5.2f} ({:.2f}-{:.2f})\n",
             config.provider, config.read ? "read" : "write", config.size, config.window,
             weft::perf::spread_of(with).median, weft::perf::spread_of(without).median,
             ratio.median, ratio.least, ratio.greatest);
  std::fflush(stdout);
  return {};
}

}  // namespace

int weft::perf::bench::lease_cost(int argc, char** argv) {
  Options options;
  CLI::App app{
      "GB/s (10^9 bytes) with leases and without, medians, and their ratio as median "
      "(least-greatest) of interleaved rounds. Without: the grant has no end, and reads are "
      "accepted "
      "without a look at the owner's epoch word."};
  OptionGroup group(app, "Options");
  add_providers(group, options.providers, "tcp, shm");
  add_sizes(group, options.sizes);
  add_windows(group, options.windows);
  group
      .number("--pieces", options.pieces, Multiples::decimal, {1, 65536},
              "Pieces of a transfer, apart from each other")
      ->default_str("1");
  add_repeats(group, options.repeats);
  add_time(group, options.time);
  if (const auto code = parse(app, argc, argv)) return *code;
  fmt::print("{:<10} {:>9} {:>3}  {:>8} {:>8}  ratio\n", "", "bytes", "", "with", "without");
  for (const std::string& provider : options.providers)
    for (const bool read : {true, false})
      for (const std::size_t size : options.sizes)
        for (const unsigned window : options.windows) {
          EngineConfig config;
          config.provider = provider;
          config.read = read;
          config.size = size;
          config.window = window;
          config.pieces = options.pieces;
          config.time = options.time;
          if (auto compared = compare(options, config); !compared) {
            fmt::print(stderr, "weft-bench lease-cost: {}\n", compared.error().to_string());
            return 1;
          }
        }
  return 0;
}
