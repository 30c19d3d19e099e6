// What it brings to map a peer's memory: writes and reads over shm of memory behind a memfd, beside
// those of memory that the kernel has to copy, and beside memcpy by as many threads as call, in
// turn.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "bench.hpp"
#include "common/pages.hpp"
#include "report/spread.hpp"
#include "shared/engine_loop.hpp"
#include "shared/options.hpp"

namespace {

using weft::Clock;
using weft::Memory;
using weft::Result;
using weft::perf::EngineConfig;
using weft::tool::Pages;

struct Options {
  std::vector<std::size_t> sizes{4 << 10, 16 << 10, 64 << 10, 256 << 10,
                                 1 << 20, 4 << 20,  16 << 20, 64 << 20};
  std::vector<unsigned> windows{1, 16}, callers{1};
  unsigned rails = 0;
  bool manual = false;
  unsigned repeats = 7;
  weft::Nanoseconds time = std::chrono::milliseconds(200);
};

/// Bytes that one thread copies, through as much memory as the transfers of a window touch.
double copy_by_one_thread(const EngineConfig& config, const Pages& from, const Pages& to,
                          Clock::time_point end) {
  const std::size_t all = config.size * config.window;
  double bytes = 0;
  for (std::size_t at = 0; Clock::now() < end; at = (at + config.size) % all) {
    std::memcpy(to.data() + at, from.data() + at, config.size);
    asm volatile("" : : "r"(to.data()) : "memory");  // it is not left out
    bytes += static_cast<double>(config.size);
  }
  return bytes;
}

/// GB/s of as many threads as there are callers.
Result<double> copy_by_threads(const EngineConfig& config) {
  std::vector<std::pair<Pages, Pages>> memory;
  for (unsigned caller = 0; caller < config.callers; ++caller) {
    const auto& [from, to] =
        memory.emplace_back(Pages(config.size * config.window), Pages(config.size * config.window));
    if (from.empty() || to.empty())
      return weft::fail(weft::Code::out_of_memory, "no memory to copy");
    for (const Pages* each : {&from, &to})
      std::memset(each->data(), 1, config.size * config.window);
  }
  const auto begin = Clock::now();
  const auto end = begin + config.time;
  std::vector<std::future<double>> threads;
  for (const auto& each : memory)
    threads.push_back(std::async(std::launch::async, [&config, &each, end] {
      return copy_by_one_thread(config, each.first, each.second, end);
    }));
  double bytes = 0;
  for (auto& each : threads) bytes += each.get();
  return bytes / std::chrono::duration<double>(Clock::now() - begin).count() / 1e9;
}

Result<double> move(EngineConfig config, Result<Memory> (*target_memory)(std::size_t)) {
  config.target_memory = target_memory;
  return weft::perf::run_engine(config).map(
      [](const auto& result) { return result.gigabytes_per_second; });
}

std::string text(const std::vector<double>& values) {
  const auto spread = weft::perf::spread_of(values);
  return fmt::format("{:5.2f} ({:.2f}-{:.2f})", spread.median, spread.least, spread.greatest);
}

Result<void> compare(const Options& options, const EngineConfig& config) {
  std::vector<double> mapped, kernel, copied, to_kernel, to_copied;
  for (unsigned round = 0; round < options.repeats; ++round) {
    const auto one =
        move(config, [](std::size_t bytes) -> Result<Memory> { return Memory::shared(bytes); });
    const auto other =
        move(config, [](std::size_t bytes) -> Result<Memory> { return Memory::own(bytes); });
    const auto plain = copy_by_threads(config);
    for (const auto* each : {&one, &other, &plain})
      if (!*each) return weft::fail(each->error());
    mapped.push_back(*one);
    kernel.push_back(*other);
    copied.push_back(*plain);
    to_kernel.push_back(*one / *other);
    to_copied.push_back(*one / *plain);
  }
  fmt::print("{:<5} {:>8} {:>3} {:>2}  {:>19} {:>19} {:>19}  {:>18} {:>18}\n",
             config.read ? "read" : "write", config.size, config.window, config.callers,
             text(mapped), text(kernel), text(copied), text(to_kernel), text(to_copied));
  std::fflush(stdout);
  return {};
}

std::vector<EngineConfig> points(const Options& options) {
  EngineConfig config;
  config.provider = "shm";
  config.rails = options.rails;
  config.manual = options.manual;
  config.time = options.time;
  std::vector<EngineConfig> all;
  for (const bool read : {false, true})
    for (const std::size_t size : options.sizes)
      for (const unsigned window : options.windows)
        for (const unsigned callers : options.callers) {
          config.read = read;
          config.size = size;
          config.window = window;
          config.callers = callers;
          all.push_back(config);
        }
  return all;
}

}  // namespace

int weft::perf::bench::mapped_copies(int argc, char** argv) {
  Options options;
  CLI::App app{
      "GB/s (10^9 bytes) over shm into memory that is mapped, into memory that the kernel copies "
      "to, and of memcpy by as many threads as call; then the ratio of the first to the others. "
      "Median "
      "(least-greatest) of rounds in turn."};
  OptionGroup group(app, "Options");
  add_sizes(group, options.sizes);
  add_windows(group, options.windows);
  add_numbers(group, "--callers", options.callers, Multiples::decimal, {1},
              "Threads that submit and wait, each with as many in flight");
  group.number("--rails", options.rails, Multiples::decimal, {}, "Rails; 0: automatic")
      ->default_str("0");
  add_engine_progress(group, options.manual);
  add_repeats(group, options.repeats);
  add_time(group, options.time);
  if (const auto code = parse(app, argc, argv)) return *code;
  fmt::print("{:<5} {:>8} {:>3} {:>2}  {:>19} {:>19} {:>19}  {:>18} {:>18}\n", "", "bytes", "", "",
             "mapped", "kernel", "memcpy", "to kernel", "to memcpy");
  for (const EngineConfig& config : points(options))
    if (auto compared = compare(options, config); !compared) {
      fmt::print(stderr, "weft-bench mapped-copies: {}\n", compared.error().to_string());
      return 1;
    }
  return 0;
}
