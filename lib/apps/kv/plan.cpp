#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <weft/kv.hpp>

#include "kv/layer_range.hpp"
#include "kv/match.hpp"
#include "kv/shape.hpp"
#include "kv/share.hpp"
#include "kv/token_runs.hpp"

namespace weft::kv {

namespace {

/// Collects copies and merges each with its predecessor where both sides are adjacent. Pieces come
/// in ascending order of destination within each region, so no chance to merge is missed.
class Collector {
 public:
  void add(const Copy& piece) {
    ++plan_.pieces;
    plan_.bytes += piece.length;
    if (!plan_.copies.empty() && continues(plan_.copies.back(), piece)) {
      plan_.copies.back().length += piece.length;
    } else {
      plan_.copies.push_back(piece);
    }
  }

  Plan take() && { return std::move(plan_); }

 private:
  static bool continues(const Copy& a, const Copy& b) noexcept {
    return a.src_region == b.src_region && a.dst_region == b.dst_region &&
           a.src_offset + a.length == b.src_offset && a.dst_offset + a.length == b.dst_offset;
  }

  Plan plan_;
};

/// One side of a group, able to tell where its layers lie.
struct Place {
  GroupShape shape;
  std::span<const Base> bases;  ///< Of this group.
};

/// Where the heads to copy of a field lie on one side.
struct Lane {
  FieldShape shape;  ///< With `offset` at the first of these heads.
  std::span<const Base> bases;

  const Base& base(std::uint32_t layer) const noexcept {
    return bases[shape.region + layer * shape.layer_regions];
  }
  /// Whether `next` lies beside this lane in every row, behind `bytes`.
  bool goes_on_in(const Lane& next, std::uint64_t bytes) const noexcept {
    return shape.region == next.shape.region && shape.row == next.shape.row &&
           shape.block == next.shape.block && shape.layer == next.shape.layer &&
           shape.offset + bytes == next.shape.offset;
  }
};

/// Where a flow's field lies in one layer: in block 0, at its first row.
struct Start {
  std::uint32_t src_region = 0;
  std::uint32_t dst_region = 0;
  std::uint64_t src = 0;
  std::uint64_t dst = 0;
};

/// A field on its way: `heads` vectors of `bytes` in each row.
struct Flow {
  Lane src, dst;
  std::uint64_t bytes = 0;
  std::uint64_t heads = 0;
  std::uint32_t tokens_per_row = 1;
  std::uint32_t state_rows = 0;  ///< 0: the tokens decide.

  /// Rows follow one another without a gap on both sides.
  bool solid() const noexcept {
    return heads == 1 && src.shape.row == bytes && dst.shape.row == bytes;
  }
  Start start(std::uint32_t src_layer, std::uint32_t dst_layer) const noexcept {
    const Base& from = src.base(src_layer);
    const Base& to = dst.base(dst_layer);
    return {from.region, to.region, from.offset + src.shape.offset + src_layer * src.shape.layer,
            to.offset + dst.shape.offset + dst_layer * dst.shape.layer};
  }
  /// One vector for all heads, where they are neighbours on both sides.
  void join_heads() noexcept {
    if (src.shape.head == bytes && dst.shape.head == bytes) bytes *= std::exchange(heads, 1);
  }
  /// Takes the flow that is a neighbour on both sides in.
  bool join(const Flow& next) noexcept {
    if (heads != 1 || next.heads != 1 || tokens_per_row != next.tokens_per_row ||
        dst.shape.strip != next.dst.shape.strip || src.shape.strip != next.src.shape.strip ||
        !src.goes_on_in(next.src, bytes) || !dst.goes_on_in(next.dst, bytes))
      return false;
    bytes += next.bytes;
    return true;
  }
};

/// An index of a page to iterate over.
struct Loop {
  std::uint64_t count;
  std::uint64_t src_stride;
  std::uint64_t dst_stride;

