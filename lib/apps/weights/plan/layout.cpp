#include "weights/plan/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace weft::weights {

namespace {

// Segments are far smaller; sums of two such numbers do not overflow.
constexpr std::uint64_t greatest = std::uint64_t{1} << 62;

/// Stable, without memory of its own; gcc 12 takes std::sort of a small array for too large.
template <typename Iterator, typename Before>
void sort_few(Iterator begin, Iterator end, Before before) {
  for (Iterator next = begin; next != end; ++next)
    std::rotate(std::upper_bound(begin, next, *next, before), next, next + 1);
}

/// An index of the box to iterate over.
struct Loop {
  std::uint64_t count = 1;
  std::uint64_t src_stride = 0;
  std::uint64_t dst_stride = 0;
};

/// A run that is contiguous on both sides, and the loops around it, the outermost first.
struct Nest {
  Piece run;
  std::array<Loop, Dims::most> loops;
  std::size_t depth = 0;

  void add(const Loop& loop) noexcept {
    if (loop.count == 1) return;
    if (depth > 0 && loops[depth - 1].src_stride == loop.src_stride * loop.count &&
        loops[depth - 1].dst_stride == loop.dst_stride * loop.count) {
      loops[depth - 1] = {loops[depth - 1].count * loop.count, loop.src_stride, loop.dst_stride};
      return;
    }
    loops[depth++] = loop;
  }
  void absorb() noexcept {
    while (depth > 0 && loops[depth - 1].src_stride == run.length &&
           loops[depth - 1].dst_stride == run.length)
      run.length *= loops[--depth].count;
  }
  /// The longest loop becomes the piece's own: then there are the fewest pieces.
  void take_longest() noexcept {
    if (depth == 0) return;
    const auto end = loops.begin() + static_cast<std::ptrdiff_t>(depth);
    const auto longest = std::max_element(
        loops.begin(), end, [](const Loop& a, const Loop& b) { return a.count < b.count; });
    run.count = longest->count;
    run.src_stride = longest->src_stride;
    run.dst_stride = longest->dst_stride;
    std::move(longest + 1, end, longest);
    --depth;
  }
  std::uint64_t pieces() const noexcept {
    std::uint64_t count = 1;
    for (std::size_t i = 0; i < depth; ++i) count *= loops[i].count;
    return count;
  }
};

Nest nest_of(const Box& box, const Shard& src, const Shard& dst) noexcept {
  const Dims from = strides_of(src), to = strides_of(dst);
  Nest nest;
  nest.run = {src.segment, dst.segment, src.offset, dst.offset, bytes_of(src.dtype)};
  std::array<Loop, Dims::most> loops;
  const std::size_t dimensions = box.begin.size();
  for (std::size_t d = 0; d < dimensions; ++d) {
    nest.run.src_offset += (box.begin[d] - src.begin[d]) * from[d];
    nest.run.dst_offset += (box.begin[d] - dst.begin[d]) * to[d];
    loops[d] = {box.extent[d], from[d], to[d]};
  }
  const auto end = loops.begin() + static_cast<std::ptrdiff_t>(dimensions);
  const auto outer = [](const Loop& a, const Loop& b) { return a.dst_stride > b.dst_stride; };
  sort_few(loops.begin(), end, outer);
  for (std::size_t d = 0; d < dimensions; ++d) nest.add(loops[d]);
  nest.absorb();
  nest.take_longest();
  return nest;
}

/// The outermost loop comes first.
void expand(std::span<const Loop> loops, Piece piece, std::vector<Piece>& pieces) {
  if (loops.empty()) return pieces.push_back(piece);
  const Loop& loop = loops.front();
  for (std::uint64_t i = 0; i < loop.count; ++i) {
    expand(loops.subspan(1), piece, pieces);
    piece.src_offset += loop.src_stride;
    piece.dst_offset += loop.dst_stride;
  }
}

/// False where the product is too great.
bool multiply(std::uint64_t& product, std::uint64_t factor) noexcept {
  if (factor != 0 && product > greatest / factor) return false;
  product *= factor;
  return true;
}

bool fits(std::uint64_t start, const Dims& extent, const Dims& strides,
          std::uint64_t element) noexcept {
  std::uint64_t end = start;
  for (std::size_t d = 0; d < extent.size(); ++d) {
    std::uint64_t last = extent[d] - 1;
    if (!multiply(last, strides[d]) || end > greatest - last) return false;
    end += last;
  }
  return end <= greatest - element;
}

/// Whether no two elements share a byte: each stride steps over all that lies inside of it.
bool elements_apart(const Dims& extent, const Dims& strides, std::uint64_t element) {
  std::array<std::pair<std::uint64_t, std::uint64_t>, Dims::most> loops;  // stride, extent
  std::size_t depth = 0;
  for (std::size_t d = 0; d < extent.size(); ++d)
    if (extent[d] > 1) loops[depth++] = {strides[d], extent[d]};
  sort_few(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(depth), std::less<>());
  std::uint64_t inside = element;
  for (std::size_t i = 0; i < depth; ++i) {
    const auto& [stride, count] = loops[i];
    if (stride < inside) return false;
    inside = stride * (count - 1) + inside;
  }
  return true;
}

}  // namespace

