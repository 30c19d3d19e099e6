// For how long a thread takes its core for one that others compute on.
#include <gtest/gtest.h>

#include "base/cpu_pressure.hpp"

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

/// Two slices of somebody else's with nothing between them, the second until `back`.
void lose_two_slices(Crowding& crowding, Clock::time_point back) {
  crowding.waited(milliseconds(4), back - milliseconds(4));
  crowding.waited(milliseconds(4), back);
}

TEST(Crowding, TakesSliceAfterSlice) {
  Crowding crowding;
  EXPECT_FALSE(crowding.at(start));
  crowding.waited(milliseconds(4), start);
  EXPECT_FALSE(crowding.at(start)) << "somebody who moves bytes has the core so long";
  crowding.waited(milliseconds(4), start + milliseconds(5));
  EXPECT_TRUE(crowding.at(start + milliseconds(5)));
  EXPECT_EQ(lasts(crowding, start + milliseconds(5)), milliseconds(16));
}

TEST(Crowding, IsNotMadeOfShortWaits) {
  Crowding crowding;
  for (int i = 0; i < 100; ++i) {
    crowding.waited(microseconds(900), start + i * milliseconds(1));
    EXPECT_FALSE(crowding.at(start + i * milliseconds(1)));
  }
}

TEST(Crowding, IsNotMadeOfSlicesNowAndThen) {
  Crowding crowding;
  for (int i = 0; i < 100; ++i) {
    crowding.waited(milliseconds(4), start + i * milliseconds(15));
    EXPECT_FALSE(crowding.at(start + i * milliseconds(15)));
  }
}

TEST(Crowding, LastsTwiceAsLongEachTimeThatItIsFoundAgain) {
  Crowding crowding;
  auto now = start;
  for (const int each : {16, 32, 64, 128, 256, 512, 512, 512}) {
    lose_two_slices(crowding, now);
    EXPECT_EQ(lasts(crowding, now), milliseconds(each));
    now += milliseconds(each + 70);
  }
}

TEST(Crowding, IsForgottenWhereNobodyComputedForLonger) {
  Crowding crowding;
  lose_two_slices(crowding, start);
  lose_two_slices(crowding, start + milliseconds(30));
  const auto much_later = start + milliseconds(30 + 2 * 32 + 2 * 32);
  lose_two_slices(crowding, much_later);
  EXPECT_EQ(lasts(crowding, much_later), milliseconds(16));
}

TEST(Crowding, OneWaitIsCountedOnce) {
  Crowding crowding;
  lose_two_slices(crowding, start);
  lose_two_slices(crowding, start + milliseconds(8));
  EXPECT_EQ(lasts(crowding, start), milliseconds(16)) << "by whoever waited beside it";
}

}  // namespace
}  // namespace weft::core
