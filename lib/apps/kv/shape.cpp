#include "kv/shape.hpp"

#include <algorithm>

#include "kv/share.hpp"
#include "kv/size.hpp"

namespace weft::kv {

namespace {

/// Fields beside one another: first to end - 1.
struct StripShape {
  std::size_t first = 0;
  std::size_t end = 0;
  Size page = 0;   ///< Of all its fields, in one block of one layer.
  Size block = 0;  ///< From block to block, if the strip has a pool.
  Size pool = 0;   ///< All blocks, likewise.
};

std::vector<StripShape> strips_of(const Group& group) {
  std::vector<StripShape> strips;
  for (std::size_t i = 0; i < group.fields.size(); ++i) {
    if (strips.empty() || !group.fields[i].beside) strips.push_back({i, i});
    strips.back().end = i + 1;
  }
  return strips;
}

Size padded(const Group& group, Size content) {
  return (content + group.block_padding).rounded_up(group.block_alignment);
}

/// Fills in what lies inside a page. Returns the page's bytes.
Size place_in_page(const Group& group, Share tp, StripShape strip, std::size_t number,
                   std::vector<FieldShape>& shapes) {
  const std::uint32_t rows = rows_of(group, group.fields[strip.first]);
  Size row = 0;
  for (std::size_t i = strip.first; i < strip.end; ++i) {
    const Field& field = group.fields[i];
    FieldShape& shape = shapes[i];
    shape.strip = number;
    shape.vector = vector_bits(field) / 8;
    shape.offset = row.value();
    const bool nhd = group.head_order == HeadOrder::nhd;
    shape.head = nhd ? shape.vector : (Size(shape.vector) * rows).value();
    row = row + Size(shape.vector) * heads_of(field.heads, tp).count;
  }
  for (std::size_t i = strip.first; i < strip.end; ++i)
    shapes[i].row = group.head_order == HeadOrder::nhd ? row.value() : shapes[i].vector;
  return row * rows;
}

}  // namespace

std::uint64_t vector_bits(const Field& field) noexcept {
  // At most 8 pieces of 2^32 elements of 32 bits, as Layout::create checks.
  std::uint64_t bits = 0;
  for (const Piece& piece : field.vector)
    bits += std::uint64_t{piece.elements} * bits_of(piece.type);
  return bits;
}

std::uint32_t rows_of(const Group& group, const Field& field) noexcept {
  return is_state(group) ? field.rows : group.tokens_per_block / field.tokens_per_row;
}

std::optional<GroupShape> shape_of(const Group& group, Share tp) {
  const std::uint64_t layers = group.layers.size();
  const bool block_major = group.order == Order::block_major;
  const bool fused = group.placement == Placement::fused;
  const std::uint64_t layers_of_block = block_major ? layers : 1;

  GroupShape shape;
  shape.fields.resize(group.fields.size());
  auto strips = strips_of(group);
  Size content = 0;  // of a block in one layer
  for (std::size_t i = 0; i < strips.size(); ++i) {
    strips[i].page = place_in_page(group, tp, strips[i], i, shape.fields);
    content = content + strips[i].page;
  }
  Size pools = 0;  // of one layer, or of all where blocks have all layers
  for (StripShape& strip : strips) {
    strip.block = padded(group, (fused ? content : strip.page) * layers_of_block);
    strip.pool = strip.block * group.blocks;
    pools = fused ? strip.pool : pools + strip.pool;
  }

  const bool layer_regions = has_layer_regions(group);
  const bool field_regions = has_field_regions(group);
  const std::uint64_t layers_of_region = block_major || layer_regions ? 1 : layers;
  if (!field_regions) {
    shape.region_bytes.assign(layer_regions ? layers : 1, (pools * layers_of_region).value());
  } else {
    for (std::uint64_t layer = 0; layer < (layer_regions ? layers : 1); ++layer)
      for (const StripShape& strip : strips)
        shape.region_bytes.push_back((strip.pool * layers_of_region).value());
  }

  bool fits = (pools * layers_of_region).fits();
  Size before = 0;
  for (std::size_t i = 0; i < strips.size(); ++i) {
    const StripShape& strip = strips[i];
    const Size of_layer = fused ? content : strip.page;
    const Size layer = block_major ? of_layer : field_regions ? strip.pool : pools;
    fits = fits && layer.fits();
    for (std::size_t f = strip.first; f < strip.end; ++f) {
      FieldShape& field = shape.fields[f];
      field.offset += field_regions ? 0 : before.value();
      field.block = strip.block.value();
      field.layer = layer_regions ? 0 : layer.value();
      field.region = field_regions ? i : 0;
      field.layer_regions = !layer_regions ? 0 : field_regions ? strips.size() : 1;
    }
    before = before + (fused ? strip.page : strip.pool);
  }
  if (!fits) return std::nullopt;
  return shape;
}

}  // namespace weft::kv
