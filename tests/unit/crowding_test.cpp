// For how long a thread takes its core for one that others compute on.
#include "base/crowding.hpp"

#include <gtest/gtest.h>

namespace weft::core {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Clock::time_point start{std::chrono::hours(1)};

/// How long it lasts from there on, in steps of a millisecond.
milliseconds lasts(const Crowding& crowding, Clock::time_point from) {
  milliseconds time{};
  while (crowding.at(from + time)) ++time;
  return time;
}

TEST(Crowding, TakesAWaitOfASlice) {
  Crowding crowding;
  EXPECT_FALSE(crowding.at(start));
  crowding.waited(microseconds(900), start);
  EXPECT_FALSE(crowding.at(start)) << "somebody who moves bytes has the core so long";
  crowding.waited(milliseconds(1), start);
  EXPECT_TRUE(crowding.at(start));
  EXPECT_EQ(lasts(crowding, start), milliseconds(16));
}

TEST(Crowding, LastsTwiceAsLongEachTimeThatItIsFoundAgain) {
  Crowding crowding;
  auto now = start;
  for (const int each : {16, 32, 64, 128, 256, 512, 512, 512}) {
    crowding.waited(milliseconds(4), now);
    EXPECT_EQ(lasts(crowding, now), milliseconds(each));
    now += milliseconds(each + 5);
  }
}

TEST(Crowding, IsForgottenWhereNobodyComputedForAsLong) {
  Crowding crowding;
  crowding.waited(milliseconds(4), start);
  crowding.waited(milliseconds(4), start + milliseconds(20));
  const auto much_later = start + milliseconds(20 + 2 * 32);
  crowding.waited(milliseconds(4), much_later);
  EXPECT_EQ(lasts(crowding, much_later), milliseconds(16));
}

TEST(Crowding, OneWaitIsCountedOnce) {
  Crowding crowding;
  crowding.waited(milliseconds(4), start);
  crowding.waited(milliseconds(4), start + milliseconds(8));
  EXPECT_EQ(lasts(crowding, start), milliseconds(16)) << "by whoever waited beside it";
}

}  // namespace
}  // namespace weft::core