  /// Lengthens a piece by this loop, if it walks contiguous memory on both sides.
  bool absorb(std::uint64_t& length) noexcept {
    if (count != 1 && (src_stride != length || dst_stride != length)) return false;
    length *= std::exchange(count, 1);
    return true;
  }
};

/// Indices of a layer in its group.
struct LayerPair {
  std::uint32_t src = 0;
  std::uint32_t dst = 0;
};

/// Rows of one block on either side.
struct RowRun {
  std::uint32_t src = 0;
  std::uint32_t dst = 0;
  std::uint32_t count = 0;
};

RowRun rows_of(const Flow& flow, const TokenRun& run) noexcept {
  if (flow.state_rows != 0) return {0, 0, flow.state_rows};
  const std::uint32_t per_row = flow.tokens_per_row;
  if (per_row == 1) return {run.src_token, run.dst_token, run.tokens};
  // A row of which some tokens are copied is copied. Both sides' rows begin with the same tokens.
  const std::uint32_t before = run.dst_token % per_row;
  return {run.src_token / per_row, run.dst_token / per_row,
          (before + run.tokens + per_row - 1) / per_row};
}

void copy_rows(const Flow& flow, RowRun rows, const TokenRun& run, const Start& start,
               Collector& out) {
  const FieldShape& src = flow.src.shape;
  const FieldShape& dst = flow.dst.shape;
  Copy first{start.src_region, start.dst_region,
             start.src + run.src_block * src.block + rows.src * src.row,
             start.dst + run.dst_block * dst.block + rows.dst * dst.row, flow.bytes};
  if (flow.solid()) {
    first.length *= rows.count;
    return out.add(first);
  }
  Loop inner{flow.heads, src.head, dst.head};
  Loop outer{rows.count, src.row, dst.row};
  if (outer.dst_stride < inner.dst_stride) std::swap(inner, outer);
  if (inner.absorb(first.length)) outer.absorb(first.length);
  for (std::uint64_t o = 0; o < outer.count; ++o) {
    for (std::uint64_t i = 0; i < inner.count; ++i) {
      Copy piece = first;
      piece.src_offset += o * outer.src_stride + i * inner.src_stride;
      piece.dst_offset += o * outer.dst_stride + i * inner.dst_stride;
      out.add(piece);
    }
  }
}

/// Flows beside one another at the destination.
using Strip = std::span<const Flow>;

/// Copies one token run of one page: as few pieces as the two orders inside the page allow.
/// `starts` has an entry for each flow.
void copy_page(Strip strip, const TokenRun& run, const Start* starts, Collector& out) {
  const RowRun rows = rows_of(strip.front(), run);
  if (strip.size() == 1) return copy_rows(strip.front(), rows, run, *starts, out);
  for (std::uint32_t row = 0; row < rows.count; ++row)
    for (std::size_t i = 0; i < strip.size(); ++i)
      copy_rows(strip[i], {rows.src + row, rows.dst + row, 1}, run, starts[i], out);
}

/// Consecutive items of equal key.
template <typename Item, typename Key>
std::vector<std::span<const Item>> grouped(const std::vector<Item>& items, Key key) {
  std::vector<std::span<const Item>> groups;
  for (std::size_t begin = 0; begin < items.size();) {
    std::size_t end = begin + 1;
    while (end < items.size() && key(items[end]) == key(items[begin])) ++end;
    groups.push_back(std::span(items).subspan(begin, end - begin));
    begin = end;
  }
  return groups;
}

/// Walks layers, strips and blocks in the order in which they lie at the destination.
void copy_group(const Group& dst, const std::vector<Flow>& flows,
                const std::vector<LayerPair>& layers, const std::vector<TokenRun>& runs,
                Collector& out) {
  const auto strips = grouped(flows, [](const Flow& flow) { return flow.dst.shape.strip; });
  const auto blocks = grouped(runs, [](const TokenRun& run) { return run.dst_block; });
  std::vector<Start> starts;  // of all flows in a layer, layer by layer
  for (const LayerPair& layer : layers)
    for (const Flow& flow : flows) starts.push_back(flow.start(layer.src, layer.dst));

  const auto copy = [&](Strip strip, std::span<const TokenRun> block, std::size_t layer) {
    const Start* first = &starts[layer * flows.size() + (strip.data() - flows.data())];
    for (const TokenRun& run : block) copy_page(strip, run, first, out);
  };
  const bool block_major = dst.order == Order::block_major;
  if (dst.placement == Placement::split && block_major) {
    for (const Strip strip : strips)
      for (const auto& block : blocks)
        for (std::size_t layer = 0; layer < layers.size(); ++layer) copy(strip, block, layer);
  } else if (dst.placement == Placement::split) {
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
      for (const Strip strip : strips)
        for (const auto& block : blocks) copy(strip, block, layer);
  } else if (block_major) {
    for (const auto& block : blocks)
      for (std::size_t layer = 0; layer < layers.size(); ++layer)
        for (const Strip strip : strips) copy(strip, block, layer);
  } else {
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
      for (const auto& block : blocks)
        for (const Strip strip : strips) copy(strip, block, layer);
  }
}

Place place_of(const Cache& cache, std::size_t index) {
  const Layout& layout = cache.layout();
  std::size_t first_base = 0;
  for (const Group& before : layout.groups().first(index))
    first_base += shape_of(before, layout.parallel().tp)->region_bytes.size();
  // The layout was checked at its creation: the shape fits.
  Place place{*shape_of(layout.groups()[index], layout.parallel().tp), {}};
  place.bases = cache.bases().subspan(first_base, place.shape.region_bytes.size());
  return place;
}

Lane lane_of(const Place& place, std::uint32_t field, HeadRange own, HeadRange heads) noexcept {
  Lane lane{place.shape.fields[field], place.bases};
  lane.shape.offset += (heads.first - own.first) * lane.shape.head;
  return lane;
}

/// The fields of a match that the source has to send, in the order of the destination.
std::vector<Flow> flows_of(const Cache& src, const Cache& dst, const Match& match) {
  std::vector<Flow> flows;
  const Place from = place_of(src, match.src_group), to = place_of(dst, match.dst_group);
  const Group& group = dst.layout().groups()[match.dst_group];
  for (const auto& [i, j] : match.fields) {
    const Field& field = group.fields[j];
    const HeadRange heads = heads_to_send(field.heads, src.layout().parallel(),
                                          dst.layout().parallel(), is_state(group));
    if (heads.count == 0) continue;
    Flow flow{lane_of(from, i, src.layout().heads(match.src_group, i), heads),
              lane_of(to, j, dst.layout().heads(match.dst_group, j), heads),
              vector_bits(field) / 8,
              heads.count,
              field.tokens_per_row,
              is_state(group) ? field.rows : 0};
    flow.join_heads();
    if (flows.empty() || !flows.back().join(flow)) flows.push_back(std::move(flow));
  }
  return flows;
}

std::vector<LayerPair> layer_pairs(const Group& dst, const Match& match,
                                   std::optional<LayerRange> range) {
  std::vector<LayerPair> layers;
  for (const auto& [i, j] : match.layers)
    if (contains(range, dst.layers[j])) layers.push_back({i, j});
  return layers;
}

std::vector<Side> sides_of(const char* name, const Cache& cache, std::span<const Blocks> blocks) {
  std::vector<Side> sides;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    sides.push_back(
        {name, cache.layout().groups()[i], i, blocks[i], Stripes(cache.layout().parallel())});
  return sides;
}

Result<void> check_number(const char* name, const Cache& cache, std::span<const Blocks> blocks) {
  const std::size_t groups = cache.layout().groups().size();
  if (blocks.size() == groups) return {};
  return fail(Code::invalid_argument,
              fmt::format("The {} has {} groups but blocks were given for {}.", name, groups,
                          blocks.size()));
}

Result<void> check_lists(const std::vector<Side>& src, const std::vector<Side>& dst) {
  for (const Side& side : src)
    if (auto ok = check_blocks(side); !ok) return ok;
  for (const Side& side : dst)
    if (auto ok = check_blocks(side).and_then([&] { return check_distinct(side); }); !ok) return ok;
  return {};
}

/// What goes from block to block of one group.
Result<std::vector<TokenRun>> runs_of(const Side& src, const Side& dst, TokenRange tokens) {
  if (!is_state(dst.group))
    return tokens_to_copy(src, dst, tokens).map([&](TokenRange range) {
      return token_runs(src, dst, range);
    });
  const bool held = dst.blocks.tokens && dst.blocks.tokens->count == 0;
  if (dst.blocks.ids.empty() || held) return std::vector<TokenRun>();
  if (src.blocks.ids.empty())
    return fail(Code::invalid_argument,
                fmt::format("The state of group {} has a block at the destination and none in "
                            "group {} at the source.",
                            dst.index, src.index));
  return std::vector<TokenRun>{{src.blocks.ids.front(), 0, dst.blocks.ids.front(), 0, 0}};
}

}  // namespace

Result<Plan> plan(const Cache& src, std::span<const Blocks> src_blocks, const Cache& dst,
                  std::span<const Blocks> dst_blocks, TokenRange tokens,
                  std::optional<LayerRange> layers) {
  const auto matches = matches_of(src.layout(), dst.layout());
  if (!matches) return fail(matches.error());
  if (auto ok = check_number("source", src, src_blocks).and_then([&] {
        return check_number("destination", dst, dst_blocks);
      });
      !ok)
    return fail(std::move(ok.error()));
  if (auto ok = check_layer_range(dst.layout(), layers); !ok) return fail(std::move(ok.error()));
  const auto here = sides_of("source", src, src_blocks);
  const auto there = sides_of("destination", dst, dst_blocks);
  if (auto ok = check_lists(here, there); !ok) return fail(std::move(ok.error()));

  Collector out;
  for (const Match& match : *matches) {
    const auto runs = runs_of(here[match.src_group], there[match.dst_group], tokens);
    if (!runs) return fail(runs.error());
    const Group& group = dst.layout().groups()[match.dst_group];
    copy_group(group, flows_of(src, dst, match), layer_pairs(group, match, layers), *runs, out);
  }
  return std::move(out).take();
}

}  // namespace weft::kv
