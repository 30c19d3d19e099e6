/// @file
/// Paged KV caches: their layout in memory, and the copies that move blocks between caches of
/// different shapes.
///
/// This is arithmetic on layouts: no memory is touched, nothing blocks, and every function may be
/// called from any thread. To copy the blocks of a request from a prefill rank to a decode rank,
/// eight layers at a time so that decode can start early:
///
/// @code
/// using namespace weft;
/// // Both sides, from the numbers that each serving engine knows about its own cache.
/// auto model = kv::find_model("Llama-3.1-8B").value();
/// auto prefill = model.layout({.blocks = 4096, .tp = {.size = 2, .rank = 0}}).value();
/// auto decode = model.layout({.tokens_per_block = 64, .blocks = 1024}).value();
/// auto src = kv::Cache::contiguous(prefill).value();  // one segment: all of it is in region 0
/// auto dst = kv::Cache::contiguous(decode).value();
///
/// std::vector<std::uint32_t> from = {7, 8, 9, 12, 40}, to = {3, 5};
/// const kv::Blocks blocks[] = {{.src = from, .dst = to, .tokens = 75}};
/// for (std::uint32_t layer = 0; layer < model.layers; layer += 8) {
///   auto plan = kv::plan(src, dst, blocks, kv::LayerRange{layer, 8}).value();
///   std::vector<Pair> pairs;
///   for (const kv::Copy& c : plan.copies)
///     pairs.push_back({.local = c.src_offset, .remote = c.dst_offset, .length = c.length});
///   // Submit the pairs as one write, with a signal.
/// }
/// @endcode
///
/// A cache of several tensors has several regions, one segment each: then the copies are sorted by
/// (src_region, dst_region), and each list is a write of its own with the same signal. The guide
/// tools/docs/kv-cache.md shows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include <weft/error.hpp>
#include <weft/export.hpp>

namespace weft::kv {

/// What a layer keeps for each token. Separate keys and values are two *parts*, K before V.
enum class Parts : std::uint8_t {
  split,   ///< All blocks' keys, then all blocks' values: [2][blocks][page].
  fused,   ///< Keys and values of a block side by side: [blocks][2][page].
  latent,  ///< One vector that stands for both (MLA), as if there were one head: [blocks][page].
};

/// The outer dimension of the layout. A *page* is one part of one block in one layer.
enum class Order : std::uint8_t {
  layer_major,  ///< split: [layers][2][blocks][page]; fused: [layers][blocks][2][page].
  block_major,  ///< split: [2][blocks][layers][page]; fused: [blocks][layers][2][page].
};

/// The order inside a page.
enum class HeadOrder : std::uint8_t {
  nhd,  ///< [tokens][heads][head size].
  hnd,  ///< [heads][tokens][head size]: a tensor-parallel rank's heads are contiguous.
};

/// The regions (tensors, in most serving engines) that a group is allocated in. A dimension with
/// regions of its own disappears from the orders above.
enum class Regions : std::uint8_t {
  one,                 ///< One for the whole group.
  per_layer,           ///< One for each layer, as vLLM does. Needs layer_major.
  per_part,            ///< One for keys, one for values. Needs split.
  per_layer_and_part,  ///< One for each layer's keys and values, as SGLang does. Needs both.
};

/// The share of the KV heads that a process holds. With more ranks than heads, heads are
/// replicated: with `replicas = size / heads`, ranks 0 to replicas-1 hold head 0, and so on. Every
/// rank holds all latents.
struct TensorParallel {
  std::uint32_t size = 1;  ///< 1 to 8; a multiple or a divisor of the number of KV heads.
  std::uint32_t rank = 0;  ///< Less than size.
};

/// Layers that share one block table. Most models have one group; hybrid ones have several, e.g.
/// one for sliding-window layers and one for layers with full attention.
struct Group {
  std::vector<std::uint32_t> layers;   ///< Numbers of the model's layers, ascending, from 0.
  std::uint32_t blocks = 0;            ///< In the cache; block ids are less than this.
  std::uint32_t tokens_per_block = 0;  ///< vLLM's block_size, SGLang's page_size.
  std::uint32_t kv_heads = 0;          ///< Of the model, before tensor parallelism. 1 for latents.
  std::uint32_t head_size = 0;         ///< Elements in one head's key, value or latent vector.
  std::uint32_t element_size = 0;      ///< Bytes: 2 for bf16, 1 for fp8.
  Parts parts = Parts::split;
  Order order = Order::layer_major;
  HeadOrder head_order = HeadOrder::nhd;
  Regions regions = Regions::one;
  /// Unused bytes after each block: its page or pages in layer_major, all its layers in
  /// block_major.
  std::uint64_t block_padding = 0;
  /// The distance from block to block, padding included, is rounded up to a multiple of this.
  std::uint64_t block_alignment = 1;
  /// Tokens that the layers look back on; 0: all. Both sides must agree. The caller need not copy
  /// older tokens.
  std::uint32_t window = 0;
};

/// Heads `first` to `first + count - 1` of the model.
struct HeadRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// The shape of one process's cache, checked and immutable. A moved-from layout has no groups.
class WEFT_API Layout {
 public:
  /// Fails with `invalid_argument`, naming the group and the numbers, if the description
  /// contradicts itself or sizes exceed 64 bits.
  static Result<Layout> create(std::vector<Group> groups, TensorParallel tp = {});

