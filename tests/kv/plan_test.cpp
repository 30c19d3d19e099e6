// Properties of plan() that the family doesn't cover: groups, layers, parts of blocks, cost,
// errors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "oracle.hpp"

namespace weft::kv {
namespace {

using oracle::List;
using oracle::Request;
using testing::HasSubstr;

Group group_of(std::vector<std::uint32_t> layers, std::uint32_t tokens_per_block = 16) {
  Group group;
  group.layers = std::move(layers);
  group.blocks = 32;
  group.tokens_per_block = tokens_per_block;
  group.fields = keys_values(8, 4);
  return group;
}

/// Even layers look back on 32 tokens, odd ones on all, as in GPT-OSS.
std::vector<Group> hybrid(std::uint32_t tokens_per_block) {
  std::vector<Group> groups = {group_of({0, 2, 4}, tokens_per_block),
                               group_of({1, 3, 5}, tokens_per_block)};
  groups[0].window = 32;
  return groups;
}

Cache cache_of(std::vector<Group> groups, Share tp = {}) {
  return Cache::contiguous(Layout::create(std::move(groups), {.tp = tp}).value()).value();
}

/// The bytes of one page of group_of() on one rank.
constexpr std::uint64_t page_bytes = 16 * 8 * 4 * 2;

using Ids = std::vector<std::uint32_t>;

/// A plan between caches of one group.
Result<Plan> plan_of(const Cache& src, const Ids& from, const Cache& dst, const Ids& to,
                     std::uint64_t tokens) {
  const Blocks src_blocks[] = {{from}}, dst_blocks[] = {{to}};
  return plan(src, src_blocks, dst, dst_blocks, {0, tokens});
}

// A request of 90 tokens: the windowed group has only the last 32, which start inside a block.
TEST(KvPlan, GroupsHaveTheirOwnBlocksAndTokens) {
  const Request src_request = {{{{9, 3, 4}, 48}, {{1, 7, 2, 0, 5, 6}}}, {0, 90}};
  const Request dst_request = {{{{8, 5}, 32}, {{3, 2, 9}}}, {0, 90}};
  const auto src = oracle::ranks(hybrid(16), 2, src_request);
  for (const std::uint32_t size : {1u, 2u, 8u}) {
    EXPECT_EQ(oracle::check(src, oracle::ranks(hybrid(32), size, dst_request)), "");
  }
}

TEST(KvPlan, AGroupMayHaveTokensOfItsOwn) {
  const Request src_request = {{{{9, 3, 4}}, {{1, 7, 2, 0, 5, 6}}}, {0, 90}};
  Request dst_request = {{{{8, 5}, 0, TokenRange{3, 40}}, {{3, 2, 9}}}, {0, 90}};
  const auto src = oracle::ranks(hybrid(16), 2, src_request);
  EXPECT_EQ(oracle::check(src, oracle::ranks(hybrid(32), 1, dst_request)), "");
  dst_request.lists[0].tokens = TokenRange{0, 0};
  EXPECT_EQ(oracle::check(src, oracle::ranks(hybrid(32), 1, dst_request)), "");
}

TEST(KvPlan, LayersOfARange) {
  Request src_request = {{{{9, 3}, 0}, {{1, 7, 2}, 0}}, {0, 32}};
  Request dst_request = {{{{8, 5}, 0}, {{3, 2, 9}, 0}}, {0, 32}};
  for (std::uint32_t first = 0; first < 6; ++first) {
    for (std::uint32_t count = 1; first + count <= 6; ++count) {
      src_request.layers = dst_request.layers = LayerRange{first, count};
      const auto src = oracle::ranks(hybrid(16), 1, src_request);
      auto groups = hybrid(16);
      EXPECT_EQ(oracle::check(src, oracle::ranks(groups, 2, dst_request)), "");
      for (Group& group : groups) group.regions = Regions::per_layer;
      EXPECT_EQ(oracle::check(src, oracle::ranks(groups, 2, dst_request, true)), "");
      for (Group& group : groups) {
        group.regions = Regions::one;
        group.order = Order::block_major;
      }
      EXPECT_EQ(oracle::check(src, oracle::ranks(groups, 2, dst_request)), "");
    }
  }
}

// A rank of a pipeline: its layers don't start at 0.
TEST(KvPlan, LayerNumbersAreTheModels) {
  const Request request = {{{{4, 2}}}, {0, 30}, LayerRange{41, 2}};
  const std::vector<Group> groups = {group_of({40, 41, 42, 43})};
  EXPECT_EQ(oracle::check(oracle::ranks(groups, 1, request), oracle::ranks(groups, 1, request)),
            "");
}

TEST(KvPlan, EveryRangeOfTokens) {
  for (std::uint64_t count = 0; count <= 20; ++count) {
    for (const std::uint64_t first : {4u, 5u, 7u, 11u}) {
      const Request src = {{{{5, 6, 7, 1, 0, 2, 9}, 4}}, {first, count}};
      const Request dst = {{{{8, 3, 4, 9}}}, {first, count}};
      EXPECT_EQ(oracle::check(oracle::ranks({group_of({0}, 4)}, 2, src),
                              oracle::ranks({group_of({0}, 8)}, 1, dst)),
                "")
          << count << " tokens from " << first << " on";
    }
  }
}

TEST(KvPlan, NothingToCopyIsAnEmptyPlan) {
  const auto cache = cache_of({group_of({0})});
  const auto made = plan_of(cache, {}, cache, {}, 0);
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->copies.empty());
  EXPECT_EQ(made->bytes, 0u);
  EXPECT_EQ(made->pieces, 0u);
  EXPECT_EQ(made->coalescing_ratio(), 1.0);
}

TEST(KvPlan, OnePiecePerPageOfLikeLayouts) {
  const Ids src = {4, 9, 2, 7}, dst = {1, 8, 5, 3};
  for (const HeadOrder heads : {HeadOrder::nhd, HeadOrder::hnd}) {
    Group group = group_of({0, 1, 2});
    group.head_order = heads;
    const auto made = plan_of(cache_of({group}), src, cache_of({group}), dst, 64);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->pieces, 3u * 2 * 4);
    ASSERT_EQ(made->copies.size(), 3u * 2 * 4);
    for (const Copy& copy : made->copies) EXPECT_EQ(copy.length, page_bytes);
  }
}

