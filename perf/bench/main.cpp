// weft-bench NAME: programs that measure one thing each.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <string>
#include <string_view>

#include "bench.hpp"

namespace {

namespace bench = weft::perf::bench;

struct Benchmark {
  const char* name;
  const char* about;
  bench::Main* run;
};

constexpr Benchmark benchmarks[] = {
    {"core-cost", "the engine's own cost without a fabric: by operation, block and chunk",
     bench::core_cost},
    {"fault-times", "time until a fault is known, and until a revoke is done", bench::fault_times},
    {"first-contact", "time from a process's start to its first bytes", bench::first_contact},
    {"gpu-copies", "GPU memory between two processes, beside plain copies", bench::gpu_copies},
    {"idle", "CPU time of idle engines, and the first write after idleness", bench::idle},
    {"lease-cost", "writes and reads with leases and without", bench::lease_cost},
    {"ledger-cost", "writes with metrics and without", bench::ledger_cost},
    {"mapped-copies", "mapped memory beside the kernel's copies and memcpy", bench::mapped_copies},
    {"nic-costs", "what many NICs cost to open, to register with and to connect", bench::nic_costs},
    {"weights-plan", "planning for a trillion parameters", bench::weights_plan},
};

constexpr const char* usage =
    "Usage: weft-bench NAME [OPTION...]    weft-bench NAME --help    weft-bench --list\n";

void print_list() {
  for (const Benchmark& each : benchmarks) fmt::print("  {:<14} {}\n", each.name, each.about);
}

int run(const Benchmark& benchmark, int count, char** words) {
  std::string name = fmt::format("weft-bench {}", benchmark.name);
  words[0] = name.data();
  try {
    return benchmark.run(count, words);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return 1;
  }
}

}  // namespace

int main(int count, char** words) {
  const std::string_view name = count > 1 ? words[1] : "";
  if (name == "--list" || name == "--help" || name == "-h") {
    if (name != "--list") fmt::print("{}\n", usage);
    print_list();
    return 0;
  }
  const auto found = std::find_if(std::begin(benchmarks), std::end(benchmarks),
                                  [&](const Benchmark& each) { return each.name == name; });
  if (found != std::end(benchmarks)) return run(*found, count - 1, words + 1);
  if (name.empty())
    fmt::print(stderr, "{}", usage);
  else
    fmt::print(stderr, "weft-bench: there is no benchmark '{}' (see weft-bench --list)\n", name);
  return bench::usage_error;
}
