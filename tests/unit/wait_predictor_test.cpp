#include "transfer/wait_predictor.hpp"

#include <gtest/gtest.h>

namespace weft::core {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t small = 1000;

class WaitPredictorTest : public testing::Test {
 protected:
  // Later than the wait, or long before it: however slow this machine is.
  static Clock::time_point just_now() { return Clock::now() + 1h; }
  static Clock::time_point long_ago() { return Clock::now() - 1h; }
  static Deadline patient() { return Deadline::in(1h); }

  WaitPredictor predictor_{small};
};

TEST_F(WaitPredictorTest, OneEndIsUnseenUntilItIsLookedAt) {
  const auto first = Clock::now(), second = first + 1ns;
  EXPECT_FALSE(predictor_.any_unseen());
  predictor_.note_unseen(first);
  predictor_.note_unseen(second);
  predictor_.see(second);
  EXPECT_TRUE(predictor_.any_unseen()) << "of several the first counts";
  predictor_.see(first);
  EXPECT_FALSE(predictor_.any_unseen());
}

TEST_F(WaitPredictorTest, OnePromptWaitIsBelievedSixteenTimes) {
  EXPECT_FALSE(predictor_.prompt());
  predictor_.wait(small + 1, just_now(), patient());
  for (int i = 0; i < 16; ++i) {
    EXPECT_TRUE(predictor_.prompt());
    predictor_.believed();
  }
  EXPECT_FALSE(predictor_.prompt());
  predictor_.believed();
  EXPECT_FALSE(predictor_.prompt());
}

TEST_F(WaitPredictorTest, LateWaitsAndLooksFromTimeToTimeEndTheTrust) {
  predictor_.wait(small + 1, just_now(), patient());
  predictor_.wait(small, long_ago(), patient());
  EXPECT_TRUE(predictor_.prompt()) << "small ones say nothing";
  predictor_.wait(small + 1, long_ago(), patient());
  EXPECT_FALSE(predictor_.prompt());
  predictor_.wait(small + 1, just_now(), patient());
  predictor_.wait(small + 1, just_now(), Deadline::in(1ms));
  EXPECT_FALSE(predictor_.prompt());
}

}  // namespace
}  // namespace weft::core
