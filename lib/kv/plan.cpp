#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <weft/kv.hpp>

#include "kv/compatible.hpp"
#include "kv/shape.hpp"
#include "kv/token_runs.hpp"

namespace weft::kv {

namespace {

/// Layers of a group by their index in it: [first, end).
struct LayerSpan {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
};

LayerSpan layers_in(const Group& group, std::optional<LayerRange> layers) noexcept {
  const auto index_of = [&](std::uint64_t layer) {
    const auto it = std::lower_bound(group.layers.begin(), group.layers.end(), layer);
    return static_cast<std::uint32_t>(it - group.layers.begin());
  };
  if (!layers) return {0, static_cast<std::uint32_t>(group.layers.size())};
  return {index_of(layers->first), index_of(std::uint64_t{layers->first} + layers->count)};
}

Result<void> check_layer_range(std::span<const Group> groups, LayerRange layers) {
  bool any = false;
  std::uint32_t last = 0;
  for (const Group& group : groups) {
    const LayerSpan span = layers_in(group, layers);
    any = any || span.first < span.end;
    last = std::max(last, group.layers.back());
  }
  if (!any || std::uint64_t{layers.first} + layers.count > std::uint64_t{last} + 1) {
    return fail(Code::invalid_argument,
                fmt::format("No such layers: {} from layer {} on, where the last layer is {}.",
                            layers.count, layers.first, last));
  }
  return {};
}

/// One side of a group, able to tell where things lie.
struct Place {
  Shape shape;
  std::span<const Base> bases;  ///< Of this group.
  std::uint32_t first_head;     ///< Of those to copy, within the rank's own.

  const Base& base(std::uint32_t layer, std::uint32_t part) const noexcept {
    return bases[layer * shape.layer_regions + part * shape.part_regions];
  }

  std::uint64_t offset(std::uint32_t layer, std::uint32_t part, std::uint32_t block,
                       std::uint32_t token) const noexcept {
    return base(layer, part).offset + layer * shape.layer + part * shape.part +
           block * shape.block + token * shape.token + first_head * shape.head;
  }
};

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

/// An index of a page to iterate over.
struct Loop {
  std::uint64_t count;
  std::uint64_t src_stride;
  std::uint64_t dst_stride;
};

/// Copies one token run of one page: as few pieces as the two orders inside the page allow.
class PageCopier {
 public:
  PageCopier(const Place& src, const Place& dst, std::uint32_t heads, Collector& out)
      : src_(src), dst_(dst), heads_(heads), out_(out) {}

  void copy(const TokenRun& run, std::uint32_t layer, std::uint32_t part) {
    Loop inner{heads_, src_.shape.head, dst_.shape.head};
    Loop outer{run.tokens, src_.shape.token, dst_.shape.token};
    if (outer.dst_stride < inner.dst_stride) std::swap(inner, outer);
    std::uint64_t length = src_.shape.vector;
    if (absorb(inner, length)) absorb(outer, length);

    const Copy first{src_.base(layer, part).region, dst_.base(layer, part).region,
                     src_.offset(layer, part, run.src_block, run.src_token),
                     dst_.offset(layer, part, run.dst_block, run.dst_token), length};
    for (std::uint64_t o = 0; o < outer.count; ++o) {
      for (std::uint64_t i = 0; i < inner.count; ++i) {
        Copy piece = first;
        piece.src_offset += o * outer.src_stride + i * inner.src_stride;
        piece.dst_offset += o * outer.dst_stride + i * inner.dst_stride;
        out_.add(piece);
      }
    }
  }

 private:
  /// Lengthens the piece by a loop that walks contiguous memory on both sides.
  static bool absorb(Loop& loop, std::uint64_t& length) noexcept {
    if (loop.count != 1 && (loop.src_stride != length || loop.dst_stride != length)) return false;
    length *= std::exchange(loop.count, 1);
    return true;
  }

