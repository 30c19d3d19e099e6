#include "workload/points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "workload/workload.hpp"

namespace weft::perf {
namespace {

constexpr std::size_t most_points = 100'000;

/// Before there are so many that they take all memory.
template <typename Value>
Result<void> check_count(const std::vector<Value>& values) {
  if (values.size() <= most_points) return {};
  return fail(Code::invalid_argument, fmt::format("more than {} points", most_points));
}

/// Calls `each` with every combination of one value of each list, the first list's varying slowest.
template <typename Each>
Result<void> combine(Each&& each) {
  return each();
}
template <typename Each, typename Value, typename... Lists>
Result<void> combine(Each&& each, const std::vector<Value>& first, const Lists&... rest) {
  for (const Value& value : first)
    if (auto done = combine([&](const auto&... values) { return each(value, values...); }, rest...);
        !done)
      return done;
  return {};
}

Result<std::vector<Fabric>> fabrics_of(const Grid& grid) {
  std::vector<Fabric> fabrics;
  auto done = combine(
      [&](const std::string& provider, unsigned rails, unsigned nics, unsigned threads,
          std::uint64_t chunk, std::size_t rail_window, std::uint64_t bounce_bytes,
          std::size_t bounce_buffers, GpuPath gpu_path, weft::Progress progress) {
        fabrics.push_back({provider == "auto" ? "" : provider, rails, nics, threads, chunk,
                           rail_window, bounce_bytes, bounce_buffers, gpu_path, progress});
        return check_count(fabrics);
      },
      grid.providers, grid.rails, grid.nics, grid.threads, grid.chunks, grid.rail_windows,
      grid.bounce_bytes, grid.bounce_buffers, grid.gpu_paths, grid.progress);
  if (!done) return fail(std::move(done.error()));
  return fabrics;
}

/// What an operation moves: so many bytes, or those of a model's cache.
struct Moved {
  std::uint64_t size = 0;
  KvShape shape = {};
};

Result<Moved> moved_of(KvShape shape, std::optional<std::uint64_t> block_bytes) {
  if (block_bytes) {
    const auto fitting = tokens_of_block(shape, *block_bytes);
    if (!fitting) return fail(fitting.error());
    shape.block_tokens = *fitting;
  }
  return bytes_of_request(shape).map([&](std::uint64_t bytes) { return Moved{bytes, shape}; });
}

Result<std::vector<Moved>> all_moved(const Grid& grid) {
  std::vector<Moved> all;
  if (grid.models.empty()) {
    for (const std::uint64_t size : grid.sizes) all.push_back({size});
    return all;
  }
  if (std::find(grid.models.begin(), grid.models.end(), "") != grid.models.end())
    return fail(Code::invalid_argument, "--model lacks a name");
  std::vector<std::optional<std::uint64_t>> block_bytes(grid.block_bytes.begin(),
                                                        grid.block_bytes.end());
  if (block_bytes.empty()) block_bytes.emplace_back();
  auto done = combine(
      [&](const std::string& model, const std::string& dtype, std::uint64_t tokens,
          std::uint32_t block_tokens, std::optional<std::uint64_t> bytes, std::uint32_t groups,
          std::uint32_t tp, std::uint32_t peer_tp, std::uint32_t pp, std::uint32_t peer_pp) {
        return moved_of({model, dtype, tokens, block_tokens, groups, tp, peer_tp, pp, peer_pp},
                        bytes)
            .and_then([&](Moved moved) {
              all.push_back(std::move(moved));
              return check_count(all);
            });
      },
      grid.models, grid.dtypes, grid.tokens, grid.block_tokens, block_bytes, grid.layer_groups,
      grid.tp, grid.peer_tp, grid.pp, grid.peer_pp);
  if (!done) return fail(std::move(done.error()));
  return all;
}

/// Whether it is there already, with another pattern, of which one piece has none.
bool repeats(const Grid& grid, std::uint32_t pieces, Pattern pattern) {
  return pieces == 1 && pattern != grid.patterns.front();
}

}  // namespace

Result<std::vector<Point>> points_of(const Grid& grid) {
  const auto fabrics = fabrics_of(grid);
  if (!fabrics) return fail(fabrics.error());
  const auto moved = all_moved(grid);
  if (!moved) return fail(moved.error());
  const bool kv = !grid.models.empty(), same_memory = grid.peer_memories.empty();
  std::vector<Point> points;
  auto done = combine(
      [&](const Fabric& fabric, std::uint32_t initiators, std::uint32_t targets,
          Operation operation, const Moved& what, std::uint32_t pieces, Pattern pattern,
          std::uint32_t window, std::uint32_t batch, std::uint64_t rate, const std::string& memory,
          const std::string& peer_memory, Priority priority) -> Result<void> {
        if (repeats(grid, pieces, pattern)) return {};
        const Work work{operation,
                        what.size,
                        pieces,
                        pattern,
                        window,
                        batch,
                        static_cast<double>(rate),
                        memory,
                        same_memory ? memory : peer_memory,
                        what.shape,
                        priority,
                        grid.one_buffer};
        points.push_back({fabric, work, targets, initiators});
        return check_count(points).and_then([&] { return check(points.back()); });
      },
      *fabrics, grid.initiators, grid.targets, grid.operations, *moved,
      kv ? std::vector<std::uint32_t>{1} : grid.pieces, grid.patterns, grid.windows, grid.batches,
      grid.rates, grid.memories, same_memory ? std::vector<std::string>{""} : grid.peer_memories,
      grid.priorities);
  if (!done) return fail(std::move(done.error()));
  return points;
}

std::uint32_t most_initiators_of(const Grid& grid) {
  return *std::max_element(grid.initiators.begin(), grid.initiators.end());
}

std::uint32_t most_targets_of(const Grid& grid) {
  return *std::max_element(grid.targets.begin(), grid.targets.end());
}

}  // namespace weft::perf
