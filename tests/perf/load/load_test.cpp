// The loops over operations that take a known time.
#include "load/load.hpp"

#include <gmock/gmock.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace weft::perf {
namespace {

constexpr auto patience = std::chrono::seconds(30);

/// Served one after the other, each for as long as it is told, by a thread of its own.
class Served : public Operations {
 public:
  Served(const Work&, Nanoseconds time) : time_(time) {}

  Result<void> begin(std::uint32_t operation, Ticket ticket) override {
    begun.push_back(operation);
    if (never) return {};
    free_at_ = std::max(free_at_, Clock::now()) + (begun.size() > quick ? time_ : Nanoseconds());
    const std::lock_guard lock(mutex_);
    waiting_.push_back({free_at_, std::move(ticket)});
    changed_.notify_one();
    return {};
  }
  Result<void> outcome(std::uint32_t) override {
    if (failing && begun.size() >= 3) return fail(Code::corrupt, "as the test wants it");
    return {};
  }

  std::vector<std::uint32_t> begun;
  std::size_t quick = 0;  // So many take no time, before the others.
  bool failing = false, never = false;

 private:
  struct Due {
    Clock::time_point when;
    Ticket ticket;
  };
  void serve(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !waiting_.empty(); })) {
      const Due next = waiting_.front();
      waiting_.pop_front();
      changed_.wait_until(lock, stop, next.when, [] { return false; });
      if (stop.stop_requested()) return;
      next.ticket.tell();
    }
  }

  const Nanoseconds time_;
  Clock::time_point free_at_{};
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Due> waiting_;
  std::jthread server_{[this](const std::stop_token& stop) { serve(stop); }};
};

/// All end at once, but for the first, which ends when so many others have begun.
class FirstIsSlow final : public Operations {
 public:
  explicit FirstIsSlow(std::uint64_t others) : others_(others) {}

  Result<void> begin(std::uint32_t operation, Ticket ticket) override {
    if (begun_++ == 0) {
      slow_ = std::move(ticket);
      return {};
    }
    again = again || (operation == slow_.operation && begun_ <= others_);
    ticket.tell();
    if (begun_ == others_ + 1) slow_.tell();
    return {};
  }
  Result<void> outcome(std::uint32_t) override { return {}; }

  bool again = false;  // The slow one's place was used while it was under way.

 private:
  const std::uint64_t others_;
  std::uint64_t begun_ = 0;
  Ticket slow_;
};

Work windowed(std::uint32_t window, std::uint32_t batch = 1, double rate = 0) {
  Work work;
  work.size = 1;
  work.window = window;
  work.batch = batch;
  work.rate = rate;
  return work;
}

const std::stop_token go_on;

TEST(Fanned, GoesToEachWindowInTurn) {
  const Work work = windowed(2);
  std::vector<std::unique_ptr<Operations>> windows;
  std::vector<Served*> served;
  for (int i = 0; i < 3; ++i) {
    auto made = std::make_unique<Served>(work, std::chrono::microseconds(10));
    served.push_back(made.get());
    windows.push_back(std::move(made));
  }
  Fanned all(std::move(windows));
  ASSERT_TRUE(closed_loop(all, windowed(6), {patience, 6}, patience, go_on));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(served[i]->begun, testing::ElementsAre(0, 1));
    EXPECT_EQ(all.begun(i), 2U);
  }
}

TEST(ClosedLoop, RunsAsOftenAsAsked) {
  for (const std::uint32_t batch : {1U, 3U, 4U}) {
    const Work work = windowed(4, batch);
    Served served(work, std::chrono::microseconds(50));
    const auto load = closed_loop(served, work, {patience, 101}, patience, go_on);
    ASSERT_TRUE(load) << load.error().to_string();
    EXPECT_EQ(load->operations, 101U);
    EXPECT_EQ(load->latency.count(), 101U);
    EXPECT_EQ(served.begun.size(), 101U);
    EXPECT_GE(load->seconds, 101 * 50e-6);
    EXPECT_GE(load->latency.quantile(0), std::chrono::microseconds(50));
  }
}

