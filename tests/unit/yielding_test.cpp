// Who gets the core between two looks.
#include "base/yielding.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

namespace weft::core::test {
namespace {

/// Keeps the calling thread, and those that it starts, on the core that it runs on.
class OneCore {
 public:
  OneCore() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    kept_ = sched_getaffinity(0, sizeof before_, &before_) == 0 &&
            sched_setaffinity(0, sizeof one, &one) == 0;
  }
  ~OneCore() {
    if (kept_) sched_setaffinity(0, sizeof before_, &before_);
  }
  bool kept() const { return kept_; }

 private:
  cpu_set_t before_;
  bool kept_ = false;
};

/// How often another thread on this one's core has its turn during so many looks of this one's,
/// which has had the core to itself for some others before.
unsigned turns_of_another(unsigned looks_alone, unsigned looks) {
  Yielding yielding;
  for (unsigned i = 0; i < looks_alone; ++i) yielding(Clock::now());
  std::atomic<unsigned> turns{0};
  std::jthread other([&](const std::stop_token& stop) {
    for (; !stop.stop_requested(); ++turns) sched_yield();
  });
  while (turns == 0) sched_yield();
  turns = 0;
  for (unsigned i = 0; i < looks; ++i) yielding(Clock::now());
  return turns;
}

TEST(Yielding, WhoSharesTheCoreHasItAfterAlmostEachLook) {
  const OneCore core;
  if (!core.kept()) GTEST_SKIP() << "threads can't be kept on one core here";
  EXPECT_GT(turns_of_another(0, 400), 50u);
}

TEST(Yielding, WhoComesToAThreadThatWasLongAloneHasItSoon) {
  const OneCore core;
  if (!core.kept()) GTEST_SKIP() << "threads can't be kept on one core here";
  EXPECT_GT(turns_of_another(100'000, 4096), 1000u);
}

}  // namespace
}  // namespace weft::core::test
