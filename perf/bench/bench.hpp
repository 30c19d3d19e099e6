// The benchmarks of `weft-bench`, each with a command line of its own.
#pragma once

namespace weft::perf::bench {

/// The words after the benchmark's name; the first one names the program and the benchmark. Returns
/// the exit code.
using Main = int(int count, char** words);

Main core_cost, fault_times, gpu_copies, idle, lease_cost, ledger_cost, mapped_copies, nic_costs,
    raw, versus_raw;

}  // namespace weft::perf::bench