TEST(KvPlan, NeighboursBecomeOneCopy) {
  // In reverse: the order of the lists must not matter.
  const Ids src = {9, 8, 7, 6}, dst = {23, 22, 21, 20};
  const auto copies = [&](Placement placement, Order order) {
    Group group = group_of({0, 1, 2});
    group.placement = placement;
    group.order = order;
    const auto made = plan_of(cache_of({group}), src, cache_of({group}), dst, 64);
    EXPECT_EQ(made->pieces, 3u * 2 * 4);
    EXPECT_EQ(made->bytes, 3u * 2 * 4 * page_bytes);
    EXPECT_EQ(made->coalescing_ratio(), 24.0 / static_cast<double>(made->copies.size()));
    return made->copies.size();
  };
  EXPECT_EQ(copies(Placement::split, Order::layer_major), 3u * 2);
  EXPECT_EQ(copies(Placement::fused, Order::layer_major), 3u);
  EXPECT_EQ(copies(Placement::split, Order::block_major), 2u);
  EXPECT_EQ(copies(Placement::fused, Order::block_major), 1u);
}

TEST(KvPlan, PaddingKeepsBlocksApart) {
  const Ids ids = {1, 2, 3};
  Group padded = group_of({0});
  padded.block_padding = 1;
  EXPECT_EQ(plan_of(cache_of({padded}), ids, cache_of({group_of({0})}), ids, 48)->copies.size(),
            6u);
  EXPECT_EQ(plan_of(cache_of({group_of({0})}), ids, cache_of({padded}), ids, 48)->copies.size(),
            6u);
}

// With hnd, a rank's heads are one piece of a larger rank's page; with nhd one piece per token.
TEST(KvPlan, HeadMajorPagesKeepRanksTogether) {
  const Ids ids = {1, 5, 3};
  Group group = group_of({0});
  EXPECT_EQ(plan_of(cache_of({group}, {2, 1}), ids, cache_of({group}), ids, 48)->pieces,
            3u * 2 * 16);
  group.head_order = HeadOrder::hnd;
  EXPECT_EQ(plan_of(cache_of({group}, {2, 1}), ids, cache_of({group}), ids, 48)->pieces, 3u * 2);
}

