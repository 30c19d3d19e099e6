#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <weft/kv.hpp>

namespace weft::kv {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto most = std::numeric_limits<std::uint32_t>::max();

Group small() {
  Group group;
  group.layers = {0, 1, 2};
  group.blocks = 10;
  group.tokens_per_block = 4;
  group.fields = keys_values(4, 8);
  return group;
}

constexpr std::uint64_t page = 4 * 4 * 8 * 2;

TEST(KvLayout, Sizes) {
  const auto layout = Layout::create({small()}).value();
  EXPECT_EQ(layout.bytes(), 3 * 2 * 10 * page);
  EXPECT_EQ(layout.bytes_per_token(), 3u * 2 * 4 * 8 * 2);
  EXPECT_THAT(layout.region_bytes(), ElementsAre(layout.bytes()));
}

TEST(KvLayout, ARankHoldsItsShare) {
  const auto layout = Layout::create({small()}, {.tp = {2, 1}}).value();
  EXPECT_EQ(layout.heads(0, 0).first, 2u);
  EXPECT_EQ(layout.heads(0, 0).count, 2u);
  EXPECT_EQ(layout.bytes(), 3 * 2 * 10 * page / 2);
  EXPECT_EQ(layout.bytes_per_token(), 3u * 2 * 2 * 8 * 2);
}

TEST(KvLayout, MoreRanksThanHeadsReplicate) {
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    const auto heads = Layout::create({small()}, {.tp = {8, rank}}).value().heads(0, 0);
    EXPECT_EQ(heads.first, rank / 2);
    EXPECT_EQ(heads.count, 1u);
  }
}

TEST(KvLayout, Regions) {
  Group group = small();
  group.regions = Regions::per_layer;
  EXPECT_THAT(Layout::create({group})->region_bytes(),
              ElementsAre(20 * page, 20 * page, 20 * page));
  group.regions = Regions::per_field;
  EXPECT_THAT(Layout::create({group})->region_bytes(), ElementsAre(30 * page, 30 * page));
  group.regions = Regions::per_layer_and_field;
  EXPECT_THAT(Layout::create({group})->region_bytes(),
              ElementsAre(10 * page, 10 * page, 10 * page, 10 * page, 10 * page, 10 * page));
}

TEST(KvLayout, PaddingAndAlignment) {
  Group group = small();
  group.block_padding = 1;
  EXPECT_EQ(Layout::create({group})->bytes(), 3 * 2 * 10 * (page + 1));
  group.block_alignment = 100;
  EXPECT_EQ(Layout::create({group})->bytes(), 3u * 2 * 10 * 300);
  group.order = Order::block_major;
  EXPECT_EQ(Layout::create({group})->bytes(), 2u * 10 * 800);
  group.placement = Placement::fused;
  EXPECT_EQ(Layout::create({group})->bytes(), 10u * 1600);
}

void expect_refused(const Result<Layout>& layout, const char* word) {
  ASSERT_FALSE(layout) << word;
  EXPECT_EQ(layout.error().code(), Code::invalid_argument);
  EXPECT_THAT(layout.error().message(), HasSubstr(word));
}

TEST(KvLayout, ContradictionsAreRefused) {
  struct Case {
    std::function<void(Group&)> change;
    const char* word;
  };
  const Case cases[] = {
      {[](Group& g) { g.layers.clear(); }, "Group 0 has no layers"},
      {[](Group& g) {
         g.layers = {0, 2, 1};
       },
       "must ascend, but 1 follows 2"},
      {[](Group& g) {
         g.layers = {0, 0};
       },
       "must ascend, but 0 follows 0"},
      {[](Group& g) { g.blocks = 0; }, "Group 0 has blocks = 0"},
      {[](Group& g) { g.block_alignment = 0; }, "block_alignment = 0"},
      {[](Group& g) { g.fields.clear(); }, "Group 0 has 0 fields"},
      {[](Group& g) { g.fields[0].heads = 0; }, "\"keys\" of group 0 has no heads"},
      {[](Group& g) { g.fields[1].vector.clear(); }, "\"values\" of group 0 has 0 pieces"},
      {[](Group& g) { g.fields[1].vector[0].elements = 0; }, "none of them empty"},
      {[](Group& g) {
         g.fields[0].vector = {{DType::fp4, 3}};
       },
       "12 bits: no whole bytes"},
      {[](Group& g) { g.fields[0].tokens_per_row = 0; }, "has no rows"},
      {[](Group& g) { g.fields[0].tokens_per_row = 3; }, "do not divide the 4 of a block"},
      {[](Group& g) { g.fields[0].rows = 2; }, "their number gives the rows, not 2"},
      {[](Group& g) { g.tokens_per_block = 0, g.fields[0].rows = 0; }, "has no rows"},
      {[](Group& g) { g.tokens_per_block = 0, g.fields[0].tokens_per_row = 2; }, "is a state"},
      {[](Group& g) { g.tokens_per_block = 0, g.window = 8; }, "can't have a window"},
      {[](Group& g) { g.fields[0].beside = true; }, "is the first"},
      {[](Group& g) { g.fields[1].beside = true, g.head_order = HeadOrder::hnd; },
       "heads are the outer dimension"},
      {[](Group& g) { g.fields[1].beside = true, g.fields[1].tokens_per_row = 2; },
       "one that has other rows"},
      {[](Group& g) { g.fields[1].name = "keys"; }, "Layer 0 has the field \"keys\" twice"},
      {[](Group& g) { g.order = Order::block_major, g.regions = Regions::per_layer; },
       "block-major and can't have a region per layer"},
      {[](Group& g) { g.placement = Placement::fused, g.regions = Regions::per_field; },
       "its fields in one pool"},
  };
  for (const Case& c : cases) {
    Group group = small();
    c.change(group);
    expect_refused(Layout::create({group}), c.word);
  }
  expect_refused(Layout::create({}), "at least one group");
  expect_refused(Layout::create({small(), small()}), "Layer 0 has the field \"keys\" twice");
}

