// Numbers of messages: order, repeats, gaps, and the wrap.
#include "message/sequencer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace weft::core {
namespace {

using testing::ElementsAre;
using Numbers = Sequencer<std::uint32_t>;

constexpr std::uint32_t last = 0xffffffff;

std::vector<std::uint32_t> all_of(Numbers& numbers) {
  std::vector<std::uint32_t> taken;
  while (const auto next = numbers.take()) taken.push_back(*next);
  return taken;
}

TEST(Sequencer, HandsOnInOrder) {
  Numbers numbers(100, 8);
  EXPECT_TRUE(numbers.put(101, 101));
  EXPECT_TRUE(numbers.put(103, 103));
  EXPECT_THAT(all_of(numbers), ElementsAre());
  EXPECT_TRUE(numbers.put(100, 100));
  EXPECT_THAT(all_of(numbers), ElementsAre(100, 101));
  EXPECT_TRUE(numbers.put(102, 102));
  EXPECT_THAT(all_of(numbers), ElementsAre(102, 103));
}

TEST(Sequencer, TakesEachNumberOnce) {
  Numbers numbers(100, 8);
  for (std::uint32_t number : {100U, 101U, 103U, 102U}) {
    EXPECT_TRUE(numbers.put(number, number));
    EXPECT_FALSE(numbers.put(number, number));
  }
  EXPECT_THAT(all_of(numbers), ElementsAre(100, 101, 102, 103));
  for (std::uint32_t number = 0; number <= 103; ++number)
    EXPECT_FALSE(numbers.put(number, number)) << number;
  EXPECT_TRUE(numbers.put(104, 104));
}

TEST(Sequencer, RefusesWhatCannotBeUnderWay) {
  Numbers numbers(100, 8);
  EXPECT_FALSE(numbers.put(108, 108));
  EXPECT_FALSE(numbers.put(99, 99));
  EXPECT_TRUE(numbers.put(107, 107));
  EXPECT_TRUE(numbers.put(100, 100));
  EXPECT_FALSE(numbers.put(108, 108)) << "room is made by what is taken";
  EXPECT_THAT(all_of(numbers), ElementsAre(100));
  EXPECT_TRUE(numbers.put(108, 108));
  EXPECT_FALSE(numbers.put(107, 107));
}

TEST(Sequencer, WrapsAt32Bits) {
  Numbers numbers(last - 2, 5);
  for (std::uint32_t number : {last, 1U, last - 2, 0U, last - 1})
    EXPECT_TRUE(numbers.put(number, number));
  EXPECT_THAT(all_of(numbers), ElementsAre(last - 2, last - 1, last, 0U, 1U));
  for (std::uint32_t number : {last - 2, last - 1, last, 0U, 1U})
    EXPECT_FALSE(numbers.put(number, number));
  EXPECT_TRUE(numbers.put(2, 2));
}

TEST(Sequencer, AgreesWithASet) {
  constexpr std::uint32_t span = 64;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 generator(seed);
    const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
    const std::uint32_t first = last - 5000 + random() % 10000;
    Numbers numbers(first, span);
    std::set<std::uint32_t> waiting;  // counted from `first`, as the next
    std::uint32_t next = 0;
    for (int step = 0; step < 30000; ++step) {
      const std::uint32_t ahead = next + random() % 80 - random() % 32;
      const bool fresh = ahead - next < span && waiting.insert(ahead).second;
      ASSERT_EQ(numbers.put(first + ahead, ahead), fresh) << "seed " << seed;
      for (; waiting.erase(next) > 0; ++next) ASSERT_EQ(numbers.take(), next) << "seed " << seed;
      ASSERT_EQ(numbers.take(), std::nullopt) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace weft::core
