// Memory of GPUs, staged between two processes or copied from GPU to GPU; in turn with plain copies
// of the same bytes by the CUDA driver, and with the same transfer between host memories.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "bench.hpp"
#include "report/spread.hpp"
#include "shared/engine_loop.hpp"
#include "shared/gpu_side.hpp"
#include "shared/options.hpp"
#include "shared/sides.hpp"

namespace {

using weft::Memory;
using weft::Result;
using weft::perf::EngineConfig;
using weft::perf::PlainCopies;
using weft::perf::Spread;

constexpr int no_gpu = 77;  // the exit status by which a test says that it was skipped

struct Options {
  std::vector<std::string> providers{"tcp", "shm"};
  std::vector<std::size_t> sizes;
  unsigned repeats = 5, window = 4;
  std::uint32_t pieces = 1;
  weft::Nanoseconds time = std::chrono::milliseconds(200);
};

/// From where to where: what goes out of a GPU, and what goes into one.
struct Way {
  const char* name;
  bool out, in;
  bool lent = false;  // the one GPU copies into what the other process has lent (CUDA IPC)
};
constexpr Way ways[] = {
    {"D2D", true, true}, {"D2H", true, false}, {"H2D", false, true}, {"IPC", true, true, true}};

/// What a process says that was started for it.
Result<std::string> ask_a_process(const std::function<std::string()>& body) {
  weft::perf::Pipe answer;
  const weft::perf::Side side([&] { weft::perf::write_line(answer.write_end(), body()); });
  answer.close_write();
  return weft::perf::read_line(answer.read_end(), weft::Deadline::in(std::chrono::minutes(1)));
}

struct Gpus {
  int count = 0;
  std::string why;  // if there is none
  int second() const { return count > 1 ? 1 : 0; }
};

Result<Gpus> look_for_gpus() {
  return ask_a_process([] {
           const auto count = weft::perf::count_gpus();
           return count ? fmt::format("{}", *count) : "0" + count.error().to_string();
         })
      .map([](const std::string& line) {
        Gpus gpus{std::atoi(line.c_str()), {}};
        if (gpus.count == 0) gpus.why = line.substr(1);
        return gpus;
      });
}

Result<double> run_plain(const Options& options, const Gpus& gpus, std::size_t size, Way way) {
  PlainCopies copies;
  copies.size = size;
  copies.window = options.window;
  copies.out = way.out;
  copies.in = way.in;
  copies.straight = way.lent;
  copies.to = gpus.second();
  copies.time = options.time;
  return ask_a_process([&] {
           const auto speed = weft::perf::copy_plainly(copies);
           return speed ? fmt::format("{}", *speed) : "error " + speed.error().to_string();
         })
      .map([](const std::string& line) { return std::strtod(line.c_str(), nullptr); });
}

Result<double> run(const EngineConfig& config) {
  return weft::perf::run_engine(config).map(
      [](const weft::perf::EngineResult& result) { return result.gigabytes_per_second; });
}

EngineConfig between_host_memories(const Options& options, const std::string& provider,
                                   std::size_t size) {
  EngineConfig config;
  config.provider = provider;
  config.size = size;
  config.pieces = options.pieces;
  config.window = options.window;
  config.time = options.time;
  return config;
}

EngineConfig between_gpus(EngineConfig config, const Gpus& gpus, Way way) {
  config.transport = way.lent ? weft::TransportKind::device_copy : weft::TransportKind::bounce;
  if (way.out)
    config.initiator_memory = [](std::size_t bytes) { return weft::perf::gpu_memory(0, bytes); };
  if (way.in)
    config.target_memory = [gpu = gpus.second()](std::size_t bytes) {
      return weft::perf::gpu_memory(gpu, bytes);
    };
  return config;
}

/// GB/s of one way, round by round.
struct Series {
  std::vector<double> moved, host, plain;
};
using Point = std::array<Series, std::size(ways)>;

Result<void> one_round(const Options& options, const Gpus& gpus, const EngineConfig& config,
                       Point& point) {
  const auto host = run(config);
  if (!host) return weft::fail(host.error());
  for (std::size_t i = 0; i < point.size(); ++i) {
    const auto plain = run_plain(options, gpus, config.size, ways[i]);
    const auto moved = run(between_gpus(config, gpus, ways[i]));
    if (!plain || !moved) return weft::fail(plain ? moved.error() : plain.error());
    point[i].host.push_back(*host);
    point[i].plain.push_back(*plain);
    point[i].moved.push_back(*moved);
  }
  return {};
}

std::string text_of(const std::vector<double>& values) {
  const Spread spread = weft::perf::spread_of(values);
  return fmt::format("{:.2f} ({:.2f}-{:.2f})", spread.median, spread.least, spread.greatest);
}

/// Round by round.
std::vector<double> ratios(const std::vector<double>& values, const std::vector<double>& to) {
  std::vector<double> made;
  for (std::size_t i = 0; i < values.size(); ++i) made.push_back(values[i] / to[i]);
  return made;
}

constexpr const char* row = "{:<4} {:>9} {:<3}  {:>22}  {:>22}  {:>22}  {:>18}  {:>18}\n";

void print(const EngineConfig& config, Way way, const Series& series) {
  fmt::print(fmt::runtime(row), config.provider, config.size, way.name, text_of(series.moved),
             text_of(series.plain), text_of(series.host),
             text_of(ratios(series.moved, series.plain)),
             text_of(ratios(series.moved, series.host)));
  std::fflush(stdout);
}

Result<void> compare(const Options& options, const Gpus& gpus) {
  for (const std::string& provider : options.providers)
    for (const std::size_t size : options.sizes) {
      const EngineConfig config = between_host_memories(options, provider, size);
      Point point;
      for (unsigned round = 0; round < options.repeats; ++round)
        if (auto ran = one_round(options, gpus, config, point); !ran) return ran;
      for (std::size_t i = 0; i < point.size(); ++i) print(config, ways[i], point[i]);
    }
  return {};
}

}  // namespace

