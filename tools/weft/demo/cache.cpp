#include "demo/cache.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/free_memory.hpp"
#include "common/units.hpp"

namespace weft::tool {

namespace {

constexpr kv::LayerRange all_layers{0, ~std::uint32_t{0}};

/// First and last layer of all groups.
kv::LayerRange span_of(const kv::Layout& layout) {
  std::uint32_t first = ~std::uint32_t{0}, end = 0;
  for (const kv::Group& group : layout.groups()) {
    first = std::min(first, group.layers.front());
    end = std::max(end, group.layers.back() + 1);
  }
  return {first, end - first};
}

kv::LayerRange common(kv::LayerRange a, kv::LayerRange b) {
  const std::uint32_t first = std::max(a.first, b.first);
  const std::uint32_t end = std::min(a.first + a.count, b.first + b.count);
  return {first, end > first ? end - first : 0};
}

/// The heads of a field that a rank of the source sends to one of the destination. With more ranks
/// than heads, several hold the same: of these the one whose number leaves the same remainder.
kv::HeadRange sent(const kv::Field& field, kv::HeadRange here, const kv::Layout& src,
                   const kv::Layout& dst) {
  const auto held = [&](kv::Share tp) {
    // Heads and ranks on one scale.
    const std::uint64_t first = std::uint64_t{tp.rank} * field.heads / tp.size;
    const std::uint64_t end = (std::uint64_t{tp.rank + 1} * field.heads + tp.size - 1) / tp.size;
    return std::pair(first, end);
  };
  const kv::Share from = src.parallel().tp, to = dst.parallel().tp;
  const std::uint32_t replicas = std::max(1U, from.size / field.heads);
  if (from.rank % replicas != to.rank % replicas) return {here.first, 0};
  const auto [a, b] = held(from);
  const auto [c, d] = held(to);
  const std::uint64_t first = std::max(a, c), end = std::min(b, d);
  if (first >= end) return {here.first, 0};
  return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end - first)};
}

}  // namespace

Result<kv::Layout> CacheShape::layout() const {
  kv::LayoutOptions staged = options;
  if (pp.size > 1) staged.layers = kv::stage_layers(model.layers, pp);
  return model.layout(staged);
}

std::uint32_t CacheShape::blocks_for(std::uint64_t tokens) const {
  return static_cast<std::uint32_t>((tokens + options.tokens_per_block - 1) /
                                    options.tokens_per_block);
}

std::vector<std::uint32_t> blocks_needed(const kv::Layout& layout, std::uint64_t tokens) {
  std::vector<std::uint32_t> counts;
  for (const kv::Group& group : layout.groups()) {
    const std::uint64_t size = group.tokens_per_block;
    counts.push_back(size == 0 ? 1 : static_cast<std::uint32_t>((tokens + size - 1) / size));
  }
  return counts;
}

Shared shared_by(const kv::Layout& src, const kv::Layout& dst, const kv::Layout& own) {
  Shared shared;
  shared.layers = common(span_of(src), span_of(dst));
  for (std::size_t g = 0; g < own.groups().size(); ++g) {
    const kv::Group& group = own.groups()[g];
    shared.windows.push_back(group.window);
    auto& heads = shared.heads.emplace_back();
    for (std::size_t f = 0; f < group.fields.size(); ++f)
      heads.push_back(sent(group.fields[f], own.heads(g, f), src, dst));
  }
  return shared;
}

std::uint64_t bytes_of(const kv::Layout& own, const Shared& shared, std::uint64_t tokens) {
  std::uint64_t bytes = 0;
  for (std::size_t g = 0; g < own.groups().size(); ++g) {
    const kv::Group& group = own.groups()[g];
    const auto layers = static_cast<std::uint64_t>(
        std::count_if(group.layers.begin(), group.layers.end(), [&](std::uint32_t layer) {
          return layer >= shared.layers.first && layer - shared.layers.first < shared.layers.count;
        }));
    for (std::size_t f = 0; f < group.fields.size(); ++f) {
      const kv::Field& field = group.fields[f];
      std::uint64_t bits = 0;
      for (const kv::Piece& piece : field.vector)
        bits += std::uint64_t{piece.elements} * kv::bits_of(piece.type);
      const std::uint64_t each = field.tokens_per_row;
      const std::uint64_t rows =
          group.tokens_per_block == 0
              ? field.rows
              : (tokens + each - 1) / each - shared.first_token(g, tokens) / each;
      bytes += layers * shared.heads[g][f].count * rows * bits / 8;
    }
  }
  return bytes;
}

PagedCache::PagedCache(kv::Cache cache, PlacedSegment memory,
                       std::unique_ptr<BlockAllocator> blocks)
    : cache_(std::move(cache)),
      map_(cache_),
      memory_(std::move(memory)),
      blocks_(std::move(blocks)) {
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
  std::vector<std::uint32_t> blocks;
  for (const kv::Group& group : layout->groups()) blocks.push_back(group.blocks);
  auto cache = kv::Cache::contiguous(std::move(*layout));
  if (!cache) return fail(std::move(cache.error()));
  auto segment = PlacedSegment::make(engine, memory, bytes);
  if (!segment) return fail(std::move(segment.error()));
  PagedCache made(std::move(*cache), std::move(*segment),
                  std::make_unique<BlockAllocator>(std::move(blocks), seed));
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
  map_.each_stretch(
      table, all_layers, {},
      [&](std::size_t group, const Vector& first, std::uint64_t at, std::uint32_t rows) {
        const PageMap::Field& field = map_.field(group, first);
        const std::uint64_t length = field.vector * field.heads * rows;
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
  tool::fill(bytes(), map_, table, what, all_layers, stop);
  return store(table);
}

Result<Findings> PagedCache::verify(const BlockTable& table, const Expected& what,
                                    const std::stop_token& stop) const {
  return load(table).map(
      [&] { return tool::verify(bytes(), map_, table, what, all_layers, stop); });
}

Result<void> PagedCache::clear(const BlockTable& table, const std::stop_token& stop) {
  tool::clear(bytes(), map_, table, all_layers, stop);
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
  const auto blocks = blocks_of(table);
  // All that the blocks have room for.
  std::vector<kv::Blocks> whole = blocks;
  for (std::size_t g = 0; g < table.size(); ++g)
    if (const std::uint64_t size = layout().groups()[g].tokens_per_block; size != 0)
      whole[g].tokens = kv::TokenRange{0, size * table[g].size()};
  auto onto_itself = kv::plan(cache_, blocks, cache_, whole, {}, layers);
  if (!onto_itself) return fail(std::move(onto_itself.error()));
  std::vector<Range> ranges;
  ranges.reserve(onto_itself->copies.size());
  for (const kv::Copy& copy : onto_itself->copies) ranges.push_back({copy.dst_offset, copy.length});
  return ranges;
}

std::vector<kv::Blocks> blocks_of(const BlockTable& table) {
  std::vector<kv::Blocks> blocks;
  for (const auto& ids : table) blocks.push_back({.ids = ids});
  return blocks;
}

}  // namespace weft::tool
