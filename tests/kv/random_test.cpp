// Random models, splits over ranks, page sizes and block tables, against the oracle.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "oracle.hpp"
#include "providers/sanitizer.hpp"

namespace weft::kv {
namespace {

using oracle::Request;

/// Layers of a model that keep the same.
struct RandomKind {
  std::vector<Field> fields;
  std::uint32_t rows = 1;  ///< Most tokens in a row; 0: a state.
  std::uint32_t window = 0;
};

constexpr std::uint32_t look_back = 21;

Field field_of(const char* name, std::uint32_t heads, std::vector<Piece> vector) {
  return {.name = name, .heads = heads, .vector = std::move(vector)};
}

enum class What : std::uint8_t {
  keys_values,
  latents,
  packed,
  index,
  scales,
  beside,
  rows,
  states,
  windows
};

RandomKind kind_of(What what, std::uint32_t heads) {
  switch (what) {
    case What::keys_values:
      return {keys_values(heads, 2, DType::fp8, 3)};
    case What::latents:
      return {latent(5, DType::fp8)};
    case What::packed:
      return {{field_of("latent", 1, {{DType::fp8, 3}, {DType::fp32, 1}, {DType::bf16, 1}})}};
    case What::index:
      return {{field_of("latent", 1, {{DType::bf16, 2}}), field_of("index", 1, {{DType::fp8, 3}}),
               field_of("index_scales", 1, {{DType::fp32, 1}})}};
    case What::scales: {
      RandomKind kind{keys_values(heads, 8, DType::fp4)};
      kind.fields.push_back(scales_of(kind.fields[0], 4, DType::fp8));
      kind.fields.push_back(scales_of(kind.fields[1], 8, DType::e8m0));
      return kind;
    }
    case What::beside: {
      RandomKind kind{{field_of("keys", heads, {{DType::fp8, 3}}),
                       field_of("keys_scales", heads, {{DType::e8m0, 1}}),
                       field_of("summary", 1, {{DType::fp8, 2}})}};
      kind.fields[1].beside = kind.fields[2].beside = true;
      return kind;
    }
    case What::rows: {
      RandomKind kind{
          {field_of("compressed", 1, {{DType::fp8, 3}}), field_of("coarse", 1, {{DType::fp8, 5}})},
          8};
      kind.fields[0].tokens_per_row = 4;
      kind.fields[1].tokens_per_row = 8;
      return kind;
    }
    case What::states: {
      const ConvRow conv[] = {{"x", heads, 2}, {"B", 2, 3}, {"C", 2, 3}};
      const auto order = heads % 4 == 0 ? ConvOrder::channels : ConvOrder::time;
      return {recurrent_state(conv, 4, order, DType::fp8, heads, 5, DType::fp8), 0};
    }
    case What::windows:
      return {keys_values(heads, 2, DType::fp8), 1, look_back};
  }
  return {};
}

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  std::uint32_t number(std::uint32_t least, std::uint32_t most) {
    return std::uniform_int_distribution<std::uint32_t>(least, most)(random_);
  }
  bool coin() { return number(0, 1) == 1; }
  template <typename T>
  T of(std::vector<T> values) {
    return values[number(0, static_cast<std::uint32_t>(values.size()) - 1)];
  }
  std::vector<std::uint32_t> shuffled(std::uint32_t count) {
    std::vector<std::uint32_t> ids(count);
    std::iota(ids.begin(), ids.end(), 0u);
    // Some that follow one another.
    std::shuffle(ids.begin(), ids.begin() + count / 2, random_);
    return ids;
  }