int weft::perf::bench::gpu_copies(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Writes between two processes with memory in GPUs (the second one's in the second GPU where "
      "there is one), staged, and by CUDA IPC (IPC): GB/s (10^9 bytes) as median (least-greatest) "
      "of interleaved rounds. "
      "Beside it plain copies of the same bytes to and from pinned memory (for D2D out and in "
      "again, for IPC from GPU to GPU), and the same transfer between host memories, with the "
      "ratios round by round. Exits "
      "with 77 where there is no GPU."};
  for (std::size_t size = 64 << 10; size <= 64 << 20; size *= 4) options.sizes.push_back(size);
  OptionGroup group(app, "Options");
  add_providers(group, options.providers, "tcp, shm");
  add_sizes(group, options.sizes);
  group
      .number("--pieces", options.pieces, Multiples::decimal, {1},
              "Pieces of a transfer, as long as each other and apart from each other; plain copies "
              "are of one piece")
      ->default_str("1");
  group.number("--window", options.window, Multiples::decimal, {1}, "Transfers in flight")
      ->default_str(std::to_string(options.window));
  add_repeats(group, options.repeats);
  add_time(group, options.time);
  if (const auto code = parse(app, argc, argv)) return *code;

  const auto gpus = look_for_gpus();
  if (gpus && gpus->count == 0) {
    fmt::print(stderr, "weft-bench gpu-copies: {}\n", gpus->why);
    return no_gpu;
  }
  if (gpus)
    fmt::print(fmt::runtime(row), "", "bytes", "", "Weft", "plain copy", "host to host",
               "to plain copy", "to host to host");
  if (const auto ran = gpus ? compare(options, *gpus) : Result<void>(weft::fail(gpus.error()));
      !ran) {
    fmt::print(stderr, "weft-bench gpu-copies: {}\n", ran.error().to_string());
    return 1;
  }
  return 0;
}
