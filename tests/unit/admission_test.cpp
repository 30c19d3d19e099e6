#include "services/admission.hpp"

#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

#include "parts.hpp"

namespace weft::core::test {
namespace {

TEST(Admission, AreAsManyAsWasSaid) {
  Admission admission(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(admission.enter());
  EXPECT_FALSE(admission.enter());
  EXPECT_FALSE(admission.enter(Deadline::in(1ms)));
  EXPECT_EQ(admission.taken(), 3U);
  admission.leave();
  EXPECT_TRUE(admission.enter(Deadline::now()));
}

TEST(Admission, ASeatIsLeftUnlessItIsKept) {
  Admission admission(2);
  ASSERT_TRUE(admission.enter() && admission.enter());
  { const AdmissionSlot left(admission); }
  {
    AdmissionSlot kept(admission);
    kept.keep();
  }
  EXPECT_EQ(admission.taken(), 1U);
}

TEST(Admission, ThoseWhoWaitAllHaveTheirTurn) {
  constexpr std::size_t most = 2;
  Admission admission(most);
  std::atomic<std::size_t> inside{0}, too_many{0}, refused{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        if (!admission.enter(soon())) {
          ++refused;
          continue;
        }
        if (++inside > most) ++too_many;
        --inside;
        admission.leave();
      }
    });
  threads.clear();
  EXPECT_EQ(refused, 0U);
  EXPECT_EQ(too_many, 0U);
  EXPECT_EQ(admission.taken(), 0U);
}

TEST(Admission, NobodyWaitsForAClosedOne) {
  Admission admission(1);
  ASSERT_TRUE(admission.enter());
  auto waiting = std::async(std::launch::async, [&] { return admission.enter(soon()); });
  admission.close();
  EXPECT_FALSE(waiting.get());
  EXPECT_FALSE(admission.enter(soon()));
}

}  // namespace
}  // namespace weft::core::test
