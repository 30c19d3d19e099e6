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
  group.kv_heads = 8;
  group.head_size = 4;
  group.element_size = 2;
  return group;
}

/// Even layers look back on 32 tokens, odd ones on all, as in GPT-OSS.
std::vector<Group> hybrid(std::uint32_t tokens_per_block) {
  std::vector<Group> groups = {group_of({0, 2, 4}, tokens_per_block),
                               group_of({1, 3, 5}, tokens_per_block)};
  groups[0].window = 32;
  return groups;
}

Cache cache_of(std::vector<Group> groups, TensorParallel tp = {}) {
  return Cache::contiguous(Layout::create(std::move(groups), tp).value()).value();
}

std::vector<std::uint32_t> counting(std::uint32_t first, std::uint32_t count) {
  std::vector<std::uint32_t> ids(count);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

/// The bytes of one page of group_of() on one rank.
constexpr std::uint64_t page_bytes = 16 * 8 * 4 * 2;

// A request of 90 tokens: the windowed group has only the last 32, which start inside a block.
TEST(KvPlan, GroupsHaveTheirOwnBlocksAndTokens) {
  const Request src_request = {{{{9, 3, 4}, 10}, {{1, 7, 2, 0, 5, 6}, 0}}, {32, 90}};
  const Request dst_request = {{{{8, 5}, 26}, {{3, 2, 9}, 0}}, {32, 90}};
  const auto src = oracle::ranks(hybrid(16), 2, src_request);
  for (const std::uint32_t size : {1u, 2u, 8u}) {
    EXPECT_EQ(oracle::check(src, oracle::ranks(hybrid(32), size, dst_request)), "");
  }
}

TEST(KvPlan, LayersOfARange) {
  Request src_request = {{{{9, 3}, 0}, {{1, 7, 2}, 0}}, {32, 41}};
  Request dst_request = {{{{8, 5}, 0}, {{3, 2, 9}, 0}}, {32, 41}};
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
  const Request request = {{{{4, 2}, 0}}, {30}, LayerRange{41, 2}};
  const std::vector<Group> groups = {group_of({40, 41, 42, 43})};
  EXPECT_EQ(oracle::check(oracle::ranks(groups, 1, request), oracle::ranks(groups, 1, request)),
            "");
}

TEST(KvPlan, EveryNumberOfTokensAndSkips) {
  for (std::uint64_t tokens = 0; tokens <= 20; ++tokens) {
    for (const std::uint32_t src_skip : {0u, 1u, 3u}) {
      for (const std::uint32_t dst_skip : {0u, 2u, 7u}) {
        const Request src = {{{{5, 6, 7, 1, 0, 2}, src_skip}}, {tokens}};
        const Request dst = {{{{8, 3, 4, 9}, dst_skip}}, {tokens}};
        EXPECT_EQ(oracle::check(oracle::ranks({group_of({0}, 4)}, 2, src),
                                oracle::ranks({group_of({0}, 8)}, 1, dst)),
                  "")
            << tokens << " tokens, skipping " << src_skip << " and " << dst_skip;
      }
    }
  }
}

TEST(KvPlan, WithoutANumberOfTokensAllIsCopied) {
  const auto src = counting(3, 8), dst = counting(7, 4);
  const Blocks blocks[] = {{.src = src, .dst = dst}};
  const auto made = plan(cache_of({group_of({0, 1}, 8)}), cache_of({group_of({0, 1}, 16)}), blocks);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->bytes, 4 * page_bytes * 2 * 2);
}

TEST(KvPlan, NothingToCopyIsAnEmptyPlan) {
  const auto cache = cache_of({group_of({0})});
  const Blocks none[] = {{}};
  const auto made = plan(cache, cache, none);
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->copies.empty());
  EXPECT_EQ(made->bytes, 0u);
  EXPECT_EQ(made->pieces, 0u);
  EXPECT_EQ(made->coalescing_ratio(), 1.0);
}

TEST(KvPlan, OnePiecePerPageOfLikeLayouts) {
  const auto src = std::vector<std::uint32_t>{4, 9, 2, 7},
             dst = std::vector<std::uint32_t>{1, 8, 5, 3};
  const Blocks blocks[] = {{.src = src, .dst = dst}};
  for (const HeadOrder heads : {HeadOrder::nhd, HeadOrder::hnd}) {
    Group group = group_of({0, 1, 2});
    group.head_order = heads;
    const auto made = plan(cache_of({group}), cache_of({group}), blocks);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->pieces, 3u * 2 * 4);
    ASSERT_EQ(made->copies.size(), 3u * 2 * 4);
    for (const Copy& copy : made->copies) EXPECT_EQ(copy.length, page_bytes);
  }
}

