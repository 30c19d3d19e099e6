// Things that complete once, and things that are counted.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "base/completion_slot.hpp"
#include "base/random.hpp"
#include "base/use_count.hpp"
#include "parts.hpp"

namespace weft::core::test {
namespace {

class CountingSlot : public CompletionSlot {
 public:
  std::atomic<int> calls{0};
  std::optional<Code> told;

 private:
  void ended(const Error* error) override {
    EXPECT_FALSE(done()) << "called before waiters wake";
    if (error != nullptr) told = error->code();
    ++calls;
  }
  void announce(const Error*) override {
    EXPECT_TRUE(done()) << "whoever hears of it finds it done";
    EXPECT_EQ(++announcements, 1);
  }
  int announcements = 0;
};

TEST(CompletionSlot, CompletesOnce) {
  CountingSlot slot;
  EXPECT_FALSE(slot.wait(Deadline::now()));
  slot.complete(Error(Code::stale, "first"));
  slot.complete(std::nullopt);
  EXPECT_EQ(slot.calls, 1);
  EXPECT_EQ(slot.told, Code::stale);
  EXPECT_TRUE(slot.wait(Deadline::now()));
  EXPECT_EQ(slot.error()->code(), Code::stale);
}

TEST(CompletionSlot, WakesWaitersAndCallsOnceFromManyThreads) {
  for (int round = 0; round < 100; ++round) {
    CountingSlot slot;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] { slot.complete(std::nullopt); });
      threads.emplace_back([&] {
        EXPECT_TRUE(slot.wait(soon()));
        EXPECT_EQ(slot.calls, 1);
        EXPECT_FALSE(slot.told.has_value());
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(UseCount, ClosedLetsNobodyIn) {
  UseCount count;
  EXPECT_TRUE(count.enter());
  EXPECT_FALSE(count.idle());
  count.close();
  EXPECT_TRUE(count.closed());
  EXPECT_FALSE(count.enter());
  EXPECT_FALSE(count.wait_idle(Deadline::now()));
  count.leave();
  EXPECT_TRUE(count.idle());
  EXPECT_TRUE(count.wait_idle(Deadline::now()));
}

TEST(UseCount, TellsWhenTheLastHasLeft) {
  UseCount count;
  count.enter();
  count.enter();
  count.close();
  int told = 0;
  count.when_idle([&] { ++told; });
  count.leave();
  EXPECT_EQ(told, 0);
  count.leave();
  EXPECT_EQ(told, 1);
  count.when_idle([&] { ++told; });
  EXPECT_EQ(told, 2) << "at once when there is nobody";
}

// A revocation that was asked for twice has two who wait.
TEST(UseCount, TellsEverybodyWhoAsked) {
  UseCount count;
  count.enter();
  count.close();
  int told = 0;
  count.when_idle([&] { ++told; });
  count.when_idle([&] { ++told; });
  count.leave();
  EXPECT_EQ(told, 2);
}

TEST(UseCount, WakesThoseWhoWait) {
  UseCount count;
  count.enter();
  count.close();
  std::thread leaver([&] { count.leave(); });
  EXPECT_TRUE(count.wait_idle(soon()));
  leaver.join();
}

// Closed while others come and go: when it is idle nobody is in, nor comes in any more.
TEST(UseCount, IsIdleWhenNobodyIsLeft) {
  for (int round = 0; round < 100; ++round) {
    UseCount count;
    std::atomic<int> inside{0};
    std::atomic<bool> begun{false};
    std::vector<std::thread> users;
    for (int i = 0; i < 3; ++i)
      users.emplace_back([&] {
        while (count.enter()) {
          ++inside;
          begun = true;
          begun.notify_one();
          --inside;
          count.leave();
        }
      });
    begun.wait(false);
    count.close();
    std::atomic<int> told{0};
    count.when_idle([&] { told += inside == 0 ? 1 : 100; });
    EXPECT_TRUE(count.wait_idle(soon()));
    EXPECT_EQ(inside, 0);
    for (std::thread& user : users) user.join();
    EXPECT_EQ(told, 1);
    EXPECT_TRUE(count.idle());
  }
}

TEST(Random, IsNeverZeroNorTheSame) {
  const std::uint64_t first = random_u64();
  EXPECT_NE(first, 0U);
  EXPECT_NE(first, random_u64());
}

}  // namespace
}  // namespace weft::core::test
