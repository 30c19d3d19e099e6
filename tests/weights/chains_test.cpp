// Replicas that pass weights on to each other: every byte, and ranks that fail in the middle.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "group.hpp"

namespace weft::weights::test {
namespace {

using namespace std::chrono_literals;

class Chains : public testing::TestWithParam<std::string> {
 protected:
  /// Four trainers, and eight ranks: two parts of the matrix, with four replicas of each.
  GroupOptions options() const {
    return {.provider = GetParam(), .ranks = 8, .replicas = 4, .fan_out = FanOut::chain};
  }
  GroupOptions with_faults() const {
    GroupOptions all = options();
    all.faulty = true;
    return all;
  }
  static void expect_done(Group& group, std::uint64_t step) {
    expect_all_done(group.publish(step, long_enough));
    expect_all_at(group, step);
  }
  /// What broke before may be seen late: then it costs one more step.
  static void expect_done_at_last(Group& group, std::uint64_t step) {
    const auto heard = group.publish(step, long_enough);
    if (std::count(heard.begin(), heard.end(), "done") == static_cast<std::ptrdiff_t>(heard.size()))
      return expect_all_at(group, step);
    expect_void(heard);
    expect_done(group, step + 1);
  }
  static void expect_void(const std::vector<std::string>& heard) {
    for (const std::string& each : heard) EXPECT_EQ(each.rfind("cancelled", 0), 0U) << each;
  }
  /// A step whose time was over: on a busy machine the leader may be late to say that it is void.
  static void expect_kept(Group& group, std::uint64_t step, const std::vector<std::string>& heard) {
    for (const std::string& each : heard) EXPECT_NE(each, "done");
    for (std::size_t i = 0; i < group.ranks(); ++i)
      EXPECT_EQ(group.wait(i, step, long_enough), "ok") << "rank " << i;
    expect_all_at(group, step);
  }
  /// A rank has its first bytes, and what it passes on does not arrive.
  static void begin_and_hold(Group& group, std::size_t rank, std::uint64_t step,
                             milliseconds time) {
    group.rank_ask(rank, "drop");
    group.begin(step, time);
    EXPECT_EQ(group.rank_ask(rank, "dropped 30000"), "ok");
  }
  /// `cut`: what rank 2 is told while it passes on.
  void expect_void_after(const std::string& cut) const {
    Group group(with_faults());
    expect_done(group, 1);
    begin_and_hold(group, 2, 2, 20s);
    group.rank_ask(2, cut);
    expect_void(group.heard());
    expect_all_at(group, 1);
    group.rank_ask(2, "mend");
    expect_done_at_last(group, 3);
  }
};

TEST_P(Chains, TrainersSendEachByteOnce) {
  Group group(options());
  for (std::uint64_t step = 1; step <= 3; ++step) {
    expect_done(group, step);
    EXPECT_EQ(group.sent_bytes(), Group::model_bytes());
  }
  for (std::size_t i = 0; i < group.ranks(); ++i) EXPECT_NE(group.rank_ask(i, "looks"), "0");
}

TEST_P(Chains, InPlace) {
  GroupOptions one_set = options();
  one_set.sets = 1;
  Group group(one_set);
  for (std::uint64_t step = 1; step <= 3; ++step) expect_done(group, step);
}

TEST_P(Chains, Verified) {
  GroupOptions verified = options();
  verified.verify = true;
  Group group(verified);
  for (std::uint64_t step = 1; step <= 2; ++step) expect_done(group, step);
}

TEST_P(Chains, ARankDiesWhileItPassesOn) {
  Group group(with_faults());
  expect_done(group, 1);
  begin_and_hold(group, 2, 2, 20s);
  group.rank(2).kill();
  expect_void(group.heard());
  expect_all_at(group, 1);
  group.start_rank(2);
  expect_done_at_last(group, 2);
}

TEST_P(Chains, ALinkBreaksWhileARankPassesOn) {
  expect_void_after("cut rank4");  // Another replica: the next in its ring.
}

TEST_P(Chains, ARankIsCutOffWhileItPassesOn) {
  expect_void_after("cut");
}

TEST_P(Chains, ASetIsNotWrittenWhileItIsPassedOn) {
  Group group(with_faults());
  expect_done(group, 1);
  begin_and_hold(group, 2, 2, 3s);
  expect_kept(group, 1, group.heard());
  expect_kept(group, 1, group.publish(3, 3s));
  const std::string why = group.rank_ask(2, "why");
  EXPECT_NE(why.find("waited for a peer that still gets"), std::string::npos) << why;
  group.rank_ask(2, "mend");
  expect_done_at_last(group, 4);
}

/// `publish` ends within its time, and a little for a busy machine.
void expect_in_time(std::chrono::steady_clock::time_point began, milliseconds time) {
  EXPECT_LT(std::chrono::steady_clock::now() - began, time + 2s);
}

TEST_P(Chains, ARankIsFrozen) {
  Group group(options());
  expect_done(group, 1);
  group.rank(5).signal(SIGSTOP);
  const auto began = std::chrono::steady_clock::now();
  const auto heard = group.publish(2, 3s);
  expect_in_time(began, 3s);
  group.rank(5).signal(SIGCONT);
  expect_kept(group, 1, heard);
  expect_done_at_last(group, 3);
}

TEST_P(Chains, ARankIsFrozenWhileItPassesOn) {
  Group group(with_faults());
  expect_done(group, 1);
  const auto began = std::chrono::steady_clock::now();
  begin_and_hold(group, 2, 2, 3s);
  group.rank(2).signal(SIGSTOP);
  const auto heard = group.heard();
  expect_in_time(began, 3s);
  group.rank(2).signal(SIGCONT);
  expect_kept(group, 1, heard);
  group.rank_ask(2, "mend");
  expect_done_at_last(group, 3);
}

TEST_P(Chains, ARailFails) {
  GroupOptions two_rails = with_faults();
  two_rails.rails = 2;
  Group group(two_rails);
  expect_done(group, 1);
  group.rank_ask(2, "kill 0");
  group.rank_ask(5, "kill 1");
  for (std::uint64_t step = 2; step <= 3; ++step) expect_done(group, step);
}

INSTANTIATE_TEST_SUITE_P(All, Chains, testing::Values("tcp", "shm"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace weft::weights::test
