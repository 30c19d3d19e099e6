// Numbers of messages: repeats, gaps, and the wrap.
#include "message/sequence_window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace weft::core {
namespace {

constexpr std::uint32_t last = 0xffffffff;

TEST(SequenceWindow, TakesEachNumberOnce) {
  SequenceWindow window(100);
  for (std::uint32_t number : {100U, 101U, 103U, 102U}) {
    EXPECT_TRUE(window.accept(number));
    EXPECT_FALSE(window.accept(number));
  }
  for (std::uint32_t number = 0; number <= 103; ++number) EXPECT_FALSE(window.accept(number));
  EXPECT_TRUE(window.accept(104));
}

TEST(SequenceWindow, RefusesWhatCannotBeUnderWay) {
  SequenceWindow window(100);
  EXPECT_FALSE(window.accept(100 + SequenceWindow::span));
  EXPECT_FALSE(window.accept(99));
  EXPECT_TRUE(window.accept(100 + SequenceWindow::span - 1));
  EXPECT_TRUE(window.accept(100));
  EXPECT_TRUE(window.accept(100 + SequenceWindow::span)) << "the first has made room";
  EXPECT_FALSE(window.accept(100 + SequenceWindow::span - 1));
}

TEST(SequenceWindow, WrapsAt32Bits) {
  SequenceWindow window(last - 2);
  for (std::uint32_t number : {last, 1U, last - 2, 0U, last - 1})
    EXPECT_TRUE(window.accept(number));
  for (std::uint32_t number : {last - 2, last - 1, last, 0U, 1U})
    EXPECT_FALSE(window.accept(number));
  EXPECT_TRUE(window.accept(2));
}

TEST(SequenceWindow, AgreesWithASetOverAWholeLapOfTheWindow) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 generator(seed);
    const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
    const std::uint32_t first = last - 5000 + random() % 10000;
    SequenceWindow window(first);
    std::set<std::uint32_t> seen;
    std::uint32_t base = 0;  // from `first`
    for (int step = 0; step < 30000; ++step) {
      const std::uint32_t ahead = base + random() % 64 - random() % 32;
      const bool fresh = ahead - base < SequenceWindow::span && seen.insert(ahead).second;
      ASSERT_EQ(window.accept(first + ahead), fresh) << "seed " << seed;
      while (seen.contains(base)) ++base;
    }
  }
}

}  // namespace
}  // namespace weft::core