 private:
  std::mt19937 random_;
};

/// A model whose layers are of one or two kinds.
struct RandomModel {
  std::vector<RandomKind> kinds;
  std::vector<std::uint32_t> kind_of_layer;
  TokenRange tokens;
};

/// Ranks of one side: of all stages.
struct RandomSplit {
  std::uint32_t tp = 1;
  ContextParallel dcp = {};
  std::uint32_t stages = 1;
};

RandomSplit shape_of(Draw& draw, const RandomModel& model, std::uint32_t heads) {
  RandomSplit shape;
  do {
    shape.tp = draw.of<std::uint32_t>({1, 1, 2, 2, 3, 4, 6, 8, 16});
  } while ((heads % shape.tp != 0 && shape.tp % heads != 0) ||
           (shape.tp != 1 && shape.tp % 2 != 0));
  shape.stages = draw.number(1, 3);
  if (!draw.coin()) return shape;
  std::uint32_t replicas = shape.tp, rows = 1;
  for (const RandomKind& kind : model.kinds) {
    rows = std::max(rows, kind.rows);
    for (const Field& field : kind.fields)
      if (kind.rows != 0) replicas = std::min(replicas, std::max(shape.tp / field.heads, 1u));
  }
  const std::uint32_t size = draw.of<std::uint32_t>({1, 2, 3, 4, 8});
  if (replicas % size == 0) shape.dcp = {size, rows * draw.of<std::uint32_t>({1, 2, 5})};
  return shape;
}

/// One side's groups of the layers of a stage, and its blocks.
void add_group(Draw& draw, const RandomModel& model, const RandomKind& kind,
               const RandomSplit& shape, std::vector<std::uint32_t> layers,
               std::vector<Group>& groups, Request& request) {
  Group group;
  group.layers = std::move(layers);
  group.fields = kind.fields;
  group.window = kind.window;
  group.placement = draw.of<Placement>({Placement::split, Placement::fused});
  group.order = draw.of<Order>({Order::layer_major, Order::block_major});
  const bool beside = std::any_of(group.fields.begin(), group.fields.end(),
                                  [](const Field& field) { return field.beside; });
  if (!beside) group.head_order = draw.of<HeadOrder>({HeadOrder::nhd, HeadOrder::hnd});
  if (draw.coin()) group.block_padding = draw.number(0, 9);
  if (draw.coin()) group.block_alignment = draw.of<std::uint64_t>({1, 4, 16});
  const bool by_layer = group.order == Order::layer_major && draw.coin();
  const bool by_field = group.placement == Placement::split && draw.coin();
  group.regions = by_layer ? (by_field ? Regions::per_layer_and_field : Regions::per_layer)
                           : (by_field ? Regions::per_field : Regions::one);
  oracle::List list;
  if (kind.rows == 0) {
    group.blocks = draw.number(1, 5);
    list.ids = {draw.number(0, group.blocks - 1)};
  } else {
    const std::uint32_t least = shape.dcp.size > 1 ? shape.dcp.interleave : kind.rows;
    group.tokens_per_block = least * draw.of<std::uint32_t>({1, 2, 3, 4, 8});
    const std::uint32_t room = group.tokens_per_block * shape.dcp.size;
    const std::uint64_t end = model.tokens.first + model.tokens.count;
    const std::uint64_t first =
        kind.window != 0 && model.tokens.count > look_back ? end - look_back : model.tokens.first;
    // Blocks before the tokens may be listed or not.
    const std::uint64_t step = std::lcm(room, shape.dcp.size * shape.dcp.interleave);
    list.first_token = draw.coin() ? first / step * step : 0;
    const auto count = static_cast<std::uint32_t>((end - list.first_token + room - 1) / room);
    group.blocks = count + draw.number(1, 3);
    list.ids = draw.shuffled(group.blocks);
    list.ids.resize(count);
  }
  groups.push_back(std::move(group));
  request.lists.push_back(std::move(list));
}

/// All ranks of one side, and the layouts of its stages.
struct Ranks {
  std::vector<oracle::Rank> ranks;
  std::vector<Layout> stages;
};

Ranks ranks_of(Draw& draw, const RandomModel& model, const RandomSplit& shape) {
  Ranks all;
  const auto layers = static_cast<std::uint32_t>(model.kind_of_layer.size());
  std::uint32_t next = 0;
  for (std::uint32_t stage = 0; stage < shape.stages && next < layers; ++stage) {
    const std::uint32_t end = stage + 1 == shape.stages ? layers : draw.number(next + 1, layers);
    std::vector<Group> groups;
    Request request;
    request.tokens = model.tokens;
    for (std::uint32_t k = 0; k < model.kinds.size(); ++k) {
      // Layers of a kind are in one or two groups.
      std::vector<std::uint32_t> some, others;
      const bool divided = draw.coin();
      for (std::uint32_t layer = next; layer < end; ++layer)
        if (model.kind_of_layer[layer] == k)
          (divided && draw.coin() ? others : some).push_back(layer);
      for (auto& part : {some, others})
        if (!part.empty()) add_group(draw, model, model.kinds[k], shape, part, groups, request);
    }
    next = end;
    const bool scatter = draw.coin();
    for (oracle::Rank& rank : oracle::ranks(groups, shape.tp, request, scatter, shape.dcp))
      all.ranks.push_back(std::move(rank));
    all.stages.push_back(all.ranks.back().cache.layout());
  }
  return all;
}

/// The ranks named are exactly those whose plans aren't empty.
std::string check_source_ranks(const Ranks& src, const oracle::Rank& dst, std::uint32_t tp) {
  const auto named = source_ranks(src.stages, dst.cache.layout(), dst.request.tokens);
  if (!named) return named.error().to_string();
  std::vector<Rank> expected;
  for (std::uint32_t i = 0; i < src.ranks.size(); ++i)
    if (!oracle::plan_of(src.ranks[i], dst)->copies.empty()) expected.push_back({i / tp, i % tp});
  return *named == expected ? "" : "source_ranks() names other ranks than those that send";
}

std::string tell(const RandomSplit& shape) {
  return fmt::format("{} stages, {} ranks, {} of them interleave {} tokens", shape.stages, shape.tp,
                     shape.dcp.size, shape.dcp.interleave);
}

void try_kinds(std::vector<What> whats, unsigned cases) {
  for (unsigned seed = 0; seed < cases; ++seed) {
    Draw draw(seed);
    const std::uint32_t heads = draw.of<std::uint32_t>({2, 4, 6, 8});
    RandomModel model;
    for (const What what : whats) model.kinds.push_back(kind_of(what, heads));
    const std::uint32_t layers = draw.number(1, 5);
    for (std::uint32_t i = 0; i < layers; ++i)
      model.kind_of_layer.push_back(draw.number(0, static_cast<std::uint32_t>(whats.size()) - 1));
    model.tokens = {draw.coin() ? draw.number(0, 30) : 0, draw.number(0, 60)};
    const RandomSplit from = shape_of(draw, model, heads), to = shape_of(draw, model, heads);
    const Ranks src = ranks_of(draw, model, from), dst = ranks_of(draw, model, to);
    const auto told = [&] {
      return fmt::format("seed {}: {} heads, tokens {} to {}, from {} to {}", seed, heads,
                         model.tokens.first, model.tokens.first + model.tokens.count, tell(from),
                         tell(to));
    };
    ASSERT_EQ(oracle::check(src.ranks, dst.ranks), "") << told();
    ASSERT_EQ(check_source_ranks(
                  src, dst.ranks[draw.number(0, static_cast<std::uint32_t>(dst.ranks.size()) - 1)],
                  from.tp),
              "")
        << told();
  }
}

// A sanitizer makes them ten times slower.
constexpr unsigned cases = providers::sanitized ? 200 : 1000;

TEST(KvRandom, KeysAndValues) {
  try_kinds({What::keys_values}, cases);
}
TEST(KvRandom, Latents) {
  try_kinds({What::latents}, cases);
}
TEST(KvRandom, VectorsOfSeveralTypes) {
  try_kinds({What::packed}, cases);
}
TEST(KvRandom, Indexers) {
  try_kinds({What::index, What::latents}, cases);
}
TEST(KvRandom, ScalesBehind) {
  try_kinds({What::scales}, cases);
}
TEST(KvRandom, ScalesBeside) {
  try_kinds({What::beside}, cases);
}
TEST(KvRandom, RowsOfSeveralTokens) {
  try_kinds({What::rows}, cases);
}
TEST(KvRandom, States) {
  try_kinds({What::states}, cases);
}
TEST(KvRandom, Windows) {
  try_kinds({What::windows}, cases);
}
TEST(KvRandom, Hybrids) {
  try_kinds({What::keys_values, What::states, What::windows}, cases);
}

}  // namespace
}  // namespace weft::kv
