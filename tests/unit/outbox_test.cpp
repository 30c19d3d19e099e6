// Messages that wait to be sent.
#include "peer/outbox.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "parts.hpp"

namespace weft::core::test {
namespace {

Outgoing message(std::uint64_t tag) {
  return {MessageKind::tagged, tag, {}, nullptr};
}

TEST(Outbox, IsFirstInFirstOut) {
  Outbox outbox(3);
  for (std::uint64_t tag : {1U, 2U, 3U}) EXPECT_TRUE(outbox.push(message(tag), Deadline::now()));
  for (std::uint64_t tag : {1U, 2U, 3U}) EXPECT_EQ(outbox.pop()->tag, tag);
  EXPECT_FALSE(outbox.pop());
}

TEST(Outbox, RefusesBeyondItsLimitUnlessUnbounded) {
  Outbox outbox(2);
  EXPECT_TRUE(outbox.push(message(1), Deadline::now()));
  EXPECT_TRUE(outbox.push(message(2), Deadline::now()));
  EXPECT_FALSE(outbox.push(message(3), Deadline::in(5ms)));
  EXPECT_TRUE(outbox.push_unbounded(message(4)));
  outbox.pop();
  EXPECT_FALSE(outbox.push(message(5), Deadline::now())) << "still two";
  outbox.pop();
  EXPECT_TRUE(outbox.push(message(6), Deadline::now()));
  EXPECT_EQ(outbox.pop()->tag, 4U);
}

TEST(Outbox, WaitsForRoom) {
  Outbox outbox(1);
  ASSERT_TRUE(outbox.push(message(1), Deadline::now()));
  std::thread taker([&] { outbox.pop(); });
  EXPECT_TRUE(outbox.push(message(2), soon()));
  taker.join();
}

TEST(Outbox, ClosingFreesThoseWhoWaitAndReturnsTheRest) {
  Outbox outbox(1);
  ASSERT_TRUE(outbox.push(message(1), Deadline::now()));
  bool pushed = true;
  std::thread waiter([&] { pushed = outbox.push(message(2), soon()); });
  const auto rest = outbox.close();
  waiter.join();
  EXPECT_FALSE(pushed);
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest.front().tag, 1U);
  EXPECT_FALSE(outbox.push(message(3), Deadline::now()));
  EXPECT_FALSE(outbox.push_unbounded(message(4)));
  EXPECT_FALSE(outbox.pop());
}

TEST(Outbox, IsIdleWhenEverythingIsSettled) {
  Outbox outbox(4);
  EXPECT_TRUE(outbox.wait_idle(Deadline::now()));
  outbox.push(message(1), Deadline::now());
  EXPECT_FALSE(outbox.wait_idle(Deadline::now()));
  outbox.pop();
  EXPECT_FALSE(outbox.wait_idle(Deadline::now())) << "it is under way";
  std::thread settler([&] { outbox.settled(); });
  EXPECT_TRUE(outbox.wait_idle(soon()));
  settler.join();
}

TEST(Outbox, IsIdleWhenClosed) {
  Outbox outbox(4);
  outbox.push(message(1), Deadline::now());
  outbox.pop();
  outbox.close();
  EXPECT_TRUE(outbox.wait_idle(Deadline::now()));
}

}  // namespace
}  // namespace weft::core::test
