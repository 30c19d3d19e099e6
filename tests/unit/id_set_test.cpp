// Sets of ids: ranges that merge, split, and are let go of.
#include "peer/id_set.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

namespace weft::core {
namespace {

constexpr std::uint64_t greatest = std::numeric_limits<std::uint64_t>::max();

TEST(IdSet, NeighboursMerge) {
  IdSet set(10);
  for (std::uint64_t id = 100; id < 200; ++id) set.insert(id, id);
  for (std::uint64_t id = 99; id > 0; --id) set.insert(id, id);
  EXPECT_EQ(set.ranges(), 1U);
  EXPECT_EQ(set.size(), 199U);
  EXPECT_TRUE(set.contains(1) && set.contains(199));
  EXPECT_FALSE(set.contains(0) || set.contains(200));
}

TEST(IdSet, ARangeTakesInThoseThatItMeets) {
  IdSet set(10);
  for (const std::uint64_t id : {10, 20, 30, 40}) set.insert(id, id + 2);
  EXPECT_EQ(set.insert(13, 35), 0U);
  EXPECT_EQ(set.ranges(), 2U);
  EXPECT_EQ(set.size(), 35U - 10 + 1 + 3);
}

TEST(IdSet, WhatIsErasedIsCutOut) {
  IdSet set(10);
  set.insert(10, 19);
  EXPECT_EQ(set.erase(15, 15), 1U);
  EXPECT_EQ(set.erase(15, 15), 0U);
  EXPECT_EQ(set.ranges(), 2U);
  EXPECT_TRUE(set.contains(14) && set.contains(16));
  EXPECT_EQ(set.erase(0, 12), 3U);
  EXPECT_EQ(set.erase(18, 100), 2U);
  EXPECT_EQ(set.size(), 4U);
}

TEST(IdSet, HasRoomForAllIdsThereAre) {
  IdSet set(10);
  set.insert(greatest, greatest);
  set.insert(0, 0);
  EXPECT_EQ(set.ranges(), 2U);
  set.insert(0, greatest);
  EXPECT_EQ(set.ranges(), 1U);
  EXPECT_TRUE(set.contains(0) && set.contains(greatest) && set.contains(7));
  set.erase(0, 0);
  set.erase(greatest, greatest);
  EXPECT_FALSE(set.contains(0) || set.contains(greatest));
  EXPECT_EQ(set.size(), greatest - 1);
  set.erase(0, greatest);
  EXPECT_TRUE(set.empty());
}

TEST(IdSet, TheRangeThatDidNotGrowForLongestGoesFirst) {
  IdSet set(3);
  for (const std::uint64_t id : {10, 20, 30}) set.insert(id, id);
  set.insert(11, 11);
  EXPECT_EQ(set.insert(40, 44), 1U);
  EXPECT_FALSE(set.contains(20));
  EXPECT_EQ(set.insert(50, 50), 1U);
  EXPECT_FALSE(set.contains(30));
  EXPECT_TRUE(set.contains(10) && set.contains(11) && set.contains(40) && set.contains(50));
}

TEST(IdSet, WhatIsCutInTwoMayBeOneTooMany) {
  IdSet set(2);
  set.insert(10, 10);
  set.insert(20, 29);
  EXPECT_EQ(set.erase(25, 25), 1U);
  EXPECT_FALSE(set.contains(10));
  EXPECT_TRUE(set.contains(24) && set.contains(26));
}

TEST(IdSet, IsASet) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    IdSet set(1000);
    std::set<std::uint64_t> plain;
    for (int step = 0; step < 100; ++step) {
      const std::uint64_t first = random() % 64,
                          last = std::min<std::uint64_t>(63, first + random() % 6);
      const bool adds = random() % 2 == 0;
      const std::size_t before = plain.size();
      for (std::uint64_t id = first; id <= last; ++id)
        adds ? static_cast<void>(plain.insert(id)) : static_cast<void>(plain.erase(id));
      if (adds)
        EXPECT_EQ(set.insert(first, last), 0U);
      else
        EXPECT_EQ(set.erase(first, last), before - plain.size());
      ASSERT_EQ(set.size(), plain.size()) << "seed " << seed;
      for (std::uint64_t id = 0; id < 64; ++id)
        ASSERT_EQ(set.contains(id), plain.contains(id)) << "seed " << seed << " id " << id;
    }
  }
}

}  // namespace
}  // namespace weft::core
