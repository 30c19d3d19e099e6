// When a progress thread keeps to one core, and that it does.
#include "engine/core_keeping.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace weft::core {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t KiB = 1024;

/// What a thread has carried, from millisecond to millisecond.
class Traffic {
 public:
  bool small_after(std::uint64_t operations, std::uint64_t bytes_each, std::uint64_t messages = 0) {
    carried_.operations += operations;
    carried_.bytes += operations * bytes_each;
    carried_.messages += messages;
    return small_(now_ += milliseconds(1), carried_);
  }
  bool small_after_nothing(int spans) {
    bool small = false;
    for (int i = 0; i < spans; ++i) small = small_after(0, 0);
    return small;
  }

 private:
  SmallTraffic small_;
  Carried carried_;
  Clock::time_point now_{std::chrono::hours(1)};
};

TEST(SmallTraffic, GoesByTheBytesOfAnOperation) {
  Traffic traffic;
  EXPECT_FALSE(traffic.small_after_nothing(1)) << "a target sees nothing";
  EXPECT_TRUE(traffic.small_after(1, 4 * KiB));
  EXPECT_TRUE(traffic.small_after(100, 16 * KiB));
  EXPECT_FALSE(traffic.small_after(1, 64 * KiB));
  EXPECT_FALSE(traffic.small_after(30, 64 * KiB, 60)) << "messages go with what they tell of";
}

TEST(SmallTraffic, IsForgottenInTime) {
  Traffic traffic;
  EXPECT_TRUE(traffic.small_after(50, 4 * KiB));
  EXPECT_TRUE(traffic.small_after_nothing(10));
  EXPECT_FALSE(traffic.small_after_nothing(30));
}

TEST(SmallTraffic, MessagesAloneCountWhereThereAreMany) {
  Traffic traffic;
  EXPECT_FALSE(traffic.small_after(0, 0, 3)) << "signals among large writes";
  EXPECT_TRUE(traffic.small_after(0, 0, 40));
}

TEST(SmallTraffic, IsJudgedOnceInAMillisecond) {
  SmallTraffic small;
  const Clock::time_point begin{std::chrono::hours(1)};
  EXPECT_FALSE(small(begin, {}));
  EXPECT_FALSE(small(begin + std::chrono::microseconds(10), {10, 10, 0}));
  EXPECT_TRUE(small(begin + milliseconds(1), {10, 10, 0}));
}

cpu_set_t cores_of_this_thread() {
  cpu_set_t cores;
  EXPECT_EQ(sched_getaffinity(0, sizeof cores, &cores), 0);
  return cores;
}

TEST(CoreKeeping, LeavesTheCoreToItsPeerWhileItSendsWhatIsSmall) {
  if (topo::cores().allowed < 2) GTEST_SKIP() << "one core";
  std::thread([] {
    const cpu_set_t all = cores_of_this_thread();
    {
      CoreKeeping core(1);
      core(Clock::now(), {}, false);
      const cpu_set_t kept = cores_of_this_thread();
      core(Clock::now() + milliseconds(5), {1, 8, 0}, false);
      const cpu_set_t away = cores_of_this_thread();
      EXPECT_LT(CPU_COUNT(&kept), CPU_COUNT(&all));
      cpu_set_t both, either;
      CPU_AND(&both, &kept, &away);
      CPU_OR(&either, &kept, &away);
      EXPECT_EQ(CPU_COUNT(&both), 0);
      EXPECT_TRUE(CPU_EQUAL(&either, &all));
    }
    const cpu_set_t afterwards = cores_of_this_thread();
    EXPECT_TRUE(CPU_EQUAL(&afterwards, &all));
  }).join();
}

TEST(CoreKeeping, LeavesNoCoreOutWhereOthersCompute) {
  std::thread([] {
    const cpu_set_t all = cores_of_this_thread();
    CoreKeeping core(0);
    for (const Carried& carried : {Carried{}, Carried{1, 8, 0}}) {
      core(Clock::now(), carried, false);
      core(Clock::now(), carried, true);
      const cpu_set_t crowded = cores_of_this_thread();
      EXPECT_TRUE(CPU_EQUAL(&crowded, &all));
    }
  }).join();
}

TEST(CoreKeeping, WantsNothingWithoutACore) {
  const cpu_set_t before = cores_of_this_thread();
  EXPECT_FALSE(CoreKeeping(std::nullopt).due(Clock::now()));
  const cpu_set_t after = cores_of_this_thread();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(CoreKeeping, CountsOnBeyondTheLast) {
  if (topo::cores().allowed < 2) GTEST_SKIP() << "one core";
  const auto kept_by = [](unsigned index) {
    cpu_set_t kept;
    std::thread([&] {
      CoreKeeping core(index);
      core(Clock::now(), {}, false);
      kept = cores_of_this_thread();
    }).join();
    return kept;
  };
  const cpu_set_t first = kept_by(0), second = kept_by(1), again = kept_by(topo::cores().allowed);
  EXPECT_FALSE(CPU_EQUAL(&first, &second));
  EXPECT_TRUE(CPU_EQUAL(&first, &again));
}

}  // namespace
}  // namespace weft::core
