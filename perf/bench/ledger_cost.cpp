// What it costs to count transfers: the engine with Config::metrics and without, in turn.
#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "bench.hpp"
#include "report/spread.hpp"
#include "shared/engine_loop.hpp"
#include "shared/null_scheduler.hpp"
#include "shared/options.hpp"

namespace {

using weft::Result;
using weft::perf::EngineConfig;
using weft::perf::Initiator;
using weft::perf::NullScheduler;
using weft::perf::spread_of;

struct Options {
  std::vector<std::string> providers{"tcp", "shm"};
  std::vector<std::size_t> sizes{4 << 10, 64 << 10, 1 << 20};
  std::vector<unsigned> windows{1, 16};
  unsigned lives = 12, repeats = 20;
  weft::Nanoseconds time = std::chrono::milliseconds(20);
  bool manual = false;
};

/// Figures of both, by round.
struct Pairs {
  std::vector<double> with, without;

  void add(double on, double off) {
    with.push_back(on);
    without.push_back(off);
  }
  /// The median of the rounds' ratios.
  double ratio() const {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < with.size(); ++i) ratios.push_back(with[i] / without[i]);
    return spread_of(ratios).median;
  }
};

/// What a turn came to.
struct Turn {
  double rate = 0;  // GB/s
  double cpu = 0;   // the initiator's, in microseconds for each transfer
};

/// What was measured with some engines, and again with others: some are faster than others for as
/// long as they live.
struct Comparison {
  std::vector<double> with, without, ratios;

  void add(const Pairs& pairs) {
    with.push_back(spread_of(pairs.with).median);
    without.push_back(spread_of(pairs.without).median);
    ratios.push_back(pairs.ratio());
  }
  void print(std::string_view provider, std::size_t size, unsigned window,
             std::string_view unit) const {
    const auto ratio = spread_of(ratios);
    fmt::print("{:<6} {:>9} {:>3}  {:>9.3f} {:>9.3f}  {:.3f} ({:.3f}-{:.3f})  {}\n", provider, size,
               window, spread_of(with).median, spread_of(without).median, ratio.median, ratio.least,
               ratio.greatest, unit);
    std::fflush(stdout);
  }
};

/// Of this thread, which other work on the machine does not lengthen.
double cpu_microseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

/// Million transfers of one block in each second of CPU time, over a transport that does nothing.
double null_rate(NullScheduler& scheduler,
                 const std::shared_ptr<const weft::core::PreparedState>& block,
                 weft::Nanoseconds time) {
  constexpr int batch = 100;
  const double longest = std::chrono::duration<double, std::micro>(time).count();
  const double begin = cpu_microseconds();
  double spent = 0;
  std::uint64_t count = 0;
  for (; spent < longest; spent = cpu_microseconds() - begin, count += batch)
    for (int i = 0; i < batch; ++i) scheduler.run(*scheduler.submit(block));
  return static_cast<double>(count) / spent;
}

void compare_over_nothing(const Options& options) {
  constexpr std::uint64_t block = 4096;
  const weft::Pair piece{0, 0, block};
  const weft::core::PieceList pieces{std::span(&piece, 1)};
  Comparison comparison;
  for (unsigned life = 0; life < options.lives; ++life) {
    weft::core::Ledger ledger(1);
    NullScheduler with(&ledger), without;
    const auto counted = with.prepare(pieces, block), uncounted = without.prepare(pieces, block);
    Pairs pairs;
    for (unsigned round = 0; round < options.repeats; ++round)
      pairs.add(null_rate(with, counted, options.time),
                null_rate(without, uncounted, options.time));
    comparison.add(pairs);
  }
  comparison.print("null", block, 1, "million transfers/s of CPU time");
}

Turn turn_of(const weft::perf::EngineResult& result, std::size_t size) {
  return {result.gigabytes_per_second,
          result.cpu_seconds * 1e6 * static_cast<double>(size) / static_cast<double>(result.bytes)};
}

/// Both engines, and then slices of time in turn. As text, by round: the rates with and without,
/// and the CPU times.
Result<std::string> take_turns(const EngineConfig& config, const std::string& address,
                               const Options& options, bool with_first) {
  const auto open = [&](bool metrics) {
    EngineConfig own = config;
    own.open = [metrics](weft::Config settings) {
      settings.metrics = metrics;
      return weft::Engine::open(settings);
    };
    return Initiator::open(own, address);
  };
  auto one = open(with_first), other = open(!with_first);
  if (!one || !other) return weft::fail(one ? other.error() : one.error());
  for (Initiator* each : {&*one, &*other})
    if (auto warm = each->run(5 * options.time); !warm) return weft::fail(warm.error());
  std::string figures;
  for (unsigned round = 0; round < options.repeats; ++round) {
    const auto first = one->run(options.time), second = other->run(options.time);
    if (!first || !second) return weft::fail(first ? second.error() : first.error());
    const Turn with = turn_of(*(with_first ? first : second), config.size);
    const Turn without = turn_of(*(with_first ? second : first), config.size);
    figures +=
        fmt::format("{:.5g} {:.5g} {:.5g} {:.5g} ", with.rate, without.rate, with.cpu, without.cpu);
  }
  return figures;
}

Result<void> compare(const Options& options, EngineConfig config) {
  config.timeout += 10 * static_cast<weft::Nanoseconds::rep>(options.repeats) * options.time;
  Comparison rates, times;
  for (unsigned life = 0; life < options.lives; ++life) {
    // The order of opening and of turns changes.
    const auto figures = weft::perf::run_against_target(config, [&](const std::string& address) {
      return take_turns(config, address, options, life % 2 == 0);
    });
    if (!figures) return weft::fail(figures.error());
    Pairs rate, cpu;
    std::istringstream numbers(*figures);
    for (Turn on, off; numbers >> on.rate >> off.rate >> on.cpu >> off.cpu;) {
      rate.add(on.rate, off.rate);
      cpu.add(on.cpu, off.cpu);
    }
    rates.add(rate);
    times.add(cpu);
  }
  rates.print(config.provider, config.size, config.window, "GB/s");
  times.print(config.provider, config.size, config.window, "us of the initiator's CPU");
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
        config.manual = options.manual;
        if (auto compared = compare(options, config); !compared) return compared;
      }
  }
  return {};
}

}  // namespace

int weft::perf::bench::ledger_cost(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Writes with Config::metrics and without: two engines in one process write to one target in "
      "turn. Medians, and the ratio as median (least-greatest) of pairs of engines, for each of "
      "which it is the median of the rounds' ratios."};
  OptionGroup group(app, "Options");
  add_providers(group, options.providers,
                "tcp, shm; null: small transfers over a transport that does nothing");
  add_sizes(group, options.sizes);
  add_windows(group, options.windows);
  group
      .number("--engines", options.lives, Multiples::decimal, {1, 1000},
              "Pairs of engines, one after another")
      ->default_str(std::to_string(options.lives));
  group.number("--repeats", options.repeats, Multiples::decimal, {1, 50}, "Turns of each of them")
      ->default_str(std::to_string(options.repeats));
  add_time(group, options.time, "Length of a turn");
  add_engine_progress(group, options.manual);
  if (const auto code = parse(app, argc, argv)) return *code;
  fmt::print("{:<6} {:>9} {:>3}  {:>9} {:>9}  ratio\n", "", "bytes", "", "with", "without");
  if (auto compared = compare_all(options); !compared) {
    fmt::print(stderr, "weft-bench ledger-cost: {}\n", compared.error().to_string());
    return 1;
  }
  return 0;
}
