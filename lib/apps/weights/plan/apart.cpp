#include "weights/plan/apart.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "weights/plan/layout.hpp"

namespace weft::weights {

namespace {

/// Runs of shards that lie between one another, as those of a fused parameter may. More than any
/// model's rows: it bounds the memory that a bad description takes.
constexpr std::uint64_t most_runs = std::uint64_t{1} << 26;

struct Range {
  std::uint32_t segment;
  std::uint32_t shard;
  std::uint64_t begin;
  std::uint64_t end;

  bool operator<(const Range& other) const noexcept {
    return segment != other.segment ? segment < other.segment : begin < other.begin;
  }
};

using Two = std::optional<std::pair<std::size_t, std::size_t>>;

/// Of sorted ranges.
Two overlapping(std::span<const Range> ranges) {
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].segment == ranges[i - 1].segment && ranges[i].begin < ranges[i - 1].end)
      return std::pair<std::size_t, std::size_t>{ranges[i - 1].shard, ranges[i].shard};
  return std::nullopt;
}

void add_runs(const Rank& rank, const Range& range, std::vector<Range>& runs) {
  const Shard& shard = rank.shards[range.shard];
  std::vector<Piece> pieces;
  copy_box({shard.begin, shard.extent}, shard, shard, pieces);
  for (const Piece& piece : pieces)
    for (std::uint64_t i = 0; i < piece.count; ++i) {
      const std::uint64_t begin = piece.dst_offset + i * piece.dst_stride;
      runs.push_back({range.segment, range.shard, begin, begin + piece.length});
    }
}

/// Ranges whose spans overlap may still lie between one another: their runs tell.
Result<Two> look_closely(const Rank& rank, std::span<const Range> cluster) {
  std::uint64_t count = 0;
  for (const Range& range : cluster) count += count_runs(rank.shards[range.shard]);
  if (count > most_runs)
    return fail(Code::invalid_argument,
                fmt::format("{}: tensor {}: it and others lie between one another in {} runs, and "
                            "{} are the most",
                            rank.name, rank.shards[cluster.front().shard].name, count, most_runs));
  std::vector<Range> runs;
  for (const Range& range : cluster) add_runs(rank, range, runs);
  std::sort(runs.begin(), runs.end());
  return overlapping(runs);
}

}  // namespace

Result<Two> shared_bytes(const Rank& rank) {
  std::vector<Range> spans;
  spans.reserve(rank.shards.size());
  for (std::uint32_t i = 0; i < rank.shards.size(); ++i) {
    const Shard& shard = rank.shards[i];
    spans.push_back({shard.segment, i, shard.offset, end_of(shard)});
  }
  if (!std::is_sorted(spans.begin(), spans.end())) std::sort(spans.begin(), spans.end());
  for (std::size_t begin = 0; begin < spans.size();) {
    std::uint64_t reach = spans[begin].end;
    std::size_t end = begin + 1;
    while (end < spans.size() && spans[end].segment == spans[begin].segment &&
           spans[end].begin < reach)
      reach = std::max(reach, spans[end++].end);
    if (end - begin > 1) {
      auto found = look_closely(rank, std::span(spans).subspan(begin, end - begin));
      if (!found || *found) return found;
    }
    begin = end;
  }
  return Two();
}

}  // namespace weft::weights
