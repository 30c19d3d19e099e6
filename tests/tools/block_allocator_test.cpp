#include "demo/block_allocator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <set>

namespace weft::tool {
namespace {

TEST(BlockAllocator, HandsOutEachBlockOnceInAShuffledOrder) {
  BlockAllocator blocks({100, 100}, 7);
  const auto table = blocks.allocate({100, 100}, Deadline::now());
  ASSERT_TRUE(table);
  for (const auto& group : *table) {
    EXPECT_EQ(std::set<std::uint32_t>(group.begin(), group.end()).size(), 100U);
    EXPECT_LT(*std::max_element(group.begin(), group.end()), 100U);
    EXPECT_FALSE(std::is_sorted(group.begin(), group.end()));
  }
  EXPECT_NE((*table)[0], (*table)[1]);
  EXPECT_TRUE(blocks.free_blocks()[0].empty());
}

TEST(BlockAllocator, DependsOnTheSeedAlone) {
  BlockAllocator one({50}, 7);
  BlockAllocator same({50}, 7);
  BlockAllocator other({50}, 8);
  const auto ten = [](BlockAllocator& blocks) {
    return blocks.allocate({10}, Deadline::now()).value();
  };
  const BlockTable table = ten(one);
  EXPECT_EQ(table, ten(same));
  EXPECT_NE(table, ten(other));
}

TEST(BlockAllocator, RefusesWhatTheCacheCanNeverHold) {
  BlockAllocator blocks({4}, 1);
  const auto table = blocks.allocate({5}, Deadline::in(std::chrono::hours(1)));
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code(), Code::out_of_memory);
}

TEST(BlockAllocator, TakesNothingWhereItCantTakeAll) {
  BlockAllocator blocks({4}, 1);
  ASSERT_TRUE(blocks.allocate({3}, Deadline::now()));
  const auto table = blocks.allocate({2}, Deadline::now());
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code(), Code::timed_out);
  EXPECT_EQ(blocks.free_blocks()[0].size(), 1U);
}

TEST(BlockAllocator, WaitsForBlocksThatOthersFree) {
  BlockAllocator blocks({4, 2}, 1);
  const auto first = blocks.allocate({3, 1}, Deadline::now());
  ASSERT_TRUE(first);
  auto second = std::async(std::launch::async, [&] {
    return blocks.allocate({4, 2}, Deadline::in(std::chrono::minutes(1)));
  });
  blocks.free(*first);
  EXPECT_TRUE(second.get());
}

}  // namespace
}  // namespace weft::tool
