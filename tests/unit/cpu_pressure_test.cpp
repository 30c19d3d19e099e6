// For how long a thread takes its core for one that others compute on.
#include <gtest/gtest.h>

#include "base/pace.hpp"

namespace weft::core {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Clock::time_point start{std::chrono::hours(1)};

/// How long it lasts from there on, in steps of a millisecond.
milliseconds lasts(const CpuPressure& cpu_pressure, Clock::time_point from) {
  milliseconds time{};
  while (cpu_pressure.at(from + time)) ++time;
  return time;
}

/// Two slices of somebody else's with nothing between them, the second until `back`.
void lose_two_slices(CpuPressure& cpu_pressure, Clock::time_point back) {
  cpu_pressure.waited(milliseconds(4), back - milliseconds(4));
  cpu_pressure.waited(milliseconds(4), back);
}

TEST(CpuPressure, TakesSliceAfterSlice) {
  CpuPressure cpu_pressure;
  EXPECT_FALSE(cpu_pressure.at(start));
  cpu_pressure.waited(milliseconds(4), start);
  EXPECT_FALSE(cpu_pressure.at(start)) << "somebody who moves bytes has the core so long";
  cpu_pressure.waited(milliseconds(4), start + milliseconds(5));
  EXPECT_TRUE(cpu_pressure.at(start + milliseconds(5)));
  EXPECT_EQ(lasts(cpu_pressure, start + milliseconds(5)), milliseconds(16));
}

TEST(CpuPressure, IsNotMadeOfShortWaits) {
  CpuPressure cpu_pressure;
  for (int i = 0; i < 100; ++i) {
    cpu_pressure.waited(microseconds(900), start + i * milliseconds(1));
    EXPECT_FALSE(cpu_pressure.at(start + i * milliseconds(1)));
  }
}

TEST(CpuPressure, IsNotMadeOfSlicesNowAndThen) {
  CpuPressure cpu_pressure;
  for (int i = 0; i < 100; ++i) {
    cpu_pressure.waited(milliseconds(4), start + i * milliseconds(15));
    EXPECT_FALSE(cpu_pressure.at(start + i * milliseconds(15)));
  }
}

TEST(CpuPressure, LastsTwiceAsLongEachTimeThatItIsFoundAgain) {
  CpuPressure cpu_pressure;
  auto now = start;
  for (const int each : {16, 32, 64, 128, 256, 512, 512, 512}) {
    lose_two_slices(cpu_pressure, now);
    EXPECT_EQ(lasts(cpu_pressure, now), milliseconds(each));
    now += milliseconds(each + 70);
  }
}

TEST(CpuPressure, IsForgottenWhereNobodyComputedForLonger) {
  CpuPressure cpu_pressure;
  lose_two_slices(cpu_pressure, start);
  lose_two_slices(cpu_pressure, start + milliseconds(30));
  const auto much_later = start + milliseconds(30 + 2 * 32 + 2 * 32);
  lose_two_slices(cpu_pressure, much_later);
  EXPECT_EQ(lasts(cpu_pressure, much_later), milliseconds(16));
}

TEST(CpuPressure, OneWaitIsCountedOnce) {
  CpuPressure cpu_pressure;
  lose_two_slices(cpu_pressure, start);
  lose_two_slices(cpu_pressure, start + milliseconds(8));
  EXPECT_EQ(lasts(cpu_pressure, start), milliseconds(16)) << "by whoever waited beside it";
}

}  // namespace
}  // namespace weft::core