Dims strides_of(const Shard& shard) noexcept {
  if (!shard.strides.empty()) return shard.strides;
  Dims strides = shard.extent;
  std::uint64_t bytes = bytes_of(shard.dtype);
  for (std::size_t d = shard.extent.size(); d-- > 0;) {
    strides[d] = bytes;
    bytes *= shard.extent[d];
  }
  return strides;
}

std::uint64_t bytes_of(const Shard& shard) noexcept {
  return volume(shard.extent) * bytes_of(shard.dtype);
}

std::uint64_t end_of(const Shard& shard) noexcept {
  if (shard.strides.empty()) return shard.offset + bytes_of(shard);
  std::uint64_t end = shard.offset + bytes_of(shard.dtype);
  for (std::size_t d = 0; d < shard.extent.size(); ++d)
    end += (shard.extent[d] - 1) * shard.strides[d];
  return end;
}

std::string objection_to(const Shard& shard) {
  const std::size_t dimensions = shard.shape.size();
  if (dimensions > Dims::most)
    return fmt::format("it has {} dimensions, and {} are the most", dimensions, Dims::most);
  if (shard.begin.size() != dimensions || shard.extent.size() != dimensions)
    return fmt::format("begin and extent must have a number for each of {} dimensions", dimensions);
  std::uint64_t bytes = bytes_of(shard.dtype);
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (shard.extent[d] == 0) return fmt::format("its slice is empty in dimension {}", d);
    if (shard.extent[d] > shard.shape[d] || shard.begin[d] > shard.shape[d] - shard.extent[d])
      return fmt::format("its slice reaches beyond the tensor in dimension {}", d);
    if (!multiply(bytes, shard.shape[d])) return "the tensor is larger than any memory";
  }
  if (!shard.strides.empty() && shard.strides.size() != dimensions)
    return fmt::format("strides must have a number for each of {} dimensions", dimensions);
  const std::string_view beyond = "it ends beyond any segment";
  if (shard.strides.empty())
    return shard.offset > greatest - bytes_of(shard) ? std::string(beyond) : std::string();
  const std::uint32_t element = bytes_of(shard.dtype);
  if (!fits(shard.offset, shard.extent, shard.strides, element)) return std::string(beyond);
  if (!elements_apart(shard.extent, shard.strides, element))
    return "its strides let elements overlap";
  return {};
}

void copy_box(const Box& box, const Shard& src, const Shard& dst, std::vector<Piece>& pieces) {
  const Nest nest = nest_of(box, src, dst);
  expand(std::span(nest.loops).first(nest.depth), nest.run, pieces);
}

std::uint64_t count_pieces(const Box& box, const Shard& src, const Shard& dst) noexcept {
  return nest_of(box, src, dst).pieces();
}

std::uint64_t count_runs(const Shard& shard) noexcept {
  const Nest nest = nest_of({shard.begin, shard.extent}, shard, shard);
  return nest.pieces() * nest.run.count;
}

}  // namespace weft::weights