/// What is looked at in the end has been carried out.
TEST(ClosedLoop, AWindowfulIsEveryOperationOnce) {
  for (const std::uint32_t batch : {1U, 2U, 3U, 5U}) {
    const Work work = windowed(5, batch);
    Served served(work, std::chrono::microseconds(10));
    ASSERT_TRUE(closed_loop(served, work, {patience, 5}, patience, go_on));
    EXPECT_THAT(served.begun, testing::UnorderedElementsAre(0, 1, 2, 3, 4)) << batch;
  }
}

/// The others go on in the places that are left. If each waited for the slow one as long as the
/// loop waits before it looks for an interrupt, they would not be done in time.
TEST(ClosedLoop, ASlowOperationHoldsUpNoOther) {
  constexpr std::uint64_t others = 3000;
  for (const std::uint32_t batch : {1U, 3U}) {
    FirstIsSlow slow(others);
    const auto load = closed_loop(slow, windowed(4, batch), {std::chrono::seconds(20), others + 1},
                                  patience, go_on);
    ASSERT_TRUE(load) << load.error().to_string();
    EXPECT_EQ(load->operations, others + 1) << batch;
    EXPECT_FALSE(slow.again);
  }
}

TEST(OpenLoop, ASlowOperationHoldsUpNoOther) {
  constexpr std::uint64_t others = 3000;
  FirstIsSlow slow(others);
  const auto load = open_loop(slow, windowed(2, 1, 10'000), {std::chrono::seconds(20), others + 1},
                              patience, 1, go_on);
  ASSERT_TRUE(load) << load.error().to_string();
  EXPECT_EQ(load->operations, others + 1);
  EXPECT_FALSE(slow.again);
}

TEST(Ends, AreToldOnceAndInOrder) {
  Ends ends;
  EXPECT_TRUE(ends.take().empty());
  for (const std::uint32_t operation : {3U, 1U, 2U}) ends.tell(operation);
  ends.wait(Deadline::in(patience));  // Comes back at once, or the test takes too long.
  const auto& taken = ends.take();
  ASSERT_EQ(taken.size(), 3U);
  EXPECT_EQ(taken[0].operation, 3U);
  EXPECT_EQ(taken[2].operation, 2U);
  EXPECT_LE(taken[0].when, taken[2].when);
  EXPECT_FALSE(ends.any());
  EXPECT_TRUE(ends.take().empty());
}

/// One that sleeps for the next is woken by it.
TEST(Ends, WakeWhoWaits) {
  Ends ends;
  for (std::uint32_t i = 0; i < 100; ++i) {
    const std::jthread telling([&] {
      // Later than it looks before it sleeps.
      if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
      ends.tell(i);
    });
    const Deadline deadline = Deadline::in(patience);
    ends.wait(deadline);
    ASSERT_FALSE(deadline.passed());
    ASSERT_EQ(ends.take().size(), 1U);
  }
  ends.wait(Deadline::in(std::chrono::milliseconds(1)));
  EXPECT_FALSE(ends.any());
}

TEST(ClosedLoop, EndsWhenItsTimeIsOver) {
  const Work work = windowed(2);
  Served served(work, std::chrono::microseconds(100));
  const auto begun = Clock::now();
  const auto load = closed_loop(served, work, {std::chrono::milliseconds(50), 0}, patience, go_on);
  const auto passed = Clock::now() - begun;
  ASSERT_TRUE(load);
  EXPECT_GE(passed, std::chrono::milliseconds(50));
  EXPECT_LE(load->seconds, std::chrono::duration<double>(passed).count());
  EXPECT_GE(load->operations, 2U);
  // One after the other, they can't have been more.
  EXPECT_LE(static_cast<double>(load->operations) * 100e-6, load->seconds);
}

TEST(ClosedLoop, TellsWhatFailed) {
  const Work work = windowed(2);
  Served served(work, std::chrono::microseconds(100));
  served.failing = true;
  const auto load = closed_loop(served, work, {patience, 0}, patience, go_on);
  ASSERT_FALSE(load);
  EXPECT_EQ(load.error().code(), Code::corrupt);
}

TEST(ClosedLoop, GivesUpOnWhatNeverEnds) {
  const Work work = windowed(2);
  Served served(work, {});
  served.never = true;
  const auto load = closed_loop(served, work, {patience, 0}, std::chrono::milliseconds(100), go_on);
  ASSERT_FALSE(load);
  EXPECT_EQ(load.error().code(), Code::timed_out);
}

TEST(ClosedLoop, StopsSoon) {
  const Work work = windowed(2);
  Served served(work, {});
  served.never = true;
  std::stop_source source;
  source.request_stop();
  const auto stop = source.get_token();
  const auto load = closed_loop(served, work, {patience, 0}, patience, stop);
  ASSERT_FALSE(load);
  EXPECT_EQ(load.error().code(), Code::cancelled);
}

TEST(OpenLoop, KeepsItsRate) {
  const Work work = windowed(1000, 1, 5000);  // Room for all, should this thread get no time.
  Served served(work, std::chrono::microseconds(1));
  const auto load = open_loop(served, work, {patience, 1000}, patience, 1, go_on);
  ASSERT_TRUE(load) << load.error().to_string();
  EXPECT_EQ(load->operations, 1000U);
  EXPECT_FALSE(load->overloaded);
  // A thousand arrivals take 0.2 s, give or take a seventh (in more than 99.99 % of seeds).
  EXPECT_GE(load->seconds, 0.2 * 6 / 7);
}

/// Ten times more than can be served: each operation takes 1 ms, but the wait for it counts.
TEST(OpenLoop, LatencyHasTheWaitInIt) {
  const Work work = windowed(1, 1, 10'000);
  Served served(work, std::chrono::milliseconds(1));
  const auto load = open_loop(served, work, {patience, 200}, patience, 1, go_on);
  ASSERT_TRUE(load);
  EXPECT_EQ(load->operations, 200U);
  EXPECT_TRUE(load->overloaded);
  EXPECT_GE(load->latency.quantile(0.5), std::chrono::milliseconds(60));
  EXPECT_GE(load->latency.greatest(), std::chrono::milliseconds(150));
}

/// However much waits then: 10 seconds' worth of it.
TEST(OpenLoop, AnOverloadEndsWithItsTime) {
  constexpr auto time = std::chrono::milliseconds(100);
  const Work work = windowed(1, 1, 100'000);
  Served served(work, std::chrono::milliseconds(1));
  const auto load = open_loop(served, work, {time, 0}, patience, 1, go_on);
  ASSERT_TRUE(load);
  EXPECT_TRUE(load->overloaded);
  EXPECT_LE(load->operations, 101U);
}

/// The queue is bounded by a second's arrivals, however long the run.
TEST(OpenLoop, StopsTakingWhatCantBeServed) {
  const Work work = windowed(1, 1, 100);
  Served served(work, std::chrono::milliseconds(20));
  const auto begun = Clock::now();
  const auto load = open_loop(served, work, {patience, 0}, patience, 1, go_on);
  ASSERT_TRUE(load);
  EXPECT_TRUE(load->overloaded);
  EXPECT_LT(load->operations, 400U);
  EXPECT_GE(Clock::now() - begun, std::chrono::seconds(1));
}

/// What was served before does not outweigh it: a full queue has cut the run short.
TEST(OpenLoop, IsOverloadedHoweverMuchWasServedBefore) {
  const Work work = windowed(100, 1, 1000);  // Room for a while without time for this thread.
  Served served(work, std::chrono::milliseconds(2));
  served.quick = 300;
  const auto load =
      open_loop(served, work, {patience, 0}, patience, 1, go_on, std::chrono::milliseconds(10));
  ASSERT_TRUE(load);
  EXPECT_TRUE(load->overloaded);
  EXPECT_LT(load->operations, 5000U);
}

TEST(OpenLoop, StopsSoon) {
  const Work work = windowed(1, 1, 1);
  Served served(work, {});
  std::stop_source source;
  source.request_stop();
  const auto stop = source.get_token();
  const auto load = open_loop(served, work, {patience, 0}, patience, 1, stop);
  ASSERT_FALSE(load);
  EXPECT_EQ(load.error().code(), Code::cancelled);
}

}  // namespace
}  // namespace weft::perf
