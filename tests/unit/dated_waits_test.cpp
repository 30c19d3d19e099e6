#include "services/dated_waits.hpp"

#include <gtest/gtest.h>

namespace weft::core {
namespace {

using std::chrono::seconds;

struct Slot : AwaitedSlot {
  bool give_up() override { return !done(); }
  Error overdue() const override { return Error(Code::timed_out, "late"); }
};

class DatedWaitsTest : public testing::Test {
 protected:
  std::shared_ptr<Slot> add(int due) {
    auto slot = std::make_shared<Slot>();
    waits.add(begin + seconds(due), slot);
    return slot;
  }
  const Clock::time_point begin = Clock::now();
  DatedWaits waits;
};

TEST_F(DatedWaitsTest, EachEndsOnceItIsDue) {
  const auto late = add(3), early = add(1);
  waits.end_overdue(begin);
  EXPECT_FALSE(early->done());
  waits.end_overdue(begin + seconds(1));
  ASSERT_TRUE(early->done());
  EXPECT_EQ(early->error()->code(), Code::timed_out);
  EXPECT_FALSE(late->done());
  waits.end_overdue(begin + seconds(4));
  EXPECT_TRUE(late->done());
}

TEST_F(DatedWaitsTest, WhatHasComeIsLeftAlone) {
  const auto slot = add(1);
  slot->complete(std::nullopt);
  waits.end_overdue(begin + seconds(2));
  EXPECT_FALSE(slot->error());
}

TEST_F(DatedWaitsTest, AWaitMayBeAddedBeforeAllOthers) {
  const auto late = add(5);
  waits.end_overdue(begin);
  const auto early = add(1);
  waits.end_overdue(begin + seconds(2));
  EXPECT_TRUE(early->done());
  EXPECT_FALSE(late->done());
}

TEST_F(DatedWaitsTest, ManyOfWhichMostAreGone) {
  const auto last = add(5);
  for (int i = 0; i < 1000; ++i) {
    add(5);
    waits.end_overdue(begin);
  }
  waits.end_overdue(begin + seconds(5));
  EXPECT_TRUE(last->done());
}

}  // namespace
}  // namespace weft::core
