// The benchmarks of `weft-bench`, each with a command line of its own.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

namespace weft::perf::bench {

/// The words after the benchmark's name; the first one names the program and the benchmark. Returns
/// the exit code.
using Main = int(int count, char** words);

Main core_cost, fault_times, first_contact, gpu_copies, idle, lease_cost, ledger_cost,
    mapped_copies, nic_costs, weights_plan;

constexpr int usage_error = 2;

/// The exit code, where the words end the benchmark: they are wrong, or ask for help.
inline std::optional<int> parse(CLI::App& app, int count, char** words) {
  try {
    app.parse(count, words);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : usage_error;
  }
}

}  // namespace weft::perf::bench