TEST(KvPlan, NeighboursBecomeOneCopy) {
  // In reverse: the order of the lists must not matter.
  std::vector<std::uint32_t> src = {9, 8, 7, 6}, dst = {23, 22, 21, 20};
  const Blocks blocks[] = {{.src = src, .dst = dst}};
  const auto copies = [&](Parts parts, Order order) {
    Group group = group_of({0, 1, 2});
    group.parts = parts;
    group.order = order;
    const auto made = plan(cache_of({group}), cache_of({group}), blocks);
    EXPECT_EQ(made->pieces, 3u * 2 * 4);
    EXPECT_EQ(made->bytes, 3u * 2 * 4 * page_bytes);
    EXPECT_EQ(made->coalescing_ratio(), 24.0 / static_cast<double>(made->copies.size()));
    return made->copies.size();
  };
  EXPECT_EQ(copies(Parts::split, Order::layer_major), 3u * 2);
  EXPECT_EQ(copies(Parts::fused, Order::layer_major), 3u);
  EXPECT_EQ(copies(Parts::split, Order::block_major), 2u);
  EXPECT_EQ(copies(Parts::fused, Order::block_major), 1u);
}

TEST(KvPlan, PaddingKeepsBlocksApart) {
  std::vector<std::uint32_t> ids = {1, 2, 3};
  const Blocks blocks[] = {{.src = ids, .dst = ids}};
  Group padded = group_of({0});
  padded.block_padding = 1;
  EXPECT_EQ(plan(cache_of({padded}), cache_of({group_of({0})}), blocks)->copies.size(), 6u);
  EXPECT_EQ(plan(cache_of({group_of({0})}), cache_of({padded}), blocks)->copies.size(), 6u);
}

// With hnd, a rank's heads are one piece of a larger rank's page; with nhd one piece per token.
TEST(KvPlan, HeadMajorPagesKeepRanksTogether) {
  std::vector<std::uint32_t> ids = {1, 5, 3};
  const Blocks blocks[] = {{.src = ids, .dst = ids}};
  Group group = group_of({0});
  EXPECT_EQ(plan(cache_of({group}, {2, 1}), cache_of({group}), blocks)->pieces, 3u * 2 * 16);
  group.head_order = HeadOrder::hnd;
  EXPECT_EQ(plan(cache_of({group}, {2, 1}), cache_of({group}), blocks)->pieces, 3u * 2);
}

// The ranks named are exactly those whose plans aren't empty.
TEST(KvPlan, SourceRanks) {
  std::vector<std::uint32_t> ids = {0};
  const Blocks blocks[] = {{.src = ids, .dst = ids}};
  for (const std::uint32_t heads : {1u, 2u, 4u, 8u}) {
    Group group = group_of({0});
    group.kv_heads = heads;
    for (const std::uint32_t src_size : {1u, 2u, 4u, 8u}) {
      for (const std::uint32_t dst_size : {1u, 2u, 4u, 8u}) {
        for (std::uint32_t dst_rank = 0; dst_rank < dst_size; ++dst_rank) {
          const auto dst = cache_of({group}, {dst_size, dst_rank});
          std::vector<std::uint32_t> expected;
          for (std::uint32_t rank = 0; rank < src_size; ++rank) {
            const auto made = plan(cache_of({group}, {src_size, rank}), dst, blocks);
            if (!made->copies.empty()) expected.push_back(rank);
          }
          const auto src = Layout::create({group}, {src_size, 0}).value();
          EXPECT_EQ(source_ranks(src, dst.layout()).value(), expected);
        }
      }
    }
  }
}

// Replicas share the work: each source rank serves the destination rank of its own number.
TEST(KvPlan, ReplicasTakeTurns) {
  Group group = group_of({0});
  group.kv_heads = 1;
  group.parts = Parts::latent;
  const auto src = Layout::create({group}, {8, 0}).value();
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    const auto dst = Layout::create({group}, {8, rank}).value();
    EXPECT_EQ(source_ranks(src, dst).value(), std::vector{rank});
  }
}

TEST(KvPlan, OtherModelsAreRefused) {
  struct Case {
    std::function<void(Group&)> change;
    const char* word;
  };
  const Case cases[] = {
      {[](Group& g) { g.layers = {0}; }, "2 layers at the source and 1"},
      {[](Group& g) {
         g.layers = {1, 2};
       },
       "the layers of group 0 differ"},
      {[](Group& g) { g.kv_heads = 4; }, "8 KV heads at the source and 4"},
      {[](Group& g) { g.head_size = 5; }, "4 elements per head at the source and 5"},
      {[](Group& g) { g.element_size = 1; }, "2 bytes per element at the source and 1"},
      {[](Group& g) { g.window = 128; }, "0 tokens of attention window at the source and 128"},
  };
  const Blocks blocks[] = {{}};
  for (const Case& c : cases) {
    Group other = group_of({0, 1});
    c.change(other);
    const auto made = plan(cache_of({group_of({0, 1})}), cache_of({other}), blocks);
    ASSERT_FALSE(made) << c.word;
    EXPECT_EQ(made.error().code(), Code::invalid_argument);
    EXPECT_THAT(made.error().message(), HasSubstr(c.word));
    EXPECT_FALSE(source_ranks(cache_of({group_of({0, 1})}).layout(), cache_of({other}).layout()));
  }
}

