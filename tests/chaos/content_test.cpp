// What the campaign knows of memory: it must see every wrong byte, and none where there is none.
#include "content.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pattern.hpp"

namespace weft::chaos {
namespace {

constexpr std::uint64_t begin = 100, length = 1000, base = 1;

class Contents : public testing::Test {
 protected:
  Contents() { put({begin, length, base, begin}); }

  void put(const Stretch& stretch) {
    test::fill(std::span(arena).subspan(stretch.offset, stretch.length), stretch.stream,
               stretch.from);
  }
  bool right() const { return !content.wrong(arena.data()); }

  Blob arena = Blob(begin + length + 100);
  Content content{begin, length, base};
};

TEST_F(Contents, SeesEachWrongByteAndNoOther) {
  EXPECT_TRUE(right());
  for (const std::uint64_t at : {begin, begin + 1, begin + length / 2, begin + length - 1}) {
    arena[at] ^= std::byte{1};
    const auto wrong = content.wrong(arena.data());
    ASSERT_TRUE(wrong);
    EXPECT_EQ(wrong->at, at);
    arena[at] ^= std::byte{1};
  }
  arena[begin - 1] ^= std::byte{1};
  arena[begin + length] ^= std::byte{1};
  EXPECT_TRUE(right());
}

TEST_F(Contents, AnUncertainLayerIsThereInPartOrNotAtAll) {
  const Stretch layer{200, 100, 2, 7};
  content.lay(5, layer);
  EXPECT_TRUE(right());
  put({220, 30, 2, 27});
  EXPECT_TRUE(right());
  put({220, 30, 2, 28});  // its bytes, in the wrong place
  EXPECT_FALSE(right());
  put(layer);
  EXPECT_TRUE(right());
  put({199, 2, 2, 6});  // a byte too many
  EXPECT_FALSE(right());
}

TEST_F(Contents, ACertainLayerIsThere) {
  const Stretch layer{200, 100, 2, 7};
  content.lay(5, layer);
  content.certain(5);
  EXPECT_FALSE(right());
  put(layer);
  EXPECT_TRUE(right());
  content.lay(6, {250, 100, 3, 0});
  put({250, 100, 3, 0});
  EXPECT_TRUE(right());
  put({250, 100, base, 250});  // what was below the certain one as well
  EXPECT_FALSE(right());
}

TEST_F(Contents, OnePieceOfATransferMayBeCertainAndAnotherTakenBack) {
  content.lay(5, {200, 10, 2, 0});
  content.lay(5, {300, 10, 2, 10});
  content.certain(5, 200);
  content.take_back(5, 300);
  EXPECT_FALSE(right());
  put({200, 10, 2, 0});
  EXPECT_TRUE(right());
  put({300, 10, 2, 10});
  EXPECT_FALSE(right());
}

TEST_F(Contents, NothingIsSaidOfWhatMayBeAnything) {
  content.lay(5, {200, 10, anything, 0});
  arena[205] ^= std::byte{1};
  EXPECT_TRUE(right());
  arena[210] ^= std::byte{1};
  EXPECT_FALSE(right());
}

TEST_F(Contents, KnowsWhatIsThereForCertain) {
  const auto before = content.known(150, 100);
  ASSERT_TRUE(before);
  ASSERT_EQ(before->size(), 1U);
  EXPECT_EQ(before->front().from, 150U);
  content.lay(5, {200, 100, 2, 7});
  EXPECT_FALSE(content.known(150, 100));
  EXPECT_TRUE(content.known(150, 50));
  content.certain(5);
  const auto after = content.known(150, 100);
  ASSERT_TRUE(after);
  ASSERT_EQ(after->size(), 2U);
  EXPECT_EQ(after->back().stream, 2U);
  EXPECT_EQ(after->back().offset, 200U);
  EXPECT_EQ(after->back().from, 7U);
  EXPECT_EQ(after->back().length, 50U);
}

TEST_F(Contents, ARefillLeavesNothingOfWhatWasThere) {
  content.lay(5, {200, 100, 2, 7});
  content.refill(9);
  EXPECT_FALSE(right());
  put({begin, length, 9, begin});
  EXPECT_TRUE(right());
}

}  // namespace
}  // namespace weft::chaos
