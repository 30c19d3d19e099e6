#include "verify/hasher.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

#include "parts.hpp"

namespace weft::core::test {
namespace {

using Hash = std::optional<std::uint64_t>;

class HasherTest : public testing::Test {
 protected:
  /// A job over these ranges of `memory`, whose hash comes later.
  std::future<Hash> add(
      std::vector<Range> ranges, std::function<bool()> wanted = [] { return true; }) {
    auto promise = std::make_shared<std::promise<Hash>>();
    auto future = promise->get_future();
    Hasher::Job job;
    job.device = &host_device();
    job.base = memory.data();
    job.ranges = std::move(ranges);
    job.wanted = std::move(wanted);
    job.done = [promise](const Result<std::uint64_t>& hash) {
      promise->set_value(hash ? Hash(*hash) : std::nullopt);
    };
    EXPECT_TRUE(hasher.add(std::move(job)));
    return future;
  }
  std::uint64_t expected(const std::vector<Range>& ranges) const {
    std::vector<std::byte> whole;
    for (const Range& range : ranges)
      whole.insert(whole.end(), memory.begin() + static_cast<std::ptrdiff_t>(range.offset),
                   memory.begin() + static_cast<std::ptrdiff_t>(range.offset + range.length));
    return XXH3_64bits(whole.data(), whole.size());
  }

  void SetUp() override {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * i >> 7);
  }
  std::vector<std::byte> memory = std::vector<std::byte>(3 * Hasher::slice);
  Hasher hasher;
};

TEST_F(HasherTest, HashesRangesAsIfTheyWereOne) {
  const std::vector<std::vector<Range>> lists = {
      {{0, 1}},
      {{5, 0}, {7, 100}, {7, 0}},
      {{1000, 3}, {0, 999}, {500, 1000}},
      {{1, 3 * Hasher::slice - 1}},
      {{0, Hasher::slice}, {Hasher::slice, Hasher::slice}},
      {{17, 2 * Hasher::slice + 5}, {3, Hasher::slice - 1}, {0, 1}},
  };
  for (const auto& ranges : lists) EXPECT_EQ(add(ranges).get(), expected(ranges));
}

TEST_F(HasherTest, SmallOnesDoNotWaitForLargeOnes) {
  std::promise<void> begin;
  std::atomic<int> slices{0};
  auto large = add({{0, 3 * Hasher::slice}}, [&, begun = begin.get_future().share()] {
    begun.wait();
    ++slices;
    return true;
  });
  std::atomic<int> slices_before{0};
  auto small = add({{0, 1}}, [&] {
    slices_before = slices.load();
    return true;
  });
  begin.set_value();
  EXPECT_EQ(small.get(), expected({{0, 1}}));
  EXPECT_EQ(large.get(), expected({{0, 3 * Hasher::slice}}));
  EXPECT_EQ(slices_before, 1);
  EXPECT_EQ(slices, 3);
}

TEST_F(HasherTest, AJobThatIsNotWantedAnyMoreEnds) {
  int asked = 0;
  EXPECT_EQ(add({{0, 3 * Hasher::slice}}, [&] { return ++asked < 2; }).get(), std::nullopt);
  EXPECT_EQ(asked, 2);
}

TEST_F(HasherTest, SettledMeansThatTheSliceUnderWayIsOver) {
  EXPECT_TRUE(hasher.settle(Deadline::now())) << "nothing is under way";
  std::promise<void> asked, go_on;
  auto job = add({{0, 1}}, [&] {
    asked.set_value();
    go_on.get_future().wait();
    return true;
  });
  asked.get_future().wait();
  EXPECT_FALSE(hasher.settle(Deadline::in(5ms)));
  go_on.set_value();
  EXPECT_TRUE(hasher.settle(soon()));
  EXPECT_TRUE(job.get());
}

TEST_F(HasherTest, StoppingEndsAllJobs) {
  std::promise<void> asked, go_on;
  auto first = add({{0, 2 * Hasher::slice}}, [&, once = true]() mutable {
    if (std::exchange(once, false)) asked.set_value(), go_on.get_future().wait();
    return true;
  });
  auto second = add({{0, 1}});
  asked.get_future().wait();
  auto stopped = std::async(std::launch::async, [&] { hasher.stop(); });
  go_on.set_value();
  stopped.get();
  // Both are told, whether they were hashed before the end or not.
  EXPECT_NE(first.wait_for(0s), std::future_status::timeout);
  EXPECT_NE(second.wait_for(0s), std::future_status::timeout);
  EXPECT_EQ(hasher.add({}).error().code(), Code::closed);
}

}  // namespace
}  // namespace weft::core::test
