#include "rail/reopen_timer.hpp"

#include <gtest/gtest.h>

namespace weft::core {
namespace {

using namespace std::chrono_literals;

class Watching : public testing::Test {
 protected:
  /// How often it is due, looked at every second for so many.
  int times_due(int seconds, ReopenTimer::Look look) {
    int due = 0;
    for (; seconds > 0; --seconds) due += watch.due(look, now += 1s) ? 1 : 0;
    return due;
  }

  ReopenTimer watch{4s};
  Clock::time_point now = Clock::time_point() + 1h;
};

TEST_F(Watching, WhoHasNothingOutMayBeSilent) {
  EXPECT_EQ(times_due(1000, {.out = false}), 0);
}

TEST_F(Watching, WhoseOperationsEndMayHaveOthersOut) {
  for (std::uint64_t done = 1; done <= 1000; ++done)
    EXPECT_EQ(times_due(3, {.out = true, .completed = done}), 0);
}

TEST_F(Watching, SilenceIsBorneForAWhile) {
  EXPECT_EQ(times_due(1, {.out = false}), 0);
  EXPECT_EQ(times_due(3, {.out = true}), 0);
  EXPECT_EQ(times_due(1, {.out = true}), 1);
}

TEST_F(Watching, WhatDoesNotHelpIsDoneLessAndLessOften) {
  times_due(1, {.out = false});
  EXPECT_EQ(times_due(4, {.out = true}), 1);
  EXPECT_EQ(times_due(7, {.out = true}), 0);
  EXPECT_EQ(times_due(1, {.out = true}), 1);
  EXPECT_EQ(times_due(15, {.out = true}), 0);
  EXPECT_EQ(times_due(1, {.out = true}), 1);
  EXPECT_LE(times_due(3600, {.out = true}), 20);
  EXPECT_GE(times_due(3600, {.out = true}), 10);
}

TEST_F(Watching, AfterSomethingCameItIsAsPatientAsAtFirst) {
  times_due(100, {.out = true});
  EXPECT_EQ(times_due(1, {.out = true, .completed = 1}), 0);
  EXPECT_EQ(times_due(3, {.out = true, .completed = 1}), 0);
  EXPECT_EQ(times_due(1, {.out = true, .completed = 1}), 1);
}

TEST_F(Watching, WhatIsClosedIsTriedAgain) {
  times_due(1, {.out = false});
  EXPECT_EQ(times_due(4, {.closed = true}), 1);
  EXPECT_EQ(times_due(8, {.closed = true}), 1);
}

}  // namespace
}  // namespace weft::core
