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
  group.kv_heads = 4;
  group.head_size = 8;
  group.element_size = 2;
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
  const auto layout = Layout::create({small()}, {2, 1}).value();
  EXPECT_EQ(layout.heads(0).first, 2u);
  EXPECT_EQ(layout.heads(0).count, 2u);
  EXPECT_EQ(layout.bytes(), 3 * 2 * 10 * page / 2);
  EXPECT_EQ(layout.bytes_per_token(), 3u * 2 * 2 * 8 * 2);
}

TEST(KvLayout, MoreRanksThanHeadsReplicate) {
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    const auto heads = Layout::create({small()}, {8, rank}).value().heads(0);
    EXPECT_EQ(heads.first, rank / 2);
    EXPECT_EQ(heads.count, 1u);
  }
}

TEST(KvLayout, Regions) {
  Group group = small();
  group.regions = Regions::per_layer;
  EXPECT_THAT(Layout::create({group})->region_bytes(),
              ElementsAre(20 * page, 20 * page, 20 * page));
  group.regions = Regions::per_part;
  EXPECT_THAT(Layout::create({group})->region_bytes(), ElementsAre(30 * page, 30 * page));
  group.regions = Regions::per_layer_and_part;
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
  group.parts = Parts::fused;
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
      {[](Group& g) { g.tokens_per_block = 0; }, "tokens_per_block = 0"},
      {[](Group& g) { g.kv_heads = 0; }, "kv_heads = 0"},
      {[](Group& g) { g.head_size = 0; }, "head_size = 0"},
      {[](Group& g) { g.element_size = 0; }, "element_size = 0"},
      {[](Group& g) { g.block_alignment = 0; }, "block_alignment = 0"},
      {[](Group& g) { g.parts = Parts::latent; }, "count as 1 KV head, but has 4"},
      {[](Group& g) { g.order = Order::block_major, g.regions = Regions::per_layer; },
       "block-major and can't have a region per layer"},
      {[](Group& g) { g.parts = Parts::fused, g.regions = Regions::per_part; },
       "doesn't split keys from values"},
  };
  for (const Case& c : cases) {
    Group group = small();
    c.change(group);
    expect_refused(Layout::create({group}), c.word);
  }
  expect_refused(Layout::create({}), "at least one group");
  expect_refused(Layout::create({small(), small()}), "Layer 0 is in two groups");
}

TEST(KvLayout, TensorParallelLimits) {
  expect_refused(Layout::create({small()}, {0, 0}), "must be 1 to 8, not 0");
  expect_refused(Layout::create({small()}, {9, 0}), "must be 1 to 8, not 9");
  expect_refused(Layout::create({small()}, {4, 4}), "rank 4 is not less than the size 4");
  expect_refused(Layout::create({small()}, {3, 0}), "3 ranks can't share the 4 KV heads");
  Group group = small();
  group.kv_heads = 6;
  EXPECT_TRUE(Layout::create({group}, {3, 0}));
}

TEST(KvLayout, SizesBeyond64BitsAreRefused) {
  const std::function<void(Group&)> changes[] = {
      [](Group& g) { g.blocks = g.tokens_per_block = most; },
      [](Group& g) { g.head_size = g.element_size = g.tokens_per_block = most; },
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
