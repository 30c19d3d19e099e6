#include "workload/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <weft/kv.hpp>
#include <weft/kv_models.hpp>

namespace weft::perf {
namespace {

// Operations start on pages of their own, and end before them.
constexpr std::uint64_t page = 4096;
constexpr std::uint64_t least_gap = 64;

std::uint64_t room_for(std::uint64_t bytes) {
  return (bytes + least_gap + page - 1) / page * page;
}

std::vector<std::uint32_t> shuffled(std::uint32_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
  return order;
}

/// Pieces of equal length.
Workload lay_out_pieces(const Work& work) {
  Workload load;
  const std::uint64_t piece = work.size / work.pieces;
  const std::uint64_t stride = work.pattern == Pattern::contiguous ? piece : 2 * piece;
  const std::uint64_t room = room_for(stride * work.pieces);
  const bool random = work.pattern == Pattern::random;
  for (std::uint32_t operation = 0; operation < work.window; ++operation) {
    const auto local = shuffled(random ? work.pieces : 0, 2 * operation);
    const auto remote = shuffled(random ? work.pieces : 0, 2 * operation + 1);
    load.first.push_back(static_cast<std::uint32_t>(load.pairs.size()));
    for (std::uint32_t i = 0; i < work.pieces; ++i)
      load.pairs.push_back({operation * room + (random ? local[i] : i) * stride,
                            operation * room + (random ? remote[i] : i) * stride, piece});
  }
  load.operation_bytes = work.size;
  load.initiator_bytes = load.target_bytes = work.window * room;
  return load;
}

kv::DType dtype_of(const KvShape& shape) {
  return shape.dtype == "fp8" ? kv::DType::fp8 : kv::DType::bf16;
}

std::uint32_t block_count(const KvShape& shape) {
  return static_cast<std::uint32_t>((shape.tokens + shape.block_tokens - 1) / shape.block_tokens);
}

/// The first rank's cache that has room for one request.
Result<kv::Cache> cache_of(const KvShape& shape, const kv::Model& model, std::uint32_t tp,
                           std::uint32_t pp) {
  kv::LayoutOptions options;
  options.dtype = dtype_of(shape);
  options.tokens_per_block = shape.block_tokens;
  options.parallel.tp = {tp, 0};
  options.blocks = block_count(shape);
  options.state_blocks = 1;
  if (pp > 1) options.layers = kv::stage_layers(model.layers, {pp, 0});
  return model.layout(options).and_then(
      [](const kv::Layout& layout) { return kv::Cache::contiguous(layout); });
}

/// Block ids of one request in each group, in an order of their own. `side`: 0 or 1.
std::vector<std::vector<std::uint32_t>> table_of(const kv::Cache& cache, std::uint32_t operation,
                                                 std::uint32_t side) {
  std::vector<std::vector<std::uint32_t>> table;
  for (const kv::Group& group : cache.layout().groups())
    table.push_back(shuffled(group.blocks, 64 * operation + 2 * table.size() + side));
  return table;
}

std::vector<kv::Blocks> blocks_of(const std::vector<std::vector<std::uint32_t>>& table) {
  std::vector<kv::Blocks> blocks;
  for (const auto& ids : table) blocks.push_back({.ids = ids});
  return blocks;
}

/// The copies of one request, layer group by layer group.
Result<std::vector<kv::Plan>> plans_of(const KvShape& shape, const kv::Cache& src,
                                       const kv::Cache& dst, std::uint32_t operation) {
  const auto here = table_of(src, operation, 0), there = table_of(dst, operation, 1);
  const auto ranges = kv::layer_ranges(src.layout(), dst.layout(), shape.layer_groups);
  if (!ranges) return fail(ranges.error());
  std::vector<kv::Plan> plans;
  for (const kv::LayerRange& range : *ranges) {
    auto plan = kv::plan(src, blocks_of(here), dst, blocks_of(there), {0, shape.tokens}, range);
    if (!plan) return fail(std::move(plan.error()));
    plans.push_back(std::move(*plan));
  }
  return plans;
}

/// `src` is the side that the operation moves from.
Pair as_pair(const kv::Copy& copy, bool reads, std::uint64_t local, std::uint64_t remote) {
  const std::uint64_t here = reads ? copy.dst_offset : copy.src_offset;
  const std::uint64_t there = reads ? copy.src_offset : copy.dst_offset;
  return {local + here, remote + there, copy.length};
}

tl::unexpected<Error> too_much(const Work& work, std::uint64_t limit, const char* of_what) {
  return fail(Code::invalid_argument, fmt::format("{} operations in flight have more than {} {}",
                                                  work.window, limit, of_what));
}

/// Both factors are at most 2^44, so that nothing is lost.
Result<void> check_bytes(const Work& work, std::uint64_t operation_bytes) {
  if (operation_bytes > most_bytes / work.window) return too_much(work, most_bytes, "bytes");
  return {};
}

/// Where ranks of both sides have the same heads, a piece is what a layer keeps of a block, else
/// what it keeps of a token.
Result<void> check_pairs(const Work& work, const kv::Model& model) {
  const KvShape& shape = work.kv;
  std::uint64_t pairs = 0;
  for (const kv::Kind& kind : model.kinds)
    for (const kv::Field& field : kind.fields) {
      const bool same_heads = shape.tp == shape.peer_tp || field.heads == 1;
      const std::uint64_t runs = kind.state   ? field.rows
                                 : same_heads ? block_count(shape)
                                              : shape.tokens;
      pairs += runs * kind.layers.size();
    }
  if (pairs > most_pairs / work.window) return too_much(work, most_pairs, "pieces");
  return {};
}

Result<Workload> lay_out_kv(const Work& work) {
  const KvShape& shape = work.kv;
  const auto model = kv::find_model(shape.model);
  if (!model) return fail(model.error());
  const auto src = cache_of(shape, *model, shape.tp, shape.pp);
  if (!src) return fail(src.error());
  const auto dst = cache_of(shape, *model, shape.peer_tp, shape.peer_pp);
  if (!dst) return fail(dst.error());
  auto checked = check_pairs(work, *model)
                     .and_then([&] { return check_bytes(work, src->layout().bytes()); })
                     .and_then([&] { return check_bytes(work, dst->layout().bytes()); });
  if (!checked) return fail(std::move(checked.error()));
  Workload load;
  const std::uint64_t src_room = room_for(src->layout().bytes());
  const std::uint64_t dst_room = room_for(dst->layout().bytes());
  for (std::uint32_t operation = 0; operation < work.window; ++operation) {
    const auto plans = plans_of(shape, *src, *dst, operation);
    if (!plans) return fail(plans.error());
    const bool read = reads(work, operation);
    load.parts = static_cast<std::uint32_t>(plans->size());
    load.operation_bytes = 0;
    for (const kv::Plan& plan : *plans) {
      load.first.push_back(static_cast<std::uint32_t>(load.pairs.size()));
      load.operation_bytes += plan.bytes;
      for (const kv::Copy& copy : plan.copies)
        load.pairs.push_back(as_pair(copy, read, load.initiator_bytes, load.target_bytes));
    }
    load.initiator_bytes += read ? dst_room : src_room;
    load.target_bytes += read ? src_room : dst_room;
  }
  if (load.operation_bytes == 0)
    return fail(Code::invalid_argument,
                fmt::format("rank 0 of {} has nothing for rank 0 of {}", shape.tp, shape.peer_tp));
  return load;
}

/// Those of `load` whose bytes a side has, if it is their source, or if `all` of them.
std::vector<Stretch> stretches(const Work& work, const Workload& load, Side side,
                               std::uint64_t seed, bool all) {
  std::vector<Stretch> list;
  for (std::size_t transfer = 0; transfer + 1 < load.first.size(); ++transfer) {
    const bool read = reads(work, static_cast<std::uint32_t>(transfer / load.parts));
    const bool is_source = (side == Side::target) == read;
    if (!is_source && !all) continue;
    for (std::uint32_t i = load.first[transfer]; i < load.first[transfer + 1]; ++i) {
      const Pair& pair = load.pairs[i];
      // Two sides' bytes at one offset differ.
      list.push_back({side == Side::initiator ? pair.local : pair.remote, pair.length,
                      2 * seed + (read ? 1 : 0), read ? pair.remote : pair.local});
    }
  }
  std::sort(list.begin(), list.end(),
            [](const Stretch& a, const Stretch& b) { return a.at < b.at; });
  return list;
}

}  // namespace

Result<std::uint64_t> bytes_of_request(const KvShape& shape) {
  Point point;
  point.work.size = 1;
  point.work.kv = shape;
  if (auto checked = check(point); !checked) return fail(std::move(checked.error()));
  return lay_out(point.work).map([](const Workload& load) { return load.operation_bytes; });
}

Result<std::uint32_t> tokens_of_block(const KvShape& shape, std::uint64_t bytes) {
  const auto model = kv::find_model(shape.model);
  if (!model) return fail(model.error());
  kv::LayoutOptions options;
  options.dtype = dtype_of(shape);
  options.tokens_per_block = options.blocks = 1;
  options.parallel.tp = {shape.tp, 0};
  const auto layout = model->layout(options);
  if (!layout) return fail(layout.error());
  // The largest field of all pages, with one token in each block.
  std::uint64_t token = 0;
  for (std::size_t g = 0; g < layout->groups().size(); ++g) {
    const kv::Group& group = layout->groups()[g];
    for (std::size_t f = 0; f < group.fields.size() && group.tokens_per_block != 0; ++f) {
      std::uint64_t bits = 0;
      for (const kv::Piece& piece : group.fields[f].vector)
        bits += std::uint64_t{piece.elements} * kv::bits_of(piece.type);
      token = std::max(token, bits / 8 * layout->heads(g, f).count);
    }
  }
  if (bytes < token)
    return fail(Code::invalid_argument,
                fmt::format("a block of {} bytes has no room for a token's {}", bytes, token));
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(bytes / token, std::numeric_limits<std::uint32_t>::max()));
}

bool reads(const Work& work, std::uint32_t operation) {
  return work.operation == Operation::read ||
         (work.operation == Operation::mixed && operation % 2 == 1);
}

std::size_t first_transfer(const Work& work, const Workload& load, std::uint32_t operation) {
  return work.one_buffer ? 0 : std::size_t{operation} * load.parts;
}

Result<Workload> lay_out(const Work& asked) {
  Work work = asked;
  if (work.one_buffer) work.window = 1;
  if (auto checked = check_bytes(work, work.size); !checked) return fail(checked.error());
  auto load = work.kv.model.empty() ? lay_out_pieces(work) : lay_out_kv(work);
  if (!load) return load;
  load->first.push_back(static_cast<std::uint32_t>(load->pairs.size()));
  return load;
}

std::vector<Stretch> before(const Work& work, const Workload& load, Side side, std::uint64_t seed) {
  return stretches(work, load, side, seed, false);
}

std::vector<Stretch> after(const Work& work, const Workload& load, Side side, std::uint64_t seed) {
  return stretches(work, load, side, seed, true);
}

}  // namespace weft::perf
