// When a thread that looks again and again comes to sleep between its looks.
#include <gtest/gtest.h>

#include <thread>

#include "base/pace.hpp"
#include "one_core.hpp"

namespace weft::core::test {
namespace {

using std::chrono::milliseconds;
using weft::test::OneCore;

/// Whether it comes to be so while this thread looks for something, which it never finds.
bool comes_to_be_crowded(Nanoseconds within) {
  Backoff backoff;
  const Deadline deadline = Deadline::in(within);
  for (auto now = Clock::now(); now < deadline.when(); now = Clock::now()) {
    backoff(now);
    if (backoff.crowded(Clock::now())) return true;
  }
  return false;
}

TEST(Backoff, WhoComputesOnTheCoreCrowdsIt) {
  const OneCore core;
  if (!core.kept()) GTEST_SKIP() << "threads can't be kept on one core here";
  const weft::test::Computing other;
  EXPECT_TRUE(comes_to_be_crowded(std::chrono::seconds(20)));
}

TEST(Backoff, TimeThatLooksThemselvesTakeIsNobodyElses) {
  Backoff backoff;
  for (int i = 0; i < 20; ++i) {
    timespec before{}, now{};
    const auto began = Clock::now();
    backoff(began);
    // Looks of 2 ms of this thread's own.
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    const auto so_long = [&] {
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
      return (now.tv_sec - before.tv_sec) * 1'000'000'000L + now.tv_nsec - before.tv_nsec;
    };
    while (so_long() < 2'000'000) {
    }
    // Others may have computed beside it.
    const auto waited = Clock::now() - began - Nanoseconds(so_long());
    if (waited >= CpuPressure::slice / 2) backoff = Backoff();
    EXPECT_FALSE(backoff.crowded(Clock::now()));
  }
}

TEST(Backoff, SleepIsNotTakenForWaiting) {
  Backoff backoff;
  for (int i = 0; i < 5; ++i) {
    backoff(Clock::now());
    std::this_thread::sleep_for(milliseconds(3));
    backoff.slept(Clock::now());
    backoff(Clock::now());
    EXPECT_FALSE(backoff.crowded(Clock::now()));
  }
}

}  // namespace
}  // namespace weft::core::test
