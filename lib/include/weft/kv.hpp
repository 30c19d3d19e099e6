/// @file
/// Paged KV caches: how they lie in memory, and which bytes go where when blocks move from one
/// cache into another of a different shape.
///
/// Everything here is arithmetic on layouts: no memory is touched, nothing blocks, and all
/// functions may be called from any thread. Copying the blocks of a request from a prefill rank to
/// a decode rank, eight layers at a time so that decode can start early:
///
/// @code
/// using namespace weft;
/// // Both sides, from the numbers that each serving engine knows about its own cache.
/// auto model = kv::find_model("Llama-3.1-8B").value();
/// auto prefill = model.layout({.blocks = 4096, .tp = {.size = 2, .rank = 0}}).value();
/// auto decode = model.layout({.tokens_per_block = 64, .blocks = 1024}).value();
/// auto src = kv::Cache::contiguous(prefill).value();  // all of it in region 0
/// auto dst = kv::Cache::contiguous(decode).value();
///
/// std::vector<std::uint32_t> from = {7, 8, 9, 12, 40}, to = {3, 5};
/// const kv::Blocks blocks[] = {{.src = from, .dst = to, .tokens = 75}};
/// for (std::uint32_t layer = 0; layer < model.layers; layer += 8) {
///   auto plan = kv::plan(src, dst, blocks, kv::LayerRange{layer, 8}).value();
///   std::vector<Pair> pairs;
///   for (const kv::Copy& c : plan.copies)
///     pairs.push_back({.local = c.src_offset, .remote = c.dst_offset, .length = c.length});
///   // Prepare and submit the pairs as one write, with a signal.
/// }
/// @endcode
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

/// What a layer keeps for each token. With keys and values apart, they are two *parts*, K before V.
enum class Parts : std::uint8_t {
  split,   ///< All blocks' keys, then all blocks' values: [2][blocks][page].
  fused,   ///< Keys and values of a block side by side: [blocks][2][page].
  latent,  ///< One vector that stands for both (MLA), as if there were one head: [blocks][page].
};

/// Which index varies slower. A *page* is one part of one block in one layer.
enum class Order : std::uint8_t {
  layer_major,  ///< split: [layers][2][blocks][page]; fused: [layers][blocks][2][page].
  block_major,  ///< split: [2][blocks][layers][page]; fused: [blocks][layers][2][page].
};

/// The order inside a page.
enum class HeadOrder : std::uint8_t {
  nhd,  ///< [tokens][heads][head size].
  hnd,  ///< [heads][tokens][head size]: a tensor-parallel rank's heads are contiguous.
};

/// How many regions (tensors, in most serving engines) a group is allocated in. An index that has
/// regions of its own disappears from the orders above.
enum class Regions : std::uint8_t {
  one,                 ///< One for the whole group.
  per_layer,           ///< One for each layer, as vLLM does. Needs layer_major.
  per_part,            ///< One for keys, one for values. Needs split.
  per_layer_and_part,  ///< One for each layer's keys and values, as SGLang does. Needs both.
};

/// Which share of the KV heads a process holds. With more ranks than heads, heads are replicated:
/// with `size / heads` replicas, ranks 0 to replicas-1 hold head 0, and so on. Latents are
/// replicated on every rank.
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
  /// Each block's distance to the next, padding included, is rounded up to a multiple of this.
  std::uint64_t block_alignment = 1;
  /// Tokens that the layers look back on; 0 for all. Compared, and otherwise for the caller, who
  /// need not copy older tokens.
  std::uint32_t window = 0;
};

/// Heads `first` to `first + count - 1` of the model.
struct HeadRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// The shape of one process's cache: checked once, immutable. A moved-from layout has no groups.
class WEFT_API Layout {
 public:
  /// Fails with invalid_argument, naming the group and the numbers, where the description
  /// contradicts itself or sizes exceed 64 bits.
  static Result<Layout> create(std::vector<Group> groups, TensorParallel tp = {});

  std::span<const Group> groups() const noexcept { return groups_; }
  TensorParallel tensor_parallel() const noexcept { return tp_; }
  /// The heads of group `group` (less than groups().size()) that this rank holds.
  HeadRange heads(std::size_t group) const noexcept;
  /// Sizes of the regions to allocate, in bytes: group by group, in each layer by layer, K before
  /// V.
  std::span<const std::uint64_t> region_bytes() const noexcept { return region_bytes_; }
  /// All regions together, in bytes.
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// What one token takes on this rank in all layers, in bytes, without padding.
  std::uint64_t bytes_per_token() const noexcept;

 private:
  Layout(std::vector<Group> groups, TensorParallel tp) : groups_(std::move(groups)), tp_(tp) {}
  std::vector<Group> groups_;
  TensorParallel tp_;
  std::vector<std::uint64_t> region_bytes_;
  std::uint64_t bytes_ = 0;
};

/// Where a region of a layout starts: at `offset` bytes of the caller's region number `region`,
/// which usually stands for a segment. Several may share one.
struct Base {
  std::uint32_t region = 0;
  std::uint64_t offset = 0;
};

/// A layout that has a place in memory.
class WEFT_API Cache {
 public:
  /// `bases` in the order of Layout::region_bytes(). Fails with invalid_argument where their number
  /// is wrong or two overlap.
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
  /// How many tokens to copy; the last block may be partly filled. Without it all of both lists is
  /// copied, and they must have room for the same number of tokens.
  std::optional<std::uint64_t> tokens = {};
  /// Tokens to pass over in the first block, less than its tokens_per_block: for windows and
  /// cached prefixes that start inside a block.
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

/// A list of copies that touch each destination byte once. Those between the same two regions of
/// the layouts can't be merged further.
struct Plan {
  std::vector<Copy> copies;
  std::uint64_t bytes = 0;
  /// Copies before merging: contiguous runs inside one page of both sides.
  std::uint64_t pieces = 0;

  /// Pieces per copy: 1 where nothing could be merged.
  double coalescing_ratio() const noexcept {
    return copies.empty() ? 1.0 : static_cast<double>(pieces) / static_cast<double>(copies.size());
  }
};

/// The copies that bring `blocks` (one entry for each group) of one source rank to one destination
/// rank, in `layers` (all if empty; otherwise some of the layouts' layers, up to the last).
///
/// The two sides must describe the same model: layers of each group, heads, head size, element
/// size, window, latent or not. They may differ in all else. Where their tensor-parallel sizes
/// differ, the plan covers the heads that both ranks hold; where the source replicates heads,
/// exactly one replica serves a given destination rank. So the plans of all source ranks together
/// write each destination byte once, and a plan is empty where the ranks have nothing to exchange.
///
/// Costs one step per layer, part and block, plus one per token (and head) where the layouts force
/// a finer split, e.g. from nhd to hnd. Fails with invalid_argument.
WEFT_API Result<Plan> plan(const Cache& src, const Cache& dst, std::span<const Blocks> blocks,
                           std::optional<LayerRange> layers = {});

/// The source ranks whose plans for `dst`'s rank are not empty, ascending: how many writers a
/// destination waits for. `src` is the layout of any source rank.
WEFT_API Result<std::vector<std::uint32_t>> source_ranks(const Layout& src, const Layout& dst);

}  // namespace weft::kv
