// The command line.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plan.hpp"
#include "sweep.hpp"

namespace weft::perf {

/// One list for each setting: all their combinations are points.
struct Grid {
  std::vector<std::uint64_t> initiators{1}, targets{1};
  std::vector<Operation> operations{Operation::write};
  std::vector<std::uint64_t> sizes{64 << 10}, pieces{1}, windows{4}, batches{1}, rates{0};
  std::vector<Pattern> patterns{Pattern::contiguous};
  std::vector<std::string> memories{"host"};
  std::vector<std::string> peer_memories;  ///< Empty: each time as this side's.
  std::vector<Priority> priorities{Priority::normal};
  bool one_buffer = false;
  std::vector<std::string> providers{"auto"};
  std::vector<std::uint64_t> rails{0}, nics{4}, threads{0}, chunks{0}, rail_windows{0};
  std::vector<std::uint64_t> bounce_bytes{0}, bounce_buffers{0};
  std::vector<GpuPath> gpu_paths{GpuPath::lent};
  std::vector<weft::Progress> progress{weft::Progress::threads};
  std::vector<std::string> models;  ///< Empty: pieces of one size, and none of what follows.
  std::vector<std::string> dtypes{"bf16"};
  std::vector<std::uint64_t> tokens{4096}, layer_groups{usual_layer_groups};
  std::vector<std::uint64_t> block_tokens{16};
  std::vector<std::uint64_t> block_bytes{0};  ///< 0: as many as `block_tokens` take.
  std::vector<std::uint64_t> tp{1}, peer_tp{1};
};

struct Options {
  bool listen = false, local = false, once = false;
  std::vector<std::string> peers;
  std::vector<std::string> from;  ///< Initiators; empty: as many as are asked for, on this machine.
  int ready_fd = -1;
  Site site;
  Grid grid;
  SweepOptions sweep;
  std::string json, csv, compare, plot, html;
  double threshold = 0.03;
  std::string progress = "auto";
};

/// Options that are wrong by themselves end the parsing as CLI11 does it.
void add_options(CLI::App& app, Options& options);

/// Those of `weft-perf plan`.
void add_options(CLI::App& app, PlanOptions& options);

/// All points of the grid, those of one Fabric and of as many sides together.
/// `invalid_argument` for any that can't be measured.
Result<std::vector<Point>> points_of(const Grid& grid);

/// The most at once that any point of the grid has.
std::uint64_t most_initiators_of(const Grid& grid);
std::uint64_t most_targets_of(const Grid& grid);

/// For the results: as the sweep was asked for.
Json settings_json(const Options& options);

}  // namespace weft::perf
