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
/// auto prefill = model.layout({.blocks = 4096, .parallel = {.tp = {2, 0}}}).value();
/// auto decode = model.layout({.tokens_per_block = 64, .blocks = 1024}).value();
/// auto src = kv::Cache::contiguous(prefill).value();  // one segment: all of it is in region 0
/// auto dst = kv::Cache::contiguous(decode).value();
///
/// std::vector<std::uint32_t> from = {7, 8, 9, 12, 40}, to = {3, 5};
/// const kv::Blocks here[] = {{.ids = from}}, there[] = {{.ids = to}};
/// for (std::uint32_t layer = 0; layer < model.layers; layer += 8) {
///   auto plan =
///       kv::plan(src, here, dst, there, {.count = 75}, kv::LayerRange{layer, 8}).value();
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

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <weft/error.hpp>
#include <weft/export.hpp>

namespace weft::kv {

/// Type of an element.
enum class DType : std::uint8_t {
  bf16,
  fp8,  ///< e4m3.
  fp16,
  fp32,
  fp8_e5m2,
  fp4,   ///< e2m1, two in a byte.
  e8m0,  ///< The scales of mxfp8 and mxfp4.
  int8,
};

/// Bits of one element.
WEFT_API std::uint32_t bits_of(DType type) noexcept;
/// "bf16", "fp8"...
WEFT_API const char* name_of(DType type) noexcept;

/// Neighbouring elements of one type.
struct Piece {
  DType type = DType::bf16;
  std::uint32_t elements = 0;
  bool operator==(const Piece&) const = default;
};

/// What a layer keeps under one name: keys, values, a latent, scales, an index, a state. In each
/// block it is a matrix of rows and heads whose elements are *vectors*. A row belongs to a token
/// (or to a few tokens), in a state group to the request.
///
/// Tensor parallelism deals the heads out. What every rank holds whole, such as a latent, has one
/// head.
struct Field {
  std::string name;         ///< The same on both sides; once in a layer.
  std::uint32_t heads = 1;  ///< Of the model, before tensor parallelism.
  /// One head's vector in one row, e.g. {{DType::bf16, 128}}. Parts of different types follow one
  /// another: fp8 elements, their scales, and what stays bf16. Whole bytes in all.
  std::vector<Piece> vector;
  /// 4: one row for each four tokens, as of a compressed cache. Divides tokens_per_block; equal to
  /// it for what a block keeps once. 1 in state groups.
  std::uint32_t tokens_per_row = 1;
  std::uint32_t rows = 1;  ///< In a state group: of the request. Else 1, and tokens decide.
  /// Lies beside the field before it, row by row, and not behind its page. Needs nhd, and as many
  /// rows.
  bool beside = false;
};

/// Keys and values. `value_size` 0: as many elements as keys.
WEFT_API std::vector<Field> keys_values(std::uint32_t heads, std::uint32_t head_size,
                                        DType type = DType::bf16, std::uint32_t value_size = 0);
/// The latent of MLA: one vector on every rank.
WEFT_API std::vector<Field> latent(std::uint32_t elements, DType type = DType::bf16);
/// vLLM's fp8_ds_mla: `nope` elements in fp8, an fp32 scale for each 128 of them, `rope` in bf16.
/// 512 and 64 make 656 bytes.
WEFT_API std::vector<Field> latent_fp8(std::uint32_t nope = 512, std::uint32_t rope = 64);
/// The keys of a sparse-attention indexer: in each page fp8 values of all tokens, then an fp32
/// scale for each 128 values.
WEFT_API std::vector<Field> index_keys(std::uint32_t elements = 128);
/// Scales of `of`, behind each of its pages: one for each `elements_per_scale` elements. 16 with
/// DType::fp8 for nvfp4, 32 with DType::e8m0 for mxfp8.
WEFT_API Field scales_of(const Field& of, std::uint32_t elements_per_scale, DType type);

/// The dimension of a convolution's state that is the inner one.
enum class ConvOrder : std::uint8_t {
  channels,  ///< [kernel - 1][channels], vLLM's "SD": x, B and C beside one another in each row.
  time,      ///< [channels][kernel - 1], vLLM's "DS": x, B and C behind one another.
};

/// One row of a convolution, e.g. x of Mamba 2, or the queries of a gated delta net.
struct ConvRow {
  std::string name;
  std::uint32_t heads = 0;  ///< Dealt out by tensor parallelism.
  std::uint32_t head_size = 0;
};

/// The state of a convolution over `kernel` tokens, and behind it a recurrent state of `heads`
/// matrices of `state_elements` elements.
WEFT_API std::vector<Field> recurrent_state(std::span<const ConvRow> rows, std::uint32_t kernel,
                                            ConvOrder order, DType conv_type, std::uint32_t heads,
                                            std::uint32_t state_elements, DType state_type);

/// Where the fields of a block lie.
enum class Placement : std::uint8_t {
  split,  ///< Each in a pool of its own: all blocks' keys, then all blocks' values.
  fused,  ///< Those of a block behind one another.
};

/// The outer dimension of the layout. A *page* is one field of one block in one layer.
enum class Order : std::uint8_t {
  layer_major,  ///< split: [layers][fields][blocks][page]; fused: [layers][blocks][fields][page].
  block_major,  ///< split: [fields][blocks][layers][page]; fused: [blocks][layers][fields][page].
};

/// The order inside a page.
enum class HeadOrder : std::uint8_t {
  nhd,  ///< [rows][heads][vector].
  hnd,  ///< [heads][rows][vector]: a tensor-parallel rank's heads are contiguous.
};

/// The regions (tensors, in most serving engines) that a group is allocated in. A dimension with
/// regions of its own disappears from the orders above. Fields beside one another share theirs.
enum class Regions : std::uint8_t {
  one,                  ///< One for the whole group.
  per_layer,            ///< One for each layer, as vLLM does. Needs layer_major.
  per_field,            ///< One for keys, one for values. Needs split.
  per_layer_and_field,  ///< One for each layer's keys and values, as SGLang does. Needs both.
};

/// A number of ranks, and which of them this is.
struct Share {
  std::uint32_t size = 1;  ///< At least 1.
  std::uint32_t rank = 0;  ///< Less than size.
};

/// Decode context parallelism: ranks that would hold the same heads share the tokens out. Rank r of
/// tensor parallelism holds token t if t / interleave % size == r % size.
struct ContextParallel {
  std::uint32_t size = 1;        ///< Divides the number of ranks that hold a head.
  std::uint32_t interleave = 1;  ///< Tokens that stay together. Divides tokens_per_block.
};

/// One rank among those that serve a model. Pipeline parallelism is in the layers of the groups;
/// expert parallelism leaves caches as they are.
struct Parallel {
  /// Each field's heads are a multiple or a divisor of its size. With more ranks than heads, heads
  /// are replicated: with `replicas = size / heads`, ranks 0 to replicas-1 hold head 0, and so on.
  /// With data-parallel attention: the ranks of one replica of attention.
  Share tp = {};
  ContextParallel dcp = {};  ///< Of token groups; states are whole on every rank.
  Share dp = {};  ///< The replica of attention, which holds its own requests. plan() ignores it.
};

/// Layers that share one block table and keep the same fields. Most models have one group; hybrid
/// ones have several, e.g. for sliding-window layers, for layers with full attention, and for
/// recurrent states.
struct Group {
  std::vector<std::uint32_t> layers;  ///< Numbers of the model's layers, ascending, from 0.
  std::uint32_t blocks = 0;           ///< In the cache; block ids are less than this.
  /// vLLM's block_size, SGLang's page_size. 0: the group holds states, one block for each request.
  std::uint32_t tokens_per_block = 0;
  std::vector<Field> fields = {};
  Placement placement = Placement::split;
  Order order = Order::layer_major;
  HeadOrder head_order = HeadOrder::nhd;
  Regions regions = Regions::one;
  /// Unused bytes after each block: its page or pages in layer_major, all its layers in
  /// block_major.
  std::uint64_t block_padding = 0;
  /// The distance from block to block, padding included, is rounded up to a multiple of this.
  std::uint64_t block_alignment = 1;
  /// Tokens that the layers look back on; 0: all. Both sides must agree. Older tokens are not
  /// copied.
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
  /// contradicts itself or sizes exceed 64 bits. A layer may be in several groups, with other
  /// fields in each.
  static Result<Layout> create(std::vector<Group> groups, Parallel parallel = {});

