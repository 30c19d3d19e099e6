// Ranks are killed, frozen and cut off at random moments of many steps, while readers look all the
// time.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "group.hpp"

namespace weft::weights::test {
namespace {

using namespace std::chrono_literals;

constexpr milliseconds time_of_a_step = 5s;

/// How many steps: some, or as many as WEFT_TEST_WEIGHT_STEPS says.
int steps_wanted() {
  const char* wanted = std::getenv("WEFT_TEST_WEIGHT_STEPS");
  return wanted != nullptr ? std::atoi(wanted) : 10;
}

/// "in_doubt 3" -> "in_doubt" and 3.
std::pair<std::string, std::uint64_t> parse(const std::string& standing) {
  const auto space = standing.find(' ');
  return {standing.substr(0, space), std::stoull(standing.substr(space + 1))};
}

struct Variant {
  std::string provider;
  FanOut fan_out;
};

class Kills : public testing::TestWithParam<Variant> {
 protected:
  using Number = std::size_t;
  Number draw(Number below) { return std::uniform_int_distribution<Number>(0, below - 1)(random); }
  void pause(std::chrono::microseconds most) {
    std::this_thread::sleep_for(std::chrono::microseconds(draw(static_cast<Number>(most.count()))));
  }

  /// Something happens to somebody; it may take a while.
  void strike() {
    const Number victim = draw(group.trainers() + group.ranks());
    const bool trains = victim < group.trainers();
    auto& child = trains ? group.trainer(victim) : group.rank(victim - group.trainers());
    const Number what = draw(4);
    cut_off = what > 1;
    if (what <= 1) {
      child.kill();
    } else if (what == 2) {
      child.signal(SIGSTOP);
      pause(draw(16) == 0 ? time_of_a_step * 2 : 200ms);
      child.signal(SIGCONT);
    } else if (!trains) {
      // From all, or from one other.
      const std::string whom = draw(2) == 0 ? "" : " rank" + std::to_string(draw(group.ranks()));
      group.rank_ask(victim - group.trainers(), "cut" + whom);
    }
  }
  /// Of those that live; the others are started again afterwards.
  void check(std::uint64_t step, const std::vector<std::string>& heard) {
    bool done = false, voided = false;
    for (const std::string& each : heard) {
      SCOPED_TRACE(each);
      const auto is = [&](const char* code) { return each.rfind(code, 0) == 0; };
      EXPECT_TRUE(is("done") || is("dead") || is("cancelled") || is("unavailable") ||
                  is("quarantined"));
      done |= is("done") || each.find("is done") != std::string::npos;
      voided |= each.find("is void") != std::string::npos;
    }
    EXPECT_FALSE(done && voided) << "of step " << step;
    // A rank may hear of the leader's death a little later, and has to ask the others then; so has
    // one that was cut off, even if the leader says "done".
    const auto deadline = std::chrono::steady_clock::now() + 2 * time_of_a_step;
    std::string differ;
    do {
      differ = difference(step, done, voided);
    } while (!differ.empty() && (!done || cut_off) && std::chrono::steady_clock::now() < deadline);
    EXPECT_EQ(differ, "") << "after step " << step << ": " << ::testing::PrintToString(heard);
    ++counts[done ? "done" : voided ? "void" : "unknown"];
  }
  /// What ranks say of their steps that is not so, or not yet; empty if all is well.
  std::string difference(std::uint64_t step, bool done, bool voided) {
    std::set<std::uint64_t> usable;
    std::string said;
    bool wrong = false;
    for (std::size_t i = 0; i < group.ranks(); ++i) {
      if (!group.rank_lives(i)) continue;
      const std::string standing = group.standing(i);
      said += "rank " + std::to_string(i) + ": " + standing + "; ";
      EXPECT_EQ(group.wrong(i), "") << "rank " << i;
      const auto [state, at] = parse(standing);
      wrong |= state == "in_doubt";
      if (state != "ready") continue;
      usable.insert(at);
      wrong |= (done && at != step) || (voided && at == step);
    }
    return wrong || usable.size() > 1 ? said : "";
  }
  void revive() {
    for (std::size_t i = 0; i < group.trainers(); ++i)
      if (!group.trainer_lives(i)) group.start_trainer(i);
    for (std::size_t i = 0; i < group.ranks(); ++i)
      if (!group.rank_lives(i)) group.start_rank(i);
  }

  Group group{{.provider = GetParam().provider,
               .trainers = 2,
               .ranks = 4,
               .replicas = 2,
               .fan_out = GetParam().fan_out}};
  std::mt19937_64 random{std::random_device{}()};
  std::map<std::string, int> counts;
  bool cut_off = false;  // or frozen: somebody may not reach the leader
};

TEST_P(Kills, NobodyEverReadsAMixedStep) {
  std::uint64_t step = 0;
  for (int i = 0; i < steps_wanted(); ++i) {
    ++step;
    group.begin(step, time_of_a_step);
    cut_off = false;
    if (draw(4) != 0) {
      pause(60ms);
      strike();
    }
    check(step, group.heard());
    if (HasFatalFailure() || HasNonfatalFailure()) return;
    revive();
  }
  // In the end all are well. The last one killed may still cost a rail, and that a step.
  auto heard = group.publish(++step, 60s);
  if (heard[0].find("is void") != std::string::npos) heard = group.publish(++step, 60s);
  expect_all_done(heard);
  for (std::size_t i = 0; i < group.ranks(); ++i)
    EXPECT_EQ(group.standing(i), "ready " + std::to_string(step));
  for (const auto& [how, count] : counts) RecordProperty(how, count);
}

INSTANTIATE_TEST_SUITE_P(
    All, Kills,
    testing::Values(Variant{"tcp", FanOut::direct}, Variant{"tcp", FanOut::chain},
                    Variant{"shm", FanOut::direct}, Variant{"shm", FanOut::chain}),
    [](const auto& info) {
      return info.param.provider + (info.param.fan_out == FanOut::chain ? "_chain" : "_direct");
    });

}  // namespace
}  // namespace weft::weights::test
