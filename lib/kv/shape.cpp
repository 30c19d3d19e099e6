#include "kv/shape.hpp"

#include <algorithm>

#include "kv/size.hpp"

namespace weft::kv {

std::optional<Shape> shape_of(const Group& group, std::uint32_t heads) noexcept {
  const std::uint32_t parts = parts_of(group);
  const std::uint64_t layers = group.layers.size();
  const bool split = group.parts == Parts::split;
  const bool block_major = group.order == Order::block_major;

  const Size vector = Size(group.head_size) * group.element_size;
  const Size row = vector * heads;                      // all heads of one token
  const Size column = vector * group.tokens_per_block;  // all tokens of one head
  const Size page = row * group.tokens_per_block;
  const Size layer_of_block = split ? page : page * parts;
  const Size content = block_major ? layer_of_block * layers : layer_of_block;
  const Size block = (content + group.block_padding).rounded_up(group.block_alignment);
  const Size pool = block * group.blocks;

  const bool layer_regions = has_layer_regions(group);
  const bool part_regions = has_part_regions(group);
  const Size part = split ? pool : page;
  const Size pools_of_layer = split && !part_regions ? pool * parts : pool;
  const Size layer = block_major ? layer_of_block : pools_of_layer;
  const Size region = block_major || layer_regions ? pools_of_layer : pools_of_layer * layers;
  if (!column.fits() || !layer.fits() || !part.fits() || !region.fits()) return std::nullopt;

  const bool nhd = group.head_order == HeadOrder::nhd;
  Shape shape;
  shape.vector = vector.value();
  shape.token = nhd ? row.value() : vector.value();
  shape.head = nhd ? vector.value() : column.value();
  shape.layer = layer_regions ? 0 : layer.value();
  shape.part = part_regions ? 0 : part.value();
  shape.block = block.value();
  shape.part_regions = part_regions ? 1 : 0;
  shape.layer_regions = layer_regions ? regions_of(group) / group.layers.size() : 0;
  shape.region_bytes = region.value();
  return shape;
}

HeadRange heads_of(std::uint32_t kv_heads, TensorParallel tp) noexcept {
  if (tp.size <= kv_heads) {
    const std::uint32_t count = kv_heads / tp.size;
    return {tp.rank * count, count};
  }
  const std::uint32_t replicas = tp.size / kv_heads;
  return {tp.rank / replicas, 1};
}

HeadRange heads_to_send(std::uint32_t kv_heads, TensorParallel src, TensorParallel dst) noexcept {
  const std::uint32_t replicas = src.size > kv_heads ? src.size / kv_heads : 1;
  // Destination ranks take turns among the replicas. With equal sizes each rank meets its own like.
  if (src.rank % replicas != dst.rank % replicas) return {};
  const HeadRange from = heads_of(kv_heads, src);
  const HeadRange to = heads_of(kv_heads, dst);
  const std::uint32_t first = std::max(from.first, to.first);
  const std::uint32_t end = std::min(from.first + from.count, to.first + to.count);
  return first < end ? HeadRange{first, end - first} : HeadRange{};
}

}  // namespace weft::kv