TEST(KvLayout, TensorParallelLimits) {
  expect_refused(Layout::create({small()}, {.tp = {0, 0}}), "must be at least 1");
  expect_refused(Layout::create({small()}, {.tp = {4, 4}}), "rank 4 is not less than the size 4");
  expect_refused(Layout::create({small()}, {.tp = {3, 0}}), "3 ranks can't share the 4 heads");
  expect_refused(Layout::create({small()}, {.dp = {2, 2}}), "data-parallel rank 2");
  Group group = small();
  for (Field& field : group.fields) field.heads = 6;
  EXPECT_TRUE(Layout::create({group}, {.tp = {3, 0}}));
  EXPECT_TRUE(Layout::create({small()}, {.tp = {64, 63}}));
}

TEST(KvLayout, ContextParallelLimits) {
  const auto create = [](std::uint32_t ranks, ContextParallel dcp) {
    return Layout::create({small()}, {.tp = {ranks, 0}, .dcp = dcp});
  };
  EXPECT_TRUE(create(16, {4, 1}));
  EXPECT_TRUE(create(16, {2, 4}));
  expect_refused(create(16, {2, 16}), "16 tokens, which do not divide the 4 of a block");
  expect_refused(create(16, {8, 1}), "8 ranks can't share the tokens");
  expect_refused(create(4, {2, 1}), "2 ranks can't share the tokens");
  expect_refused(create(16, {0, 1}), "context-parallel size must be 1 to 1024, not 0");
  expect_refused(create(16, {2, 0}), "interleaves 1 to 65536 tokens, not 0");
  Group rows = small();
  for (Field& field : rows.fields) field.tokens_per_row = 4;
  expect_refused(Layout::create({rows}, {.tp = {16, 0}, .dcp = {2, 2}}), "would cut rows");
}

// A convolution of x, B and C over 4 tokens, and 8 heads of 3 x 5.
TEST(KvLayout, States) {
  Group group = small();
  group.tokens_per_block = 0;
  group.placement = Placement::fused;
  const ConvRow rows[] = {{"x", 8, 3}, {"B", 2, 5}, {"C", 2, 5}};
  for (const ConvOrder order : {ConvOrder::channels, ConvOrder::time}) {
    group.fields = recurrent_state(rows, 4, order, DType::bf16, 8, 15, DType::fp32);
    const auto whole = Layout::create({group}).value();
    EXPECT_EQ(whole.state_bytes(), 3u * (3 * (24 + 10 + 10) * 2 + 8 * 15 * 4));
    EXPECT_EQ(whole.bytes(), 10 * whole.state_bytes());
    EXPECT_EQ(whole.bytes_per_token(), 0u);
    // With 4 ranks, two hold each group of B and C.
    const auto part = Layout::create({group}, {.tp = {4, 3}}).value();
    EXPECT_EQ(part.state_bytes(), 3u * (3 * (6 + 5 + 5) * 2 + 2 * 15 * 4));
    EXPECT_EQ(part.heads(0, 1).first, 1u);
  }
}

TEST(KvLayout, RowsOfSeveralTokens) {
  Group group = small();
  group.fields = latent(512);
  group.fields[0].tokens_per_row = 4;
  EXPECT_EQ(Layout::create({group})->bytes_per_token(), 3u * 512 * 2 / 4);
  EXPECT_EQ(Layout::create({group})->bytes(), 3u * 10 * 512 * 2);
}

