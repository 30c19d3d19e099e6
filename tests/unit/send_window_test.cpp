// Messages that wait for their acknowledgement, and those that go by the control connection.
#include "message/send_window.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "message/control_path.hpp"

namespace weft::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Phase = Unacknowledged::Phase;

class SendWindowTest : public testing::Test {
 protected:
  void push() { window.push({Phase::on_rail, &buffers.emplace_back(), nullptr}); }
  /// The buffers of the messages that `count` acknowledges, by their places.
  std::vector<std::size_t> acknowledge(std::uint64_t count) {
    std::vector<std::size_t> all;
    any = window.acknowledge(count, [&](const Unacknowledged& message) {
      for (std::size_t i = 0; i < buffers.size(); ++i)
        if (message.buffer == &buffers[i]) all.push_back(i);
    });
    return all;
  }
  SendWindow window{4};
  std::deque<Buffer> buffers;
  bool any = false;
};

TEST_F(SendWindowTest, IsFullOfWhatIsNotAcknowledged) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(window.full());
    EXPECT_EQ(window.next(), i);
    push();
  }
  EXPECT_TRUE(window.full());
  EXPECT_THAT(acknowledge(2), ElementsAre(0, 1));
  EXPECT_TRUE(any);
  EXPECT_TRUE(window.full()) << "what was taken need not be room for more";
  EXPECT_EQ(window.first(), 2U);
  EXPECT_EQ(window.next(), 4U);
}

TEST_F(SendWindowTest, IsAsLargeAsThePeerSays) {
  EXPECT_TRUE(window.raise(6));
  EXPECT_EQ(window.spare(), 6U);
  EXPECT_FALSE(window.raise(6)) << "a repeat";
  EXPECT_FALSE(window.raise(5)) << "a late one";
  for (int i = 0; i < 6; ++i) push();
  EXPECT_TRUE(window.full());
  EXPECT_EQ(window.spare(), 0U);
}

TEST_F(SendWindowTest, WhatWasGivenBackIsNotHadTwice) {
  window.raise(10);
  push();
  window.give_back(6);
  EXPECT_EQ(window.spare(), 3U);
  EXPECT_FALSE(window.raise(10));
  EXPECT_TRUE(window.raise(12));
  EXPECT_EQ(window.spare(), 5U);
}

TEST_F(SendWindowTest, FindsByNumberUntilAcknowledged) {
  for (int i = 0; i < 4; ++i) push();
  acknowledge(2);
  EXPECT_EQ(window.find(0), nullptr);
  EXPECT_EQ(window.find(1), nullptr);
  ASSERT_NE(window.find(2), nullptr);
  EXPECT_EQ(window.find(2)->buffer, &buffers[2]);
  EXPECT_EQ(window.find(3)->buffer, &buffers[3]);
}

TEST_F(SendWindowTest, RepeatsLateOnesAndFalseOnesAddNothing) {
  for (int i = 0; i < 4; ++i) push();
  EXPECT_THAT(acknowledge(3), ElementsAre(0, 1, 2));
  EXPECT_THAT(acknowledge(3), IsEmpty());
  EXPECT_FALSE(any);
  EXPECT_THAT(acknowledge(1), IsEmpty());
  EXPECT_THAT(acknowledge(std::numeric_limits<std::uint64_t>::max()), ElementsAre(3));
  EXPECT_EQ(window.next(), 4U) << "what was never sent is not acknowledged";
  push();
  EXPECT_THAT(acknowledge(4), IsEmpty());
  EXPECT_THAT(acknowledge(5), ElementsAre(4));
}

TEST(ControlPath, KeepsTheOrderOfMessagesAndAcknowledgements) {
  ControlPath path;
  path.add(7, Blob(1));
  path.add(std::nullopt, Blob(2));
  path.add(8, Blob(3));
  for (const std::size_t size : {1, 2, 3}) EXPECT_EQ(path.next()->size(), size);
  EXPECT_EQ(path.next(), std::nullopt);
  EXPECT_EQ(path.taken(), 7U);
  EXPECT_EQ(path.taken(), std::nullopt) << "it had no number";
  EXPECT_EQ(path.taken(), 8U);
  EXPECT_EQ(path.taken(), std::nullopt);
}

TEST(ControlPath, HoldsBackWhatWouldFillTheConnection) {
  ControlPath path;
  path.add(0, Blob(2 * ControlPath::most_bytes));
  path.add(1, Blob(ControlPath::most_bytes));
  path.add(2, Blob(1));
  EXPECT_TRUE(path.next()) << "one message always may go";
  EXPECT_FALSE(path.next());
  EXPECT_EQ(path.taken(), 0U);
  EXPECT_TRUE(path.next());
  EXPECT_FALSE(path.next()) << "by one byte";
  EXPECT_EQ(path.taken(), 1U);
  EXPECT_TRUE(path.next());
}

}  // namespace
}  // namespace weft::core
