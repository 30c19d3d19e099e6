#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

#include "engine/admission.hpp"
#include "parts.hpp"

namespace weft::core::test {
namespace {

TEST(Seats, AreAsManyAsWasSaid) {
  Seats seats(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(seats.enter());
  EXPECT_FALSE(seats.enter());
  EXPECT_FALSE(seats.enter(Deadline::in(1ms)));
  EXPECT_EQ(seats.taken(), 3U);
  seats.leave();
  EXPECT_TRUE(seats.enter(Deadline::now()));
}

TEST(Seats, ASeatIsLeftUnlessItIsKept) {
  Seats seats(2);
  ASSERT_TRUE(seats.enter() && seats.enter());
  { const Seat left(seats); }
  {
    Seat kept(seats);
    kept.keep();
  }
  EXPECT_EQ(seats.taken(), 1U);
}

TEST(Seats, ThoseWhoWaitAllHaveTheirTurn) {
  constexpr std::size_t most = 2;
  Seats seats(most);
  std::atomic<std::size_t> inside{0}, too_many{0}, refused{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        if (!seats.enter(soon())) {
          ++refused;
          continue;
        }
        if (++inside > most) ++too_many;
        --inside;
        seats.leave();
      }
    });
  threads.clear();
  EXPECT_EQ(refused, 0U);
  EXPECT_EQ(too_many, 0U);
  EXPECT_EQ(seats.taken(), 0U);
}

TEST(Seats, NobodyWaitsForAClosedOne) {
  Seats seats(1);
  ASSERT_TRUE(seats.enter());
  auto waiting = std::async(std::launch::async, [&] { return seats.enter(soon()); });
  seats.close();
  EXPECT_FALSE(waiting.get());
  EXPECT_FALSE(seats.enter(soon()));
}

}  // namespace
}  // namespace weft::core::test
