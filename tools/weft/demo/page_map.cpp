#include "demo/page_map.hpp"

namespace weft::tool {

PageMap::PageMap(const kv::Cache& cache) {
  const auto groups = cache.layout().groups();
  for (std::size_t g = 0; g < groups.size(); ++g)
    groups_.push_back(strides(groups[g], cache.layout().heads(g), cache.bases()[g].offset));
}

PageMap::Strides PageMap::strides(const kv::Group& group, kv::HeadRange heads, std::uint64_t base) {
  Strides at;
  at.layers = group.layers;
  at.base = base;
  at.parts = group.parts == kv::Parts::latent ? 1 : 2;
  at.tokens = group.tokens_per_block;
  at.first_head = heads.first;
  at.heads = heads.count;
  at.vector = std::uint64_t{group.head_size} * group.element_size;
  const bool tokens_first = group.head_order == kv::HeadOrder::nhd;
  at.token = tokens_first ? at.vector * heads.count : at.vector;
  at.head = tokens_first ? at.vector : at.vector * group.tokens_per_block;

  const bool split = group.parts == kv::Parts::split;
  const std::uint64_t page = at.vector * heads.count * group.tokens_per_block;
  // Contiguous bytes of one layer in one block.
  const std::uint64_t of_layer = split ? page : page * at.parts;
  const std::uint64_t of_block =
      group.order == kv::Order::block_major ? of_layer * group.layers.size() : of_layer;
  const std::uint64_t padded = of_block + group.block_padding;
  at.block = (padded + group.block_alignment - 1) / group.block_alignment * group.block_alignment;
  at.part = split ? at.block * group.blocks : page;
  at.layer =
      group.order == kv::Order::block_major ? of_layer : at.block * group.blocks * (split ? 2 : 1);
  return at;
}

}  // namespace weft::tool