TEST(KvPlan, OtherModelsAreRefused) {
  struct Case {
    std::function<void(Group&)> change;
    const char* word;
  };
  const Case cases[] = {
      {[](Group& g) { g.fields[1].heads = 4; },
       "\"values\" of layer 0 has 8 heads at the source and 4"},
      {[](Group& g) { g.fields = keys_values(8, 5); },
       "\"keys\" of layer 0 is 4 bf16 at the source and 5 bf16"},
      {[](Group& g) { g.fields = keys_values(8, 4, DType::fp16); },
       "is 4 bf16 at the source and 4 fp16"},
      {[](Group& g) { g.fields[0].tokens_per_row = 2; }, "1 tokens per row at the source and 2"},
      {[](Group& g) { g.window = 128; }, "a window of 0 tokens at the source and of 128"},
      {[](Group& g) { g.tokens_per_block = 0; }, "keeps a state at the destination"},
      {[](Group& g) { g.fields = latent(4); },
       "layer 0 keeps keys, values at the source and latent at the destination"},
  };
  for (const Case& c : cases) {
    Group other = group_of({0, 1});
    c.change(other);
    const auto src = cache_of({group_of({0, 1})}), dst = cache_of({other});
    const auto made = plan_of(src, {}, dst, {}, 0);
    ASSERT_FALSE(made) << c.word;
    EXPECT_EQ(made.error().code(), Code::invalid_argument);
    EXPECT_THAT(made.error().message(), HasSubstr(c.word));
    EXPECT_FALSE(source_ranks({&src.layout(), 1}, dst.layout()));
  }
}

// Another field of a layer is no reason: an indexer's cache may stay where it is.
TEST(KvPlan, FieldsOfOneSideStayThere) {
  Group with = group_of({0}), without = group_of({0});
  with.fields.push_back(index_keys()[0]);
  Request src = {{{{4, 2}}}, {0, 30}}, dst = src;
  const auto both = oracle::ranks({without}, 1, src);
  EXPECT_EQ(oracle::check(oracle::ranks({with}, 1, src), both), "");
  dst.unknown = {{0, "index"}};
  EXPECT_EQ(oracle::check(both, oracle::ranks({with}, 1, dst)), "");
}

class KvPlanBadInput : public testing::Test {
 protected:
  void expect_refused(const Blocks& from, const Blocks& to, TokenRange tokens, const char* word) {
    const auto made = plan(src_, {&from, 1}, dst_, {&to, 1}, tokens);
    ASSERT_FALSE(made) << word;
    EXPECT_EQ(made.error().code(), Code::invalid_argument);
    EXPECT_THAT(made.error().message(), HasSubstr(word));
  }

  const Cache src_ = cache_of({group_of({0, 1}, 16)});
  const Cache dst_ = cache_of({group_of({0, 1}, 32)});
  const Ids two_ = {3, 4}, four_ = {0, 1, 2, 3}, beyond_ = {31, 32}, repeated_ = {5, 5};
};

TEST_F(KvPlanBadInput, Blocks) {
  expect_refused({beyond_}, {two_}, {0, 1}, "source block 32 is out of range");
  expect_refused({four_}, {beyond_}, {0, 1}, "destination block 32 is out of range");
  expect_refused({four_}, {repeated_}, {0, 1}, "destination block 5 is listed twice");
}

TEST_F(KvPlanBadInput, Tokens) {
  expect_refused({two_}, {two_}, {0, 33},
                 "Tokens 0 to 32 are to be copied in group 0, but the "
                 "source blocks have room for 32 from token 0 on");
  expect_refused({four_}, {{}}, {0, 1}, "the destination blocks have room for 0");
  expect_refused({four_, 16}, {two_}, {15, 3}, "room for 64 from token 16 on");
  expect_refused({four_}, {two_}, {1, ~std::uint64_t{0}}, "end beyond 64 bits");
  expect_refused({four_}, {two_, 0, TokenRange{65, 1}}, {0, 1}, "Tokens 65 to 65");
}

TEST_F(KvPlanBadInput, NumberOfGroups) {
  const Blocks one[] = {{}}, two[] = {{}, {}};
  EXPECT_THAT(plan(src_, two, dst_, one, {}).error().message(),
              HasSubstr("The source has 1 groups but blocks were given for 2"));
  EXPECT_THAT(plan(src_, one, dst_, {}, {}).error().message(),
              HasSubstr("The destination has 1 groups but blocks were given for 0"));
}

