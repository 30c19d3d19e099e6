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
#include <weft/segment.hpp>

#include "common/pages.hpp"
#include "common/placed_segment.hpp"
#include "demo/block_allocator.hpp"
#include "demo/page_map.hpp"
#include "demo/pattern.hpp"

namespace weft::tool {

/// The description of a cache that both sides exchange.
struct CacheShape {
  kv::Model model;
  kv::LayoutOptions options;  ///< But for the layers,
  kv::Share pp = {};          ///< which are those of this stage.

  Result<kv::Layout> layout() const;
  /// For `tokens` tokens, in a group of tokens.
  std::uint32_t blocks_for(std::uint64_t tokens) const;
};

/// The blocks that a request of `tokens` tokens takes in each group.
std::vector<std::uint32_t> blocks_needed(const kv::Layout& layout, std::uint64_t tokens);

/// What goes from a rank of one layout to a rank of another, in terms of `own`, which is one of the
/// two. Worked out apart from kv::plan.
Shared shared_by(const kv::Layout& src, const kv::Layout& dst, const kv::Layout& own);

/// Bytes of it in a request of `tokens` tokens.
std::uint64_t bytes_of(const kv::Layout& own, const Shared& shared, std::uint64_t tokens);

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
  /// Blocks of this cache for a request, as blocks_needed() has them.
  Result<BlockTable> allocate(std::uint64_t tokens, Deadline deadline,
                              const std::stop_token& stop) {
    return blocks_->allocate(blocks_needed(layout(), tokens), deadline, stop);
  }
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
  PagedCache(kv::Cache cache, PlacedSegment memory, std::unique_ptr<BlockAllocator> blocks);
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
};

/// One entry for each group, over a table that must outlive it.
std::vector<kv::Blocks> blocks_of(const BlockTable& table);

}  // namespace weft::tool