  std::span<const Group> groups() const noexcept { return groups_; }
  TensorParallel tensor_parallel() const noexcept { return tp_; }
  /// The heads of group `group` (less than groups().size()) that this rank holds.
  HeadRange heads(std::size_t group) const noexcept;
  /// Sizes of the regions to allocate, in bytes: by group, then by layer, then K before V.
  std::span<const std::uint64_t> region_bytes() const noexcept { return region_bytes_; }
  /// All regions together, in bytes.
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Bytes of one token on this rank in all layers, without padding.
  std::uint64_t bytes_per_token() const noexcept;

 private:
  Layout(std::vector<Group> groups, TensorParallel tp) : groups_(std::move(groups)), tp_(tp) {}
  std::vector<Group> groups_;
  TensorParallel tp_;
  std::vector<std::uint64_t> region_bytes_;
  std::uint64_t bytes_ = 0;
};

/// Where a region of a layout starts: at byte `offset` of the caller's region number `region`,
/// which usually stands for a segment. Several may share one.
struct Base {
  std::uint32_t region = 0;
  std::uint64_t offset = 0;
};

/// A layout that has a place in memory.
class WEFT_API Cache {
 public:
  /// `bases` are in the order of Layout::region_bytes(). Fails with `invalid_argument` if their
  /// number is wrong or two regions overlap.
  static Result<Cache> create(Layout layout, std::vector<Base> bases);
  /// All regions of the layout one after another, without gaps, from `start` on.
  static Result<Cache> contiguous(Layout layout, Base start = {});

  const Layout& layout() const noexcept { return layout_; }
  std::span<const Base> bases() const noexcept { return bases_; }

 private:
  Cache(Layout layout, std::vector<Base> bases)
      : layout_(std::move(layout)), bases_(std::move(bases)) {}
  Layout layout_;
  std::vector<Base> bases_;
};

/// What to copy in one group: tokens of one request, whose blocks are listed in token order.
struct Blocks {
  std::span<const std::uint32_t> src = {};
  std::span<const std::uint32_t> dst = {};  ///< Without repetitions.
  /// Number of tokens to copy; the last block may be partly filled. Empty: all of both lists, which
  /// must have room for the same number of tokens.
  std::optional<std::uint64_t> tokens = {};
  /// Tokens to skip in the first block, less than its tokens_per_block: for windows and cached
  /// prefixes that start inside a block.
  std::uint32_t src_skip = 0;
  std::uint32_t dst_skip = 0;
};

/// Layers `first` to `first + count - 1` of the model.
struct LayerRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// `length` bytes from one place to another.
struct Copy {
  std::uint32_t src_region = 0;
  std::uint32_t dst_region = 0;
  std::uint64_t src_offset = 0;
  std::uint64_t dst_offset = 0;
  std::uint64_t length = 0;
};

/// A list of copies that writes each destination byte once. Copies between the same two regions of
/// the layouts can't be merged further.
struct Plan {
  std::vector<Copy> copies;
  std::uint64_t bytes = 0;
  /// Copies before merging: contiguous runs inside one page of both sides.
  std::uint64_t pieces = 0;

  /// Pieces per copy: 1 if nothing could be merged.
  double coalescing_ratio() const noexcept {
    return copies.empty() ? 1.0 : static_cast<double>(pieces) / static_cast<double>(copies.size());
  }
};

/// The copies that bring `blocks` (one entry for each group) from one source rank to one
/// destination rank, in `layers` (empty: all).
///
/// The two sides must describe the same model: layers of each group, heads, head size, element
/// size, window, latent or not. They may differ in all else. If their tensor-parallel sizes differ,
/// the plan covers the heads that both ranks hold. If the source replicates heads, exactly one
/// replica serves a given destination rank. So the plans of all source ranks together write each
/// destination byte once, and a plan is empty if the two ranks have nothing to exchange.
///
/// Costs one step for each layer, part and block, and one for each token (and head) if the layouts
/// force a finer split, such as from nhd to hnd. Fails with `invalid_argument`.
WEFT_API Result<Plan> plan(const Cache& src, const Cache& dst, std::span<const Blocks> blocks,
                           std::optional<LayerRange> layers = {});

/// The source ranks whose plans for the rank of `dst` are not empty, ascending: the writers that a
/// destination waits for. `src` is the layout of any source rank.
WEFT_API Result<std::vector<std::uint32_t>> source_ranks(const Layout& src, const Layout& dst);

}  // namespace weft::kv
