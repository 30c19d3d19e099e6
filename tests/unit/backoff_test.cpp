// Who gets the core between two looks.
#include <gtest/gtest.h>

#include <atomic>

#include "base/pace.hpp"
#include "one_core.hpp"

namespace weft::core::test {
namespace {

using std::chrono::milliseconds;
using weft::test::OneCore;

/// How often another thread on this one's core has its turn during so many looks of this one's,
/// which has had the core to itself for some others before.
unsigned turns_of_another(unsigned looks_alone, unsigned looks) {
  Backoff backoff;
  for (unsigned i = 0; i < looks_alone; ++i) backoff(Clock::now());
  std::atomic<unsigned> turns{0};
  std::jthread other([&](const std::stop_token& stop) {
    for (; !stop.stop_requested(); ++turns) sched_yield();
  });
  while (turns == 0) sched_yield();
  turns = 0;
  for (unsigned i = 0; i < looks; ++i) backoff(Clock::now());
  return turns;
}

TEST(Backoff, WhoSharesTheCoreHasItAfterAlmostEachLook) {
  const OneCore core;
  if (!core.kept()) GTEST_SKIP() << "threads can't be kept on one core here";
  EXPECT_GT(turns_of_another(0, 400), 50u);
}

TEST(Backoff, WhoComesToAThreadThatWasLongAloneHasItSoon) {
  const OneCore core;
  if (!core.kept()) GTEST_SKIP() << "threads can't be kept on one core here";
  EXPECT_GT(turns_of_another(4096, 1024), 250u);
}

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
