// What it costs to count transfers: the engine with Config::metrics and without, in turn.
#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "engine_loop.hpp"
#include "null_lane.hpp"
#include "spread.hpp"

namespace {

using weft::Result;
using weft::perf::EngineConfig;
using weft::perf::Initiator;
using weft::perf::median_interval_of;
using weft::perf::NullLane;

struct Options {
  std::vector<std::string> providers{"tcp", "shm"};
  std::vector<std::size_t> sizes{4 << 10, 64 << 10, 1 << 20};
  std::vector<unsigned> windows{1, 16};
  unsigned rounds = 200;
  std::chrono::milliseconds::rep ms = 20;
};

/// Figures of both, by round.
struct Pairs {
  std::vector<double> with, without, ratios;

  void add(double on, double off) {
    with.push_back(on);
    without.push_back(off);
    ratios.push_back(on / off);
  }
  std::string row() const {
    const auto ratio = median_interval_of(ratios);
    return fmt::format("{:>9.3f} {:>9.3f}  {:.3f} ({:.3f}-{:.3f})", median_interval_of(with).median,
                       median_interval_of(without).median, ratio.median, ratio.low, ratio.high);
  }
};

/// Of this thread, which other work on the machine does not lengthen.
double cpu_microseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

/// Million transfers of one block in each second of CPU time, over a transport that does nothing.
double null_rate(NullLane& lane, const std::shared_ptr<const weft::core::PreparedState>& block,
                 std::chrono::milliseconds time) {
  constexpr int batch = 100;
  const double longest = std::chrono::duration<double, std::micro>(time).count();
  const double begin = cpu_microseconds();
  double spent = 0;
  std::uint64_t count = 0;
  for (; spent < longest; spent = cpu_microseconds() - begin, count += batch)
    for (int i = 0; i < batch; ++i) lane.run(*lane.submit(block));
  return static_cast<double>(count) / spent;
}

void compare_over_nothing(const Options& options) {
  constexpr std::uint64_t block = 4096;
  weft::core::Ledger ledger(1);
  NullLane with(&ledger), without;
  const weft::Pair piece{0, 0, block};
  const weft::core::PieceList pieces{std::span(&piece, 1)};
  const auto counted = with.prepare(pieces, block), uncounted = without.prepare(pieces, block);
  const std::chrono::milliseconds time(options.ms);
  Pairs pairs;
  for (unsigned round = 0; round < options.rounds; ++round) {
    // Who goes first changes from round to round.
    double off = round % 2 == 0 ? 0 : null_rate(without, uncounted, time);
    const double on = null_rate(with, counted, time);
    if (round % 2 == 0) off = null_rate(without, uncounted, time);
    pairs.add(on, off);
  }
  fmt::print("{:<6} {:>9} {:>3}  {}  million transfers/s\n", "null", block, 1, pairs.row());
  std::fflush(stdout);
}

Result<std::string> take_turns(const EngineConfig& config, const std::string& address,
                               const Options& options) {
  const auto open = [&](bool metrics) {
    EngineConfig own = config;
    own.open = [metrics](weft::Config settings) {
      settings.metrics = metrics;
      return weft::Engine::open(settings);
    };
    return Initiator::open(own, address);
  };
  auto with = open(true), without = open(false);
  if (!with || !without) return weft::fail(with ? without.error() : with.error());
  const std::chrono::milliseconds time(options.ms);
  for (Initiator* each : {&*with, &*without})
    if (auto warm = each->run(5 * time); !warm) return weft::fail(warm.error());
  Pairs pairs;
  for (unsigned round = 0; round < options.rounds; ++round) {
    const bool first = round % 2 == 0;
    const auto one = (first ? with : without)->run(time),
               other = (first ? without : with)->run(time);
    if (!one || !other) return weft::fail(one ? other.error() : one.error());
    pairs.add((first ? one : other)->gigabytes_per_second,
              (first ? other : one)->gigabytes_per_second);
  }
  return pairs.row();
}

Result<void> compare(const Options& options, EngineConfig config) {
  config.timeout_ms += 3 * static_cast<std::chrono::milliseconds::rep>(options.rounds) * options.ms;
  const auto row = weft::perf::run_against_target(
      config, [&](const std::string& address) { return take_turns(config, address, options); });
  if (!row) return weft::fail(row.error());
  fmt::print("{:<6} {:>9} {:>3}  {}  GB/s\n", config.provider, config.size, config.window, *row);
  std::fflush(stdout);
  return {};
}

Result<void> compare_all(const Options& options) {
  for (const std::string& provider : options.providers) {
    if (provider == "null") {
      compare_over_nothing(options);
      continue;
    }
    for (const std::size_t size : options.sizes)
      for (const unsigned window : options.windows) {
        EngineConfig config;
        config.provider = provider;
        config.size = size;
        config.window = window;
        if (auto compared = compare(options, config); !compared) return compared;
      }
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Writes with Config::metrics and without, medians of rounds in turn, and the median of their "
      "ratios by round (with bounds that hold the true one in 19 of 20 cases). The two engines are "
      "in one process, and write to one target."};
  const CLI::AsSizeValue bytes(false);
  app.add_option("--provider", options.providers,
                 "tcp, shm; null: small transfers over a transport that does nothing")
      ->delimiter(',');
  app.add_option("--size", options.sizes, "Bytes of a transfer")->delimiter(',')->transform(bytes);
  app.add_option("--window", options.windows, "Transfers in flight")->delimiter(',');
  app.add_option("--rounds", options.rounds, "Times that each point is measured")
      ->check(CLI::Range(1, 100000));
  app.add_option("--ms", options.ms, "Time measured for one point in one round");
  CLI11_PARSE(app, argc, argv);
  fmt::print("{:<6} {:>9} {:>3}  {:>9} {:>9}  ratio\n", "", "bytes", "", "with", "without");
  if (auto compared = compare_all(options); !compared) {
    fmt::print(stderr, "weft-ledger-cost: {}\n", compared.error().to_string());
    return 1;
  }
}