// The public numbers: FlashMLA's fp8 page has 656 bytes for each token, an indexer's page 132.
TEST(KvLayout, PackedVectors) {
  Group group = small();
  group.layers = {0};
  group.fields = latent_fp8();
  EXPECT_EQ(Layout::create({group})->bytes_per_token(), 656u);
  group.fields = index_keys();
  EXPECT_EQ(Layout::create({group})->bytes_per_token(), 132u);
  group.fields = {{.name = "keys", .heads = 8, .vector = {{DType::fp4, 128}}}};
  group.fields.push_back(scales_of(group.fields[0], 16, DType::fp8));
  EXPECT_EQ(Layout::create({group})->bytes_per_token(), 8u * (64 + 8));
}

TEST(KvLayout, SizesBeyond64BitsAreRefused) {
  const std::function<void(Group&)> changes[] = {
      [](Group& g) { g.blocks = g.tokens_per_block = most; },
      [](Group& g) {
        g.fields[0].heads = 1u << 31, g.fields[0].vector[0].elements = most;
        g.tokens_per_block = most;
      },
      [](Group& g) { g.block_padding = std::numeric_limits<std::uint64_t>::max(); },
      [](Group& g) { g.block_padding = std::uint64_t{1} << 62; },
      [](Group& g) { g.block_alignment = std::uint64_t{1} << 63; },
  };
  for (const Order order : {Order::layer_major, Order::block_major}) {
    for (const HeadOrder heads : {HeadOrder::nhd, HeadOrder::hnd}) {
      for (const auto& change : changes) {
        Group group = small();
        group.order = order;
        group.head_order = heads;
        change(group);
        expect_refused(Layout::create({group}), "exceeds 64 bits");
      }
    }
  }
}

TEST(KvLayout, GroupsTogetherBeyond64BitsAreRefused) {
  Group first = small();
  first.layers = {0};
  first.blocks = 1;
  first.block_padding = (std::uint64_t{1} << 62) - page;  // two parts: 2^63 bytes
  Group second = first;
  second.layers = {1};
  EXPECT_EQ(Layout::create({first})->bytes(), std::uint64_t{1} << 63);
  expect_refused(Layout::create({first, second}), "exceeds 64 bits");
}

TEST(KvCache, Bases) {
  Group group = small();
  group.regions = Regions::per_layer;
  const auto layout = Layout::create({group}).value();
  EXPECT_TRUE(Cache::create(layout, {{2, 0}, {0, 7}, {1, 0}}));
  EXPECT_TRUE(Cache::create(layout, {{0, 40 * page}, {0, 0}, {0, 20 * page}}));

  const auto contiguous = Cache::contiguous(layout, {3, 64}).value();
  ASSERT_EQ(contiguous.bases().size(), 3u);
  EXPECT_EQ(contiguous.bases()[2].region, 3u);
  EXPECT_EQ(contiguous.bases()[2].offset, 64 + 40 * page);
}

// As vLLM lays hybrid models out: layers of two groups share a tensor.
TEST(KvCache, GroupsMayShareTheirBytes) {
  Group first = small(), second = small();
  first.layers = {0};
  second.layers = {1};
  const auto layout = Layout::create({first, second}).value();
  EXPECT_TRUE(Cache::create(layout, {{0, 64}, {0, 64}}));
  EXPECT_FALSE(Cache::create(layout, {{0, 64}, {0, 65}}));
}

TEST(KvCache, BadBasesAreRefused) {
  Group group = small();
  group.regions = Regions::per_layer;
  const auto layout = Layout::create({group}).value();
  const auto message = [](const Result<Cache>& cache) {
    return cache ? std::string() : cache.error().message();
  };
  EXPECT_THAT(message(Cache::create(layout, {{0, 0}})), HasSubstr("3 regions but 1 bases"));
  EXPECT_THAT(message(Cache::create(layout, {{0, 0}, {1, 0}, {0, 20 * page - 1}})),
              HasSubstr("Bases 0 and 2 overlap"));
  const auto end = std::numeric_limits<std::uint64_t>::max();
  EXPECT_THAT(message(Cache::create(layout, {{0, 0}, {1, 0}, {2, end}})),
              HasSubstr("Base 2 ends beyond 64 bits"));
  EXPECT_THAT(message(Cache::contiguous(layout, {0, end - 20 * page})),
              HasSubstr("ends beyond 64 bits"));
}

}  // namespace
}  // namespace weft::kv
