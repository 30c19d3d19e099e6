// A thread keeps to one of its cores, and gets all of them back.
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "topo/machine.hpp"

namespace weft::topo {
namespace {

cpu_set_t cores_of_this_thread() {
  cpu_set_t cores;
  EXPECT_EQ(sched_getaffinity(0, sizeof cores, &cores), 0);
  return cores;
}

TEST(OneCore, IsKeptToAndLeft) {
  if (cores().allowed < 2) GTEST_SKIP() << "one core";
  std::thread([] {
    const cpu_set_t all = cores_of_this_thread();
    {
      OneCore core(1);
      core.keep(true);
      const cpu_set_t kept = cores_of_this_thread();
      EXPECT_LT(CPU_COUNT(&kept), CPU_COUNT(&all));
      core.keep(false);
      const cpu_set_t left = cores_of_this_thread();
      EXPECT_TRUE(CPU_EQUAL(&left, &all));
      core.keep(true);
    }
    const cpu_set_t afterwards = cores_of_this_thread();
    EXPECT_TRUE(CPU_EQUAL(&afterwards, &all));
  }).join();
}

TEST(OneCore, CountsOnBeyondTheLast) {
  if (cores().allowed < 2) GTEST_SKIP() << "one core";
  const auto kept_by = [](unsigned index) {
    cpu_set_t kept;
    std::thread([&] {
      OneCore core(index);
      core.keep(true);
      kept = cores_of_this_thread();
    }).join();
    return kept;
  };
  const cpu_set_t first = kept_by(0), second = kept_by(1), again = kept_by(cores().allowed);
  EXPECT_FALSE(CPU_EQUAL(&first, &second));
  EXPECT_TRUE(CPU_EQUAL(&first, &again));
}

}  // namespace
}  // namespace weft::topo
