// Which looks at the network served somebody, by the time they took.
#include <gtest/gtest.h>

#include "base/pace.hpp"

namespace weft::core {
namespace {

using std::chrono::microseconds;

PollCost used_to(Nanoseconds empty_look) {
  PollCost looks;
  for (int i = 0; i < 100; ++i) looks.served(empty_look);
  return looks;
}

TEST(PollCost, ALongLookServed) {
  PollCost looks = used_to(microseconds(1));
  EXPECT_TRUE(looks.served(microseconds(5)));
  EXPECT_FALSE(looks.served(microseconds(1)));
}

TEST(PollCost, WhatIsLongIsMeasuredByTheOthers) {
  PollCost looks = used_to(microseconds(10));
  EXPECT_FALSE(looks.served(microseconds(20)));
}

TEST(PollCost, WhatWasFoundServedHoweverShort) {
  PollCost looks = used_to(microseconds(1));
  EXPECT_TRUE(looks.served(microseconds(1), true));
}

TEST(PollCost, OneShortLookDoesNotMakeTheOthersLongForEver) {
  PollCost looks = used_to(microseconds(1));
  looks.served(Nanoseconds(50));
  int thought_to_serve = 0;
  for (int i = 0; i < 10'000; ++i) thought_to_serve += looks.served(microseconds(1));
  EXPECT_GT(thought_to_serve, 0);
  EXPECT_LT(thought_to_serve, 1000);
}

TEST(PollCost, AHundredLongLooksInARowAllServed) {
  PollCost looks = used_to(microseconds(1));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(looks.served(microseconds(5)));
}

}  // namespace
}  // namespace weft::core