  const Place& src_;
  const Place& dst_;
  std::uint32_t heads_;
  Collector& out_;
};

/// The runs that end in one destination block.
using BlockRuns = std::span<const TokenRun>;

std::vector<BlockRuns> by_block(std::span<const TokenRun> runs) {
  std::vector<BlockRuns> blocks;
  for (std::size_t begin = 0; begin < runs.size();) {
    std::size_t end = begin + 1;
    while (end < runs.size() && runs[end].dst_block == runs[begin].dst_block) ++end;
    blocks.push_back(runs.subspan(begin, end - begin));
    begin = end;
  }
  return blocks;
}

/// Walks layers, parts and blocks in the order in which they lie at the destination.
void copy_group(const Place& src, const Place& dst, std::uint32_t heads, std::uint32_t parts,
                LayerSpan layers, std::span<const TokenRun> runs, Collector& out) {
  enum Index : std::size_t { layer, part, block };
  struct Axis {
    Index index;
    std::uint64_t count;
    std::uint64_t stride;
  };
  constexpr auto own_region = std::numeric_limits<std::uint64_t>::max();
  const auto blocks = by_block(runs);
  std::array<Axis, 3> axes = {{
      {layer, layers.end - layers.first, dst.shape.layer_regions ? own_region : dst.shape.layer},
      {part, parts, dst.shape.part_regions ? own_region : dst.shape.part},
      {block, blocks.size(), dst.shape.block},
  }};
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return a.stride > b.stride; });

  PageCopier page(src, dst, heads, out);
  std::array<std::uint32_t, 3> at{};
  auto& i = at[axes[0].index];
  auto& j = at[axes[1].index];
  auto& k = at[axes[2].index];
  for (i = 0; i < axes[0].count; ++i) {
    for (j = 0; j < axes[1].count; ++j) {
      for (k = 0; k < axes[2].count; ++k) {
        for (const TokenRun& run : blocks[at[block]]) {
          page.copy(run, layers.first + at[layer], at[part]);
        }
      }
    }
  }
}

/// Where `heads`, which the rank holds, lie in a group of a cache.
Place place_of(const Cache& cache, std::size_t index, HeadRange heads) {
  const auto groups = cache.layout().groups();
  const HeadRange own = cache.layout().heads(index);
  std::size_t first_base = 0;
  for (const Group& before : groups.first(index)) first_base += regions_of(before);
  // The layout was checked at its creation: the shape fits.
  return {*shape_of(groups[index], own.count),
          cache.bases().subspan(first_base, regions_of(groups[index])), heads.first - own.first};
}

}  // namespace

Result<Plan> plan(const Cache& src, const Cache& dst, std::span<const Blocks> blocks,
                  std::optional<LayerRange> layers) {
  const auto groups = dst.layout().groups();
  if (auto ok = check_same_model(src.layout(), dst.layout()); !ok) {
    return fail(std::move(ok).error());
  }
  if (blocks.size() != groups.size()) {
    return fail(Code::invalid_argument,
                fmt::format("The caches have {} groups but blocks were given for {}.",
                            groups.size(), blocks.size()));
  }
  if (layers) {
    if (auto ok = check_layer_range(groups, *layers); !ok) return fail(std::move(ok).error());
  }

  Collector out;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Group& from = src.layout().groups()[i];
    const Group& to = groups[i];
    const auto tokens = tokens_to_copy(from, to, blocks[i], i);
    if (!tokens) return fail(tokens.error());
    const HeadRange heads =
        heads_to_send(to.kv_heads, src.layout().tensor_parallel(), dst.layout().tensor_parallel());
    if (heads.count == 0) continue;
    copy_group(place_of(src, i, heads), place_of(dst, i, heads), heads.count, parts_of(to),
               layers_in(to, layers), token_runs(from, to, blocks[i], *tokens), out);
  }
  return std::move(out).take();
}

}  // namespace weft::kv
