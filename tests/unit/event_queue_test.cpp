// Events in order, and a descriptor that says whether there are any.
#include "services/event_queue.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <thread>
#include <vector>

namespace weft::core {
namespace {

bool readable(const EventQueue& queue, int timeout_ms = 0) {
  pollfd waited{queue.fd(), POLLIN, 0};
  return ::poll(&waited, 1, timeout_ms) == 1;
}

Event event(std::uint64_t cookie) {
  Event made;
  made.cookie = cookie;
  return made;
}

TEST(EventQueue, IsReadableExactlyWhileThereAreEvents) {
  EventQueue queue;
  std::array<Event, 2> events;
  EXPECT_FALSE(readable(queue));
  EXPECT_EQ(queue.poll(events), 0U);
  for (std::uint64_t cookie = 0; cookie < 5; ++cookie) queue.push(event(cookie));
  EXPECT_EQ(queue.size(), 5U);
  std::uint64_t expected = 0;
  for (const std::size_t count : {2U, 2U, 1U}) {
    EXPECT_TRUE(readable(queue));
    ASSERT_EQ(queue.poll(events), count);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(events[i].cookie, expected++);
  }
  EXPECT_FALSE(readable(queue));
  queue.push(event(9));
  EXPECT_TRUE(readable(queue));
  EXPECT_EQ(queue.poll({}), 0U);
  EXPECT_TRUE(readable(queue)) << "nothing was taken";
}

TEST(EventQueue, LosesNothingBetweenThreads) {
  EventQueue queue;
  constexpr std::uint64_t each = 2000;
  std::vector<std::thread> pushers;
  for (std::uint64_t pusher = 0; pusher < 3; ++pusher)
    pushers.emplace_back([&, pusher] {
      for (std::uint64_t i = 0; i < each; ++i) queue.push(event(pusher * each + i));
    });
  std::vector<bool> seen(3 * each);
  std::array<std::uint64_t, 3> next{};
  for (std::size_t count = 0; count < seen.size();) {
    ASSERT_TRUE(readable(queue, 30000)) << "after " << count;
    std::array<Event, 16> events;
    const std::size_t taken = queue.poll(events);
    for (std::size_t i = 0; i < taken; ++i) {
      const std::uint64_t cookie = events[i].cookie;
      ASSERT_FALSE(seen[cookie]);
      seen[cookie] = true;
      EXPECT_EQ(next[cookie / each]++, cookie % each) << "in order for each pusher";
    }
    count += taken;
  }
  for (std::thread& pusher : pushers) pusher.join();
  EXPECT_FALSE(readable(queue));
}

}  // namespace
}  // namespace weft::core
