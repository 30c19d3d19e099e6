// The loops over operations that take a known time.
#include "load.hpp"

#include <gmock/gmock.h>

#include <thread>
#include <vector>

namespace weft::perf {
namespace {

constexpr auto patience = std::chrono::seconds(30);

/// Served one after the other, each for as long as it is told.
class Served : public Operations {
 public:
  Served(const Work& work, Nanoseconds time) : time_(time), ends_(work.window) {}

  Result<void> begin(std::uint32_t operation) override {
    begun.push_back(operation);
    free_at_ = std::max(free_at_, Clock::now()) + time_;
    ends_[operation] = free_at_;
    return {};
  }
  Result<std::optional<Clock::time_point>> end_of(std::uint32_t operation) override {
    if (failing && begun.size() >= 3) return fail(Code::corrupt, "as the test wants it");
    if (never || Clock::now() < ends_[operation]) return std::nullopt;
    return ends_[operation];
  }
  void wait(std::uint32_t operation, Deadline deadline) override {
    std::this_thread::sleep_until(never ? deadline.when()
                                        : std::min(deadline.when(), ends_[operation]));
  }

  std::vector<std::uint32_t> begun;
  bool failing = false, never = false;

 private:
  const Nanoseconds time_;
  Clock::time_point free_at_{};
  std::vector<Clock::time_point> ends_;
};

Work windowed(std::uint32_t window, std::uint32_t batch = 1, double rate = 0) {
  Work work;
  work.size = 1;
  work.window = window;
  work.batch = batch;
  work.rate = rate;
  return work;
}

const std::atomic<bool> go_on{false};

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
  const std::atomic<bool> stop{true};
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

TEST(OpenLoop, StopsSoon) {
  const Work work = windowed(1, 1, 1);
  Served served(work, {});
  const std::atomic<bool> stop{true};
  const auto load = open_loop(served, work, {patience, 0}, patience, 1, stop);
  ASSERT_FALSE(load);
  EXPECT_EQ(load.error().code(), Code::cancelled);
}

}  // namespace
}  // namespace weft::perf
