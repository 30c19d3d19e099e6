#include "demo/page_map.hpp"

namespace weft::tool {
namespace {

/// FNV-1a.
std::uint64_t code_of(const std::string& name) {
  std::uint64_t code = 0xcbf29ce484222325;
  for (const char letter : name) code = (code ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return code;
}

PageMap::Field describe(const kv::Group& group, const kv::Field& field, kv::HeadRange heads) {
  PageMap::Field at;
  at.name = field.name;
  at.code = code_of(field.name);
  std::uint64_t bits = 0;
  for (const kv::Piece& piece : field.vector)
    bits += std::uint64_t{piece.elements} * kv::bits_of(piece.type);
  at.vector = bits / 8;
  const bool state = group.tokens_per_block == 0;
  at.tokens_per_row = state ? 0 : field.tokens_per_row;
  at.rows = state ? field.rows : group.tokens_per_block / field.tokens_per_row;
  at.first_head = heads.first;
  at.heads = heads.count;
  return at;
}

std::uint64_t padded(const kv::Group& group, std::uint64_t bytes) {
  const std::uint64_t step = group.block_alignment;
  return (bytes + group.block_padding + step - 1) / step * step;
}

}  // namespace

PageMap::PageMap(const kv::Cache& cache) {
  for (std::size_t g = 0; g < cache.layout().groups().size(); ++g)
    groups_.push_back(place(cache.layout(), g, cache.bases()[g].offset));
}

PageMap::Group PageMap::place(const kv::Layout& layout, std::size_t index, std::uint64_t base) {
  const kv::Group& group = layout.groups()[index];
  Group placed{group.layers, {}};
  auto& fields = placed.fields;
  for (std::size_t f = 0; f < group.fields.size(); ++f)
    fields.push_back(describe(group, group.fields[f], layout.heads(index, f)));

  const bool split = group.placement == kv::Placement::split;
  const bool block_major = group.order == kv::Order::block_major;
  const std::uint64_t layers = group.layers.size();
  std::uint64_t in_block = 0;  // of one layer, fused
  std::uint64_t pools = 0;     // of one layer, or of all where blocks have all layers; split
  for (std::size_t first = 0; first < fields.size();) {
    std::size_t end = first + 1;
    while (end < fields.size() && group.fields[end].beside) ++end;
    std::uint64_t row = 0;  // of all fields beside one another
    for (std::size_t f = first; f < end; ++f) row += fields[f].vector * fields[f].heads;
    const std::uint64_t page = row * fields[first].rows;
    const std::uint64_t block = padded(group, block_major ? page * layers : page);
    std::uint64_t beside = 0;
    for (std::size_t f = first; f < end; ++f) {
      Field& at = fields[f];
      const bool heads_first = group.head_order == kv::HeadOrder::hnd;
      at.row = heads_first ? at.vector : row;
      at.head = heads_first ? at.vector * at.rows : at.vector;
      at.apart = end == first + 1;
      at.offset = base + (split ? pools : in_block) + beside;
      at.block = block;
      at.layer = page;
      beside += at.vector * at.heads;
    }
    in_block += page;
    pools += block * group.blocks;
    first = end;
  }
  const std::uint64_t fused = padded(group, block_major ? in_block * layers : in_block);
  for (Field& at : fields) {
    if (!split) at.block = fused;
    if (!split && block_major) at.layer = in_block;
    if (!block_major) at.layer = split ? pools : fused * group.blocks;
  }
  return placed;
}

}  // namespace weft::tool
