// A paged KV cache in one segment.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>
#include <weft/engine.hpp>
#include <weft/kv.hpp>
#include <weft/kv_models.hpp>
#include <weft/memory.hpp>

#include "common/pages.hpp"
#include "common/placed_segment.hpp"
#include "demo/block_allocator.hpp"
#include "demo/page_map.hpp"
#include "demo/pattern.hpp"

namespace weft::tool {

/// The description of a cache that both sides exchange.
struct CacheShape {
  kv::Model model;
  kv::LayoutOptions options;

  Result<kv::Layout> layout() const { return model.layout(options); }
  /// For `tokens` tokens.
  std::uint32_t blocks_for(std::uint64_t tokens) const;
};

/// The model's layers cut into `count` ranges of nearly equal size.
std::vector<kv::LayerRange> layer_groups(const kv::Model& model, std::uint32_t count);

/// The heads of each group that go from a rank of one layout to a rank of another.
std::vector<kv::HeadRange> shared_heads(const kv::Layout& src, const kv::Layout& dst);

/// Bytes of `tokens` tokens' vectors of these heads (for each group), in all layers.
std::uint64_t bytes_of(const kv::Layout& layout, std::span<const kv::HeadRange> heads,
                       std::uint64_t tokens);

/// Blocks of memory, free ones filled with canaries, and the arithmetic to find them. What a GPU's
/// memory is to hold is made in an image of it in host memory, and what it holds is checked there.
class PagedCache {
 public:
  /// Takes the memory, as check_memory() has it, and fills it with canaries, unless it is stopped.
  /// `out_of_memory` where the machine has less free.
  static Result<PagedCache> create(Engine& engine, const CacheShape& shape,
                                   const std::string& memory, std::uint64_t seed,
                                   const std::stop_token& stop);

  const kv::Cache& cache() const noexcept { return cache_; }
  const kv::Layout& layout() const noexcept { return cache_.layout(); }
  Segment& segment() noexcept { return memory_.segment(); }
  BlockAllocator& blocks() noexcept { return *blocks_; }

  // As pattern.hpp has them, of some blocks in all layers; from several threads, for blocks of
  // their own.
  Result<void> fill(const BlockTable& table, const Expected& what, const std::stop_token& stop);
  Result<Findings> verify(const BlockTable& table, const Expected& what,
                          const std::stop_token& stop) const;
  Result<void> clear(const BlockTable& table, const std::stop_token& stop);
  /// Checks that all of the memory holds nothing but canaries.
  Result<Findings> verify_canary(const std::stop_token& stop) const;

  /// Exactly the bytes of some blocks in some layers.
  Result<std::vector<Range>> ranges(const BlockTable& table, kv::LayerRange layers) const;

 private:
  PagedCache(kv::Cache cache, PlacedSegment memory, std::unique_ptr<BlockAllocator> blocks,
             kv::LayerRange all_layers);
  Result<void> clear_all(const std::stop_token& stop);
  std::span<std::byte> bytes() const noexcept { return image_ ? image_->span() : memory_.bytes(); }
  std::vector<Range> pages(const BlockTable& table) const;
  // Between the image and the GPU, where there is one.
  Result<void> store(const BlockTable& table);
  Result<void> load(const BlockTable& table) const;

  kv::Cache cache_;
  PageMap map_;
  PlacedSegment memory_;
  std::optional<Pages> image_;
  std::unique_ptr<BlockAllocator> blocks_;
  kv::LayerRange all_layers_;
};

/// One entry for each group, over tables that must outlive it.
std::vector<kv::Blocks> blocks_of(const BlockTable& src, const BlockTable& dst,
                                  std::optional<std::uint64_t> tokens);

}  // namespace weft::tool