TEST_F(KvPlanBadInput, Layers) {
  const Blocks none[] = {{}};
  for (const LayerRange layers :
       {LayerRange{0, 0}, LayerRange{2, 1}, LayerRange{0xFFFFFFFF, 0xFFFFFFFF}}) {
    const auto made = plan(src_, none, dst_, none, {}, layers);
    ASSERT_FALSE(made) << layers.first << " " << layers.count;
    EXPECT_THAT(made.error().message(), HasSubstr("No such layers"));
  }
}

TEST_F(KvPlanBadInput, AMovedFromCache) {
  Cache gone = src_;
  const Cache there = std::move(gone);
  const Blocks none[] = {{}};
  EXPECT_FALSE(plan(gone, none, dst_, none, {}));  // NOLINT(bugprone-use-after-move): on purpose
  EXPECT_FALSE(plan(dst_, none, gone, none, {}));
}

// Layers 0, 3 and 4 are held by both.
TEST(KvLayerRanges, CutTheLayersThatBothHold) {
  const auto src = cache_of({group_of({0, 1, 3, 4})}), dst = cache_of({group_of({0, 2, 3, 4})});
  const auto cut = [&](std::uint32_t count) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
    const auto made = layer_ranges(src.layout(), dst.layout(), count);
    for (const LayerRange& range : made.value()) ranges.emplace_back(range.first, range.count);
    return ranges;
  };
  using testing::ElementsAre;
  using testing::Pair;
  EXPECT_THAT(cut(1), ElementsAre(Pair(0, 5)));
  EXPECT_THAT(cut(2), ElementsAre(Pair(0, 1), Pair(3, 2)));
  EXPECT_THAT(cut(9), ElementsAre(Pair(0, 1), Pair(3, 1), Pair(4, 1)));
  EXPECT_TRUE(layer_ranges(src.layout(), cache_of({group_of({2})}).layout(), 2)->empty());
  EXPECT_FALSE(layer_ranges(src.layout(), dst.layout(), 0));
}

TEST(KvPlanState, TakesOneBlockOnEachSide) {
  Group group = group_of({0});
  group.tokens_per_block = 0;
  const auto cache = cache_of({group});
  EXPECT_EQ(plan_of(cache, {4}, cache, {7}, 100)->bytes, cache.layout().state_bytes());
  EXPECT_EQ(plan_of(cache, {4}, cache, {}, 100)->bytes, 0u);
  EXPECT_THAT(plan_of(cache, {4, 5}, cache, {7}, 100).error().message(),
              HasSubstr("2 source blocks were given for the state of group 0"));
  EXPECT_THAT(plan_of(cache, {}, cache, {7}, 100).error().message(),
              HasSubstr("has a block at the destination and none"));
}

TEST(KvPlanRows, BlocksBeginWithARow) {
  Group group = group_of({0});
  group.fields = latent(8);
  group.fields[0].tokens_per_row = 4;
  const auto cache = cache_of({group});
  const Ids ids = {1, 2};
  const Blocks odd[] = {{ids, 6}}, even[] = {{ids, 4}};
  EXPECT_TRUE(plan(cache, even, cache, even, {6, 7}));
  EXPECT_THAT(plan(cache, odd, cache, even, {6, 7}).error().message(),
              HasSubstr("begin with token 6, within a row of 4 tokens"));
}

TEST(KvPlanContextParallel, BlocksBeginWithATurn) {
  Group group = group_of({0});
  group.fields = latent(8);
  const Parallel parallel = {.tp = {8, 0}, .dcp = {4, 2}};
  const auto cache = Cache::contiguous(Layout::create({group}, parallel).value()).value();
  const Ids ids = {1, 2};
  const Blocks odd[] = {{ids, 4}}, even[] = {{ids, 8}};
  EXPECT_TRUE(plan(cache, even, cache, even, {9, 100}));
  EXPECT_THAT(plan(cache, odd, cache, even, {9, 100}).error().message(),
              HasSubstr("within a turn of 8 tokens"));
}

}  // namespace
}  // namespace weft::kv