TEST(KvPlan, LatentsAreNotKeysAndValues) {
  Group one_head = group_of({0}), latent = group_of({0});
  one_head.kv_heads = latent.kv_heads = 1;
  latent.parts = Parts::latent;
  const Blocks blocks[] = {{}};
  EXPECT_FALSE(plan(cache_of({one_head}), cache_of({latent}), blocks));
  EXPECT_FALSE(plan(cache_of({latent}), cache_of({one_head}), blocks));
}

TEST(KvPlan, OtherGroupsAreRefused) {
  const Blocks blocks[] = {{}, {}};
  const auto made = plan(cache_of({group_of({0, 1})}), cache_of(hybrid(16)), blocks);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message(), HasSubstr("1 groups at the source and 2"));
}

class KvPlanBadInput : public testing::Test {
 protected:
  void expect_refused(const Blocks& blocks, const char* word) {
    const Blocks list[] = {blocks};
    const auto made = plan(src_, dst_, list);
    ASSERT_FALSE(made) << word;
    EXPECT_EQ(made.error().code(), Code::invalid_argument);
    EXPECT_THAT(made.error().message(), HasSubstr(word));
  }

  const Cache src_ = cache_of({group_of({0, 1}, 16)});
  const Cache dst_ = cache_of({group_of({0, 1}, 32)});
  const std::vector<std::uint32_t> two_ = {3, 4}, four_ = {0, 1, 2, 3};
  const std::vector<std::uint32_t> beyond_ = {31, 32}, repeated_ = {5, 5};
};

TEST_F(KvPlanBadInput, Blocks) {
  expect_refused({.src = beyond_, .dst = two_, .tokens = 1}, "source block 32 is out of range");
  expect_refused({.src = four_, .dst = beyond_}, "destination block 32 is out of range");
  expect_refused({.src = four_, .dst = repeated_}, "destination block 5 is listed twice");
}

TEST_F(KvPlanBadInput, Tokens) {
  expect_refused({.src = two_, .dst = two_},
                 "the source blocks hold 32 and the destination blocks 64");
  expect_refused({.src = {}, .dst = two_}, "hold 0 and the destination blocks 64");
  expect_refused({.src = two_, .dst = two_, .tokens = 33}, "33 tokens are to be copied");
  expect_refused({.src = four_, .dst = two_, .tokens = 65}, "65 tokens are to be copied");
  expect_refused({.src = two_, .dst = two_, .tokens = 32, .src_skip = 1}, "source blocks hold 31");
}

TEST_F(KvPlanBadInput, Skips) {
  expect_refused({.src = two_, .dst = two_, .tokens = 1, .src_skip = 16}, "Can't skip 16 tokens");
  expect_refused({.src = two_, .dst = two_, .tokens = 1, .dst_skip = 32}, "Can't skip 32 tokens");
  expect_refused({.src = {}, .dst = {}, .dst_skip = 1}, "Can't skip 1 tokens");
}

TEST_F(KvPlanBadInput, NumberOfGroups) {
  const Blocks two[] = {{}, {}};
  EXPECT_THAT(plan(src_, dst_, two).error().message(), HasSubstr("1 groups but blocks were given"));
  EXPECT_FALSE(plan(src_, dst_, {}));
}

TEST_F(KvPlanBadInput, Layers) {
  const Blocks none[] = {{}};
  for (const LayerRange layers :
       {LayerRange{0, 0}, LayerRange{2, 1}, LayerRange{1, 2}, LayerRange{0xFFFFFFFF, 0xFFFFFFFF}}) {
    const auto made = plan(src_, dst_, none, layers);
    ASSERT_FALSE(made) << layers.first << " " << layers.count;
    EXPECT_THAT(made.error().message(), HasSubstr("No such layers"));
  }
}

TEST_F(KvPlanBadInput, AMovedFromCache) {
  Cache gone = src_;
  const Cache there = std::move(gone);
  const Blocks none[] = {{}};
  EXPECT_FALSE(plan(gone, dst_, none));  // NOLINT(bugprone-use-after-move): on purpose
  EXPECT_FALSE(plan(dst_, gone, none));
}

}  // namespace
}  // namespace weft::kv
