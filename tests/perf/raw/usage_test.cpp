#include "raw/usage.hpp"

#include <gtest/gtest.h>

namespace weft::perf {
namespace {

void compute(double seconds) {
  for (const double begun = cpu_seconds(); cpu_seconds() < begun + seconds;) continue;
}

TEST(CpuMark, CountsFromItsMomentOn) {
  compute(0.1);
  const double before = cpu_seconds();
  CpuMark mark(Clock::now());
  compute(0.3);  // The thread that notes it begins meanwhile.
  const double taken = mark.taken();
  EXPECT_GT(taken, 0.1);
  EXPECT_LE(taken, cpu_seconds() - before);
}

TEST(CpuMark, CountsNothingBeforeItsMoment) {
  CpuMark mark(Clock::now() + std::chrono::hours(1));
  compute(0.1);
  EXPECT_LT(mark.taken(), 0.05);
}

TEST(CpuMark, IsLeftWithoutWaitingForItsMoment) {
  const CpuMark mark(Clock::now() + std::chrono::hours(1));
}

}  // namespace
}  // namespace weft::perf
