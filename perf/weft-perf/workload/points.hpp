// The points of a sweep: all combinations of what each setting may be.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workload/point.hpp"

namespace weft::perf {

/// One list for each setting.
struct Grid {
  std::vector<std::uint32_t> initiators{1}, targets{1};
  std::vector<Operation> operations{Operation::write};
  std::vector<std::uint64_t> sizes{64 << 10}, rates{0};
  std::vector<std::uint32_t> pieces{1}, windows{4}, batches{1};
  std::vector<Pattern> patterns{Pattern::contiguous};
  std::vector<std::string> memories{"host"};
  std::vector<std::string> peer_memories;  ///< Empty: each time as this side's.
  std::vector<Priority> priorities{Priority::normal};
  bool one_buffer = false;
  std::vector<std::string> providers{"auto"};
  std::vector<unsigned> rails{0}, nics{4}, threads{0};
  std::vector<std::uint64_t> chunks{0}, bounce_bytes{0};
  std::vector<std::size_t> rail_windows{0}, bounce_buffers{0};
  std::vector<GpuPath> gpu_paths{GpuPath::lent};
  std::vector<weft::Progress> progress{weft::Progress::threads};
  std::vector<std::string> models;  ///< Empty: pieces of one size, and none of what follows.
  std::vector<std::string> dtypes{"bf16"};
  std::vector<std::uint64_t> tokens{4096};
  std::vector<std::uint32_t> layer_groups{usual_layer_groups}, block_tokens{16};
  std::vector<std::uint64_t> block_bytes;  ///< Empty: as many as `block_tokens` take.
  std::vector<std::uint32_t> tp{1}, peer_tp{1}, pp{1}, peer_pp{1};
};

/// All points of the grid, those of one Fabric and of as many sides together; an operation of one
/// piece has no pattern, and comes with the first of them only. `invalid_argument` for any that
/// can't be measured.
Result<std::vector<Point>> points_of(const Grid& grid);

/// The most at once that any point of the grid has.
std::uint32_t most_initiators_of(const Grid& grid);
std::uint32_t most_targets_of(const Grid& grid);

}  // namespace weft::perf
