#include "base/small_vector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace weft::core {
namespace {

using testing::ElementsAre;
using Four = SmallVector<int, 4>;

Four counted(int size) {
  Four values;
  for (int i = 0; i < size; ++i) values.push_back(i);
  return values;
}

TEST(SmallVector, HoldsFewAndMany) {
  EXPECT_TRUE(Four().empty());
  EXPECT_THAT(counted(3), ElementsAre(0, 1, 2));
  EXPECT_THAT(counted(4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(counted(7), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  const std::array<int, 2> two = {5, 6};
  EXPECT_THAT(Four(two), ElementsAre(5, 6));
}

TEST(SmallVector, GetsShorterAndLongerAgain) {
  for (const int size : {4, 7}) {
    Four values = counted(size);
    values.shorten(2);
    EXPECT_THAT(values, ElementsAre(0, 1));
    for (int i = 10; i < 14; ++i) values.push_back(i);
    EXPECT_THAT(values, ElementsAre(0, 1, 10, 11, 12, 13));
    values.shorten(5);
    EXPECT_THAT(values, ElementsAre(0, 1, 10, 11, 12));
  }
}

TEST(SmallVector, CopiesAreTheirOwn) {
  for (const int size : {3, 7}) {
    const Four values = counted(size);
    Four copy = values;
    copy.front() = 9;
    EXPECT_EQ(values.front(), 0);
    EXPECT_EQ(copy.size(), values.size());
    copy = values;
    EXPECT_EQ(copy.front(), 0);
  }
}

}  // namespace
}  // namespace weft::core