  std::span<const Group> groups() const noexcept { return groups_; }
  const Parallel& parallel() const noexcept { return parallel_; }
  /// The heads of a field of a group that this rank holds. Both numbers must exist.
  HeadRange heads(std::size_t group, std::size_t field) const noexcept;
  /// Sizes of the regions to allocate, in bytes: by group, then by layer, then by field.
  std::span<const std::uint64_t> region_bytes() const noexcept { return region_bytes_; }
  /// All regions together, in bytes.
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Bytes of one token on this rank in all layers, without padding and states. Rows of several
  /// tokens count their share, rounded down in each field.
  std::uint64_t bytes_per_token() const noexcept;
  /// Bytes of one request's states on this rank in all layers, without padding.
  std::uint64_t state_bytes() const noexcept;

 private:
  Layout(std::vector<Group> groups, Parallel parallel)
      : groups_(std::move(groups)), parallel_(parallel) {}
  std::vector<Group> groups_;
  Parallel parallel_;
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
  /// number is wrong or two regions overlap. Regions of different groups may be the same bytes, as
  /// in vLLM's hybrid caches: then a block belongs to one group at a time.
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

/// Tokens `first` to `first + count - 1` of a request.
struct TokenRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// The blocks of one request in one group, on one side.
struct Blocks {
  /// In token order. A destination's are without repetitions. In a state group: one, or none at the
  /// destination if that has the state.
  std::span<const std::uint32_t> ids = {};
  /// The request's token with which the first of them begins: not 0 where older blocks were freed,
  /// as with windows. A multiple of every field's tokens_per_row, and of size * interleave of
  /// context parallelism.
  std::uint64_t first_token = 0;
  /// At the destination: the tokens to copy in this group, where they differ from the request's,
  /// e.g. those of an encoder. None: the group is left alone.
  std::optional<TokenRange> tokens = {};
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

/// The copies that bring tokens of a request, and its states, from one source rank to one
/// destination rank, in `layers` (empty: all). `src_blocks` and `dst_blocks` have an entry for each
/// group of their side.
///
/// The plan covers the layers that both ranks hold, and in each the fields that both hold. Those
/// must agree in heads, vectors, rows and window; the two sides may differ in all else. The plan
/// also covers only the heads and tokens that both hold. If n source ranks have the same, one of
/// them serves a given destination rank: of neighbours rank % n, without context parallelism the
/// one with the same remainder as the destination. So the plans of all source ranks together, which
/// hold each layer once, write each destination byte once; and a plan is empty if the two ranks
/// have nothing to exchange.
///
/// Costs one step for each layer, field and block, and one for each token (and head) if the layouts
/// force a finer split, such as from nhd to hnd. Fails with `invalid_argument`.
WEFT_API Result<Plan> plan(const Cache& src, std::span<const Blocks> src_blocks, const Cache& dst,
                           std::span<const Blocks> dst_blocks, TokenRange tokens,
                           std::optional<LayerRange> layers = {});

/// The layers that both hold, cut into ranges for plan(): at most `count`, ascending, with nearly
/// as many of these layers in each. None if they have no layers in common. Fails as plan() does if
/// the two can't be compared, or with `invalid_argument` if `count` is 0.
WEFT_API Result<std::vector<LayerRange>> layer_ranges(const Layout& src, const Layout& dst,
                                                      std::uint32_t count);

/// A source rank: its pipeline stage, and its rank in that.
struct Rank {
  std::uint32_t pp = 0;
  std::uint32_t tp = 0;
  std::uint32_t dp = 0;  ///< The replica of attention that the layouts of the stages name.
  bool operator==(const Rank&) const = default;
};

/// The source ranks whose plans for the rank of `dst` are not empty, ascending: the writers that a
/// destination waits for. `stages` has the layout of any rank of each pipeline stage, in the
/// replica that holds the request. `tokens` and `layers`: as for plan(); without tokens, of a
/// request of any length. Fails with `invalid_argument`, also if two stages hold the same field of
/// a layer.
WEFT_API Result<std::vector<Rank>> source_ranks(std::span<const Layout> stages, const Layout& dst,
                                                std::optional<TokenRange> tokens = {},
                                                std::optional<LayerRange> layers = {});

/// The identity of a block's content: a digest of the request's tokens up to the block's end, as
/// servers compute them for prefix caching. Shorter digests leave zeros behind.
using BlockHash = std::array<std::byte, 32>;

/// The tokens that a destination lacks in one group.
///
/// `offered` has the hashes of a request's full blocks of `tokens_per_hash` tokens, in token order,
/// and `held` those that the destination has, in any order. With both, the destination keeps the
/// blocks that it holds from the group's first needed token on, and the rest is copied: all that
/// comes behind, with the last block, which is partly filled and has no hash. In a state group the
/// hash of the last token's block decides: the range is empty or ends with the request.
///
/// The result is Blocks::tokens of the destination. Fails with `invalid_argument` if
/// `tokens_per_hash` is 0 or more hashes are offered than the request has full blocks.
WEFT_API Result<TokenRange> missing(const Group& group, std::span<const BlockHash> offered,
                                    std::span<const BlockHash> held, std::uint32_t tokens_per_hash,
                                    std::uint64_t tokens);

}  // namespace weft::kv
