// New weights between processes: steps in a row, ranks that die and come back.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "group.hpp"

namespace weft::weights::test {
namespace {

using namespace std::chrono_literals;

class Steps : public testing::TestWithParam<std::string> {
 protected:
  GroupOptions options(std::size_t sets = 2) const {
    return {.provider = GetParam(), .sets = sets};
  }
};

TEST_P(Steps, ThreeInARow) {
  Group group(options());
  for (std::uint64_t step = 1; step <= 3; ++step) {
    expect_all_done(group.publish(step, long_enough));
    expect_all_at(group, step);
  }
  for (std::size_t i = 0; i < group.ranks(); ++i) EXPECT_NE(group.rank_ask(i, "looks"), "0");
}

TEST_P(Steps, InPlace) {
  Group group(options(1));
  for (std::uint64_t step = 1; step <= 3; ++step) {
    expect_all_done(group.publish(step, long_enough));
    expect_all_at(group, step);
  }
}

TEST_P(Steps, OfRanksInOtherNumbers) {
  Group group({.provider = GetParam(), .trainers = 2, .ranks = 3});
  expect_all_done(group.publish(10, long_enough));
  expect_all_done(group.publish(20, long_enough));
  expect_all_at(group, 20);
}

TEST_P(Steps, AnOlderStepIsRefused) {
  Group group({.provider = GetParam(), .trainers = 1, .ranks = 1});
  expect_all_done(group.publish(5, long_enough));
  const std::string why = group.publish(3, long_enough)[0];
  EXPECT_NE(why.find("a step 5 was published before: publish a greater one; to go back"),
            std::string::npos)
      << why;
  EXPECT_NE(group.publish(5, long_enough)[0].find("a step 5 was published before"),
            std::string::npos);
  expect_all_at(group, 5);
}

TEST_P(Steps, AReaderKeepsItsVersion) {
  Group group({.provider = GetParam(), .trainers = 2, .ranks = 2});
  expect_all_done(group.publish(1, long_enough));
  group.rank_ask(0, "pin");
  expect_all_done(group.publish(2, long_enough));  // The other set.
  for (const std::string& each : group.publish(3, 3s)) EXPECT_NE(each, "done");
  // On a machine that stood still the leader may be late; the ranks ask each other then.
  EXPECT_TRUE(comes_to_say(group, 1, "why", "step 3 is void"));
  EXPECT_TRUE(comes_to_say(group, 0, "why", "waited for a reader"));
  expect_all_at(group, 2);
  group.rank_ask(0, "unpin");
  expect_all_done(group.publish(4, long_enough));
  expect_all_at(group, 4);
}

TEST_P(Steps, ATrainerIsMissing) {
  Group group({.provider = GetParam(), .trainers = 2, .ranks = 2});
  expect_all_done(group.publish(1, long_enough));
  group.trainer(1).kill();
  const auto heard = group.publish(2, 3s);
  EXPECT_NE(heard[0].find("publisher 1 is not there"), std::string::npos) << heard[0];
  expect_all_at(group, 1);
  group.start_trainer(1);
  expect_all_done(group.publish(2, long_enough));
  expect_all_at(group, 2);
}

TEST_P(Steps, ALeaderThatStoodStillSaysWhatWasMissing) {
  Group group({.provider = GetParam(), .trainers = 2, .ranks = 1});
  expect_all_done(group.publish(1, long_enough));
  group.trainer(1).kill();
  group.begin(2, 500ms);
  std::this_thread::sleep_for(100ms);  // It publishes by now; if not, it is not late either.
  group.trainer(0).freeze();
  std::this_thread::sleep_for(500ms);
  group.trainer(0).signal(SIGCONT);
  const auto heard = group.heard();
  EXPECT_NE(heard[0].find("publisher 1 is not there"), std::string::npos) << heard[0];
}

TEST_P(Steps, ARankComesBack) {
  Group group({.provider = GetParam(), .trainers = 2, .ranks = 2});
  expect_all_done(group.publish(1, long_enough));
  group.rank(1).kill();
  group.start_rank(1);
  EXPECT_EQ(group.standing(1), "none 0");
  expect_all_done(group.publish(2, long_enough));
  expect_all_at(group, 2);
}

TEST_P(Steps, TheLeaderComesBack) {
  Group group({.provider = GetParam(), .trainers = 2, .ranks = 2});
  expect_all_done(group.publish(1, long_enough));
  group.trainer(0).kill();
  expect_all_at(group, 1);
  group.start_trainer(0);
  expect_all_done(group.publish(2, long_enough));
  expect_all_at(group, 2);
}

TEST_P(Steps, InPlaceAReaderLosesNothing) {
  Group group({.provider = GetParam(), .trainers = 1, .ranks = 1, .sets = 1});
  expect_all_done(group.publish(1, long_enough));
  group.rank_ask(0, "pin");
  EXPECT_NE(group.publish(2, 4s)[0], "done");
  EXPECT_EQ(group.wait(0, 1, long_enough), "ok");
  expect_all_at(group, 1);
  group.rank_ask(0, "unpin");
  expect_all_done(group.publish(2, long_enough));
  expect_all_at(group, 2);
}

/// The leader comes to itself when publisher 1 has given one call up and made another.
TEST_P(Steps, AnAnswerIsNotTakenForAnotherCalls) {
  Group group({.provider = GetParam(), .trainers = 2, .ranks = 1, .sets = 1});
  expect_all_done(group.publish(1, long_enough));
  group.rank_ask(0, "pin");
  group.begin(2, 2s);
  ASSERT_TRUE(comes_to_say(group, 0, "standing", "unusable 1"));
  group.trainer(0).signal(SIGSTOP);
  EXPECT_NE(group.trainer(1).hear().find("the leader did not answer in time"), std::string::npos);
  group.trainer(1).say("publish 2 60000");
  group.trainer(0).signal(SIGCONT);
  EXPECT_NE(group.trainer(0).hear(), "done");
  group.rank_ask(0, "unpin");
  EXPECT_EQ(group.wait(0, 1, long_enough), "ok");
  const std::string first = group.trainer(0).ask("publish 2 60000");
  const std::string second = group.trainer(1).hear();
  EXPECT_EQ(second, first);
  EXPECT_TRUE(first == "done" || first.find("a step 2 was published before") != std::string::npos)
      << first;
}

INSTANTIATE_TEST_SUITE_P(All, Steps, testing::Values("tcp", "shm"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace weft::weights::test
