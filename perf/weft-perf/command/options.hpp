// The command line.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compare/plan.hpp"
#include "measure/sweep.hpp"
#include "workload/points.hpp"

namespace weft::perf {

struct Options {
  bool listen = false, local = false, once = false;
  std::vector<std::string> peers;
  std::vector<std::string> from;  ///< Initiators; empty: as many as are asked for, on this machine.
  int ready_fd = -1;
  Site site;
  Grid grid;
  SweepOptions sweep;
  std::string json, compare;
  double threshold = 0.03;
  bool wide = false;  ///< The table has all its columns.
  std::string progress = "auto";
  std::string command_line;  ///< As a shell would take it.
};

/// Whether one of --from is a process elsewhere that listens already.
inline bool is_elsewhere(const std::string& initiator) {
  return initiator != "here";
}

/// Options that are wrong by themselves end the parsing as CLI11 does it.
void add_options(CLI::App& app, Options& options);

/// What is wrong with them together; nothing if they fit.
std::optional<std::string> usage_error(const Options& options);

/// Those of `weft-perf plan`.
void add_options(CLI::App& app, PlanOptions& options);

/// The words as a shell would take them.
std::string command_line(int count, const char* const* words);

/// For the results: as the sweep was asked for.
Json settings_json(const Options& options);

}  // namespace weft::perf
