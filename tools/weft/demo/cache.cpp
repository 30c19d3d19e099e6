#include "demo/cache.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/free_memory.hpp"
#include "common/units.hpp"

namespace weft::tool {

std::uint32_t CacheShape::blocks_for(std::uint64_t tokens) const {
  return static_cast<std::uint32_t>((tokens + options.tokens_per_block - 1) /
                                    options.tokens_per_block);
}

std::vector<kv::LayerRange> layer_groups(const kv::Model& model, std::uint32_t count) {
  count = std::clamp(count, 1U, model.layers);
  std::vector<kv::LayerRange> ranges;
  const auto start = [&](std::uint64_t i) {
    return static_cast<std::uint32_t>(i * model.layers / count);
  };
  for (std::uint32_t i = 0; i < count; ++i) ranges.push_back({start(i), start(i + 1) - start(i)});
  return ranges;
}

std::vector<kv::HeadRange> shared_heads(const kv::Layout& src, const kv::Layout& dst) {
  std::vector<kv::HeadRange> shared;
  for (std::size_t g = 0; g < dst.groups().size(); ++g) {
    const kv::HeadRange a = src.heads(g);
    const kv::HeadRange b = dst.heads(g);
    const std::uint32_t first = std::max(a.first, b.first);
    const std::uint32_t end = std::min(a.first + a.count, b.first + b.count);
    shared.push_back({first, end > first ? end - first : 0});
  }
  return shared;
}

std::uint64_t bytes_of(const kv::Layout& layout, std::span<const kv::HeadRange> heads,
                       std::uint64_t tokens) {
  std::uint64_t bytes = 0;
  for (std::size_t g = 0; g < heads.size(); ++g) {
    const kv::Group& group = layout.groups()[g];
    const std::uint64_t parts = group.parts == kv::Parts::latent ? 1 : 2;
    bytes += group.layers.size() * parts * heads[g].count * group.head_size * group.element_size;
  }
  return bytes * tokens;
}

PagedCache::PagedCache(kv::Cache cache, PlacedSegment memory,
                       std::unique_ptr<BlockAllocator> blocks, kv::LayerRange all_layers)
    : cache_(std::move(cache)),
      map_(cache_),
      memory_(std::move(memory)),
      blocks_(std::move(blocks)),
      all_layers_(all_layers) {
  if (memory_.gpu() != nullptr) image_.emplace(memory_.gpu()->size());
}

Result<PagedCache> PagedCache::create(Engine& engine, const CacheShape& shape,
                                      const std::string& memory, std::uint64_t seed,
                                      const std::stop_token& stop) {
  auto layout = shape.layout();
  if (!layout) return fail(std::move(layout.error()));
  const std::uint64_t bytes = layout->bytes();
  if (const auto free = free_memory(); free && bytes > *free)
    return fail(Code::out_of_memory,
                fmt::format("a cache of {} blocks takes {} and the machine has {} free; fewer "
                            "--blocks, --concurrency or --tokens take less",
                            shape.options.blocks, binary_bytes(bytes), binary_bytes(*free)));
  const std::size_t groups = layout->groups().size();
  auto cache = kv::Cache::contiguous(std::move(*layout));
  if (!cache) return fail(std::move(cache.error()));
  auto segment = PlacedSegment::make(engine, memory, bytes);
  if (!segment) return fail(std::move(segment.error()));
  PagedCache made(std::move(*cache), std::move(*segment),
                  std::make_unique<BlockAllocator>(groups, shape.options.blocks, seed),
                  {0, shape.model.layers});
  if (made.image_ && made.image_->empty())
    return fail(Code::out_of_memory, "no memory for the image of the GPU's cache");
  if (auto cleared = made.clear_all(stop); !cleared) return fail(std::move(cleared.error()));
  return made;
}

Result<void> PagedCache::clear_all(const std::stop_token& stop) {
  tool::clear(bytes(), stop);
  return memory_.gpu() != nullptr ? memory_.gpu()->write(bytes()) : Result<void>();
}

/// As PageMap finds them: they are checked, and so is the code of kv::plan.
std::vector<Range> PagedCache::pages(const BlockTable& table) const {
  std::vector<Range> ranges;
  map_.each_page(table, all_layers_, {}, [&](std::size_t group, const Vector&, std::uint64_t at) {
    const std::uint64_t length = map_.page_bytes(group);
    if (!ranges.empty() && ranges.back().offset + ranges.back().length == at)
      ranges.back().length += length;
    else
      ranges.push_back({at, length});
  });
  return ranges;
}

Result<void> PagedCache::store(const BlockTable& table) {
  GpuMemory* const gpu = memory_.gpu();
  return gpu != nullptr ? gpu->write(bytes(), pages(table)) : Result<void>();
}

Result<void> PagedCache::load(const BlockTable& table) const {
  const GpuMemory* const gpu = memory_.gpu();
  return gpu != nullptr ? gpu->read(bytes(), pages(table)) : Result<void>();
}

Result<void> PagedCache::fill(const BlockTable& table, const Expected& what,
                              const std::stop_token& stop) {
  tool::fill(bytes(), map_, table, what, all_layers_, stop);
  return store(table);
}

Result<Findings> PagedCache::verify(const BlockTable& table, const Expected& what,
                                    const std::stop_token& stop) const {
  return load(table).map(
      [&] { return tool::verify(bytes(), map_, table, what, all_layers_, stop); });
}

Result<void> PagedCache::clear(const BlockTable& table, const std::stop_token& stop) {
  tool::clear(bytes(), map_, table, all_layers_, stop);
  return store(table);
}

Result<Findings> PagedCache::verify_canary(const std::stop_token& stop) const {
  const GpuMemory* const gpu = memory_.gpu();
  const auto loaded = gpu != nullptr ? gpu->read(bytes()) : Result<void>();
  if (!loaded) return fail(loaded.error());
  return tool::verify_canary(bytes(), 0, stop);
}

Result<std::vector<Range>> PagedCache::ranges(const BlockTable& table,
                                              kv::LayerRange layers) const {
  auto onto_itself = kv::plan(cache_, cache_, blocks_of(table, table, {}), layers);
  if (!onto_itself) return fail(std::move(onto_itself.error()));
  std::vector<Range> ranges;
  ranges.reserve(onto_itself->copies.size());
  for (const kv::Copy& copy : onto_itself->copies) ranges.push_back({copy.dst_offset, copy.length});
  return ranges;
}

std::vector<kv::Blocks> blocks_of(const BlockTable& src, const BlockTable& dst,
                                  std::optional<std::uint64_t> tokens) {
  std::vector<kv::Blocks> blocks;
  for (std::size_t g = 0; g < src.size(); ++g) blocks.push_back({src[g], dst[g], tokens});
  return blocks;
}

}  // namespace weft::tool
