#include "compare/compare.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <sstream>

namespace weft::perf {
namespace {

using testing::HasSubstr;

/// One point whose runs have these speeds, with latencies that go with them.
Json point_with(const std::vector<double>& speeds, std::uint64_t size = 4096, double p99 = 50'000) {
  Json runs = Json::array();
  for (const double speed : speeds)
    runs.push_back({{"gigabytes_per_second", speed},
                    {"latency_ns", {{"p50", 1e4 / speed}, {"p99", p99 / speed}}}});
  Point point;
  point.work.size = size;
  return {{"point", point}, {"provider", "net"}, {"runs", runs}};
}

Json results(const std::vector<double>& speeds, std::uint64_t size = 4096, double p99 = 50'000) {
  return {{"machines", {{"cores", 4}}}, {"points", {point_with(speeds, size, p99)}}};
}

Verdict verdict(const std::vector<double>& before, const std::vector<double>& now) {
  const auto compared = compare(results(before), results(now), 0.03);
  EXPECT_TRUE(compared);
  EXPECT_EQ(compared->changes.size(), 3U);
  EXPECT_EQ(compared->changes[0].figure, "GB/s");
  // Latencies are the inverse: all three figures agree.
  EXPECT_EQ(compared->changes[1].verdict, compared->changes[0].verdict);
  EXPECT_EQ(compared->changes[2].verdict, compared->changes[0].verdict);
  EXPECT_EQ(compared->regressed(), compared->changes[0].verdict == Verdict::worse);
  return compared->changes[0].verdict;
}

TEST(Compare, Verdicts) {
  const std::vector<double> before{10, 10.2, 9.9, 10.1, 10, 9.8};
  EXPECT_EQ(verdict(before, before), Verdict::same);
  EXPECT_EQ(verdict(before, {8, 8.1, 7.9, 8, 8.2, 8.3}), Verdict::worse);
  EXPECT_EQ(verdict(before, {12, 12.1, 11.9, 12, 12.2, 12.3}), Verdict::better);
}

TEST(Compare, NoiseIsNoChange) {
  EXPECT_EQ(verdict({10, 14, 6, 11, 9, 8}, {8, 13, 5, 10, 7, 9.5}), Verdict::same);
}

TEST(Compare, LessThanTheThresholdIsNoChange) {
  const std::vector<double> before{10, 10.01, 10.02, 10.01, 10, 10.03};
  const std::vector<double> now{9.8, 9.81, 9.8, 9.82, 9.8, 9.81};
  EXPECT_EQ(verdict(before, now), Verdict::same);
  const auto strict = compare(results(before), results(now), 0.01);
  EXPECT_TRUE(strict->regressed());
}

/// Five runs that are all slower are as rare as 1 in 126: not rare enough for three figures.
TEST(Compare, FewRunsTellNothing) {
  EXPECT_EQ(verdict({10, 10, 10}, {5, 5, 5, 5, 5}), Verdict::unknown);
  const std::vector<double> fast{10, 11, 12, 13, 14}, slow{1, 2, 3, 4, 5};
  EXPECT_EQ(verdict(fast, slow), Verdict::unknown);
  const auto compared = compare(results(fast), results(slow), 0.03);
  EXPECT_THAT(text_of(*compared, 1000), HasSubstr("can't tell of 3: 5 repeats, and 6 are needed"));
  EXPECT_THAT(text_of(*compared, 1000), HasSubstr("0 of 3 figures are as before"));
}

TEST(Compare, TellsIfAnyFigureCouldBeJudged) {
  const std::vector<double> few{10, 11}, enough{10, 10.2, 9.9, 10.1, 10, 9.8};
  EXPECT_FALSE(compare(results(few), results(few), 0.03)->tells());
  EXPECT_TRUE(compare(results(enough), results(enough), 0.03)->tells());
}

TEST(Compare, ABaselineIsWholeAndRight) {
  Json baseline = results({10, 11, 12});
  EXPECT_TRUE(check_baseline(baseline, "old.json"));
  baseline["ended"] = "interrupted";
  EXPECT_TRUE(check_baseline(baseline, "old.json"));
  baseline["ended"] = "failed";
  baseline["error"] = "the target went away";
  EXPECT_EQ(check_baseline(baseline, "old.json").error().message(),
            "the sweep in old.json failed: the target went away");
  baseline["ended"] = "complete";
  baseline["points"][0]["bytes_wrong"] = 17;
  EXPECT_THAT(check_baseline(baseline, "old.json").error().message(),
              HasSubstr("old.json has a point with wrong bytes: write 4.00 KiB"));
}

TEST(Compare, LinesFit) {
  const auto compared =
      compare(results({10, 10.2, 9.9, 10.1, 10, 9.8}), results({8, 8.1, 7.9, 8, 8.2, 8.3}), 0.03);
  for (const std::size_t width : {60U, 80U, 100U}) {
    std::istringstream lines(text_of(*compared, width));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), width) << line;
  }
}

/// Points of two providers are told apart.
TEST(Compare, SaysByWhatAPointWent) {
  const auto compared =
      compare(results({10, 10.2, 9.9, 10.1, 10, 9.8}), results({8, 8.1, 7.9, 8, 8.2, 8.3}), 0.03);
  ASSERT_TRUE(compared);
  EXPECT_EQ(compared->changes[0].point, "net write 4.00 KiB, window 1");
}

TEST(Compare, MoreFiguresNeedMoreRuns) {
  EXPECT_EQ(runs_needed(3), 6U);
  EXPECT_EQ(runs_needed(30), 8U);
  EXPECT_EQ(runs_needed(300), 10U);
}

/// Sweeps of as many points and repeats, whose speeds have a tail and are `slowdown` times less at
/// the last point.
Json noisy_sweep(std::mt19937_64& random, std::size_t points, std::size_t repeats,
                 double slowdown = 1) {
  std::lognormal_distribution<double> noise(0, 0.03);
  std::bernoulli_distribution disturbed(0.05);
  Json list = Json::array();
  for (std::size_t i = 0; i < points; ++i) {
    std::vector<double> speeds(repeats);
    for (double& speed : speeds)
      speed = 10 * noise(random) * (disturbed(random) ? 0.6 : 1) / (i + 1 == points ? slowdown : 1);
    list.push_back(point_with(speeds, 4096 << i));
  }
  return {{"machines", Json::object()}, {"points", list}};
}

/// Nothing has changed: in 1 of 100 comparisons at most any of the 30 figures may be named.
TEST(Compare, FalseAlarmsAreAsRareAsItSays) {
  std::mt19937_64 random(11);
  int alarms = 0;
  constexpr int trials = 200;
  for (int trial = 0; trial < trials; ++trial) {
    const auto compared = compare(noisy_sweep(random, 10, 8), noisy_sweep(random, 10, 8), 0);
    ASSERT_TRUE(compared);
    alarms += std::any_of(compared->changes.begin(), compared->changes.end(),
                          [](const Change& change) { return change.verdict != Verdict::same; });
  }
  EXPECT_LE(alarms, trials * 0.02);
}

TEST(Compare, FindsARegressionAmongMany) {
  std::mt19937_64 random(13);
  int found = 0;
  constexpr int trials = 40;
  for (int trial = 0; trial < trials; ++trial) {
    const auto compared =
        compare(noisy_sweep(random, 10, 12), noisy_sweep(random, 10, 12, 1.2), 0.03);
    ASSERT_TRUE(compared);
    found += compared->changes[27].verdict == Verdict::worse;
  }
  EXPECT_GE(found, trials * 0.8);
}

/// As fast as before on average, but with a longer tail.
TEST(Compare, TheTailCounts) {
  const std::vector<double> speeds{10, 10.1, 9.9, 10, 10, 10.2};
  const auto compared = compare(results(speeds), results(speeds, 4096, 80'000), 0.03);
  ASSERT_TRUE(compared);
  EXPECT_EQ(compared->changes[0].verdict, Verdict::same);
  EXPECT_EQ(compared->changes[1].verdict, Verdict::same);
  EXPECT_EQ(compared->changes[2].verdict, Verdict::worse);
  EXPECT_TRUE(compared->regressed());
  EXPECT_THAT(text_of(*compared, 1000), HasSubstr("WORSE"));
  EXPECT_THAT(text_of(*compared, 1000), HasSubstr("2 of 3 figures are as before"));
}

TEST(Compare, OtherPointsAndMachinesAreNamed) {
  const std::vector<double> speeds{10, 10, 10, 10};
  Json other = results(speeds, 8192);
  other["machines"]["cores"] = 5;
  const auto compared = compare(results(speeds), other, 0.03);
  ASSERT_TRUE(compared);
  EXPECT_TRUE(compared->changes.empty());
  EXPECT_EQ(compared->unmatched, 1U);
  EXPECT_TRUE(compared->other_machine);
  EXPECT_FALSE(compared->regressed());
  EXPECT_THAT(text_of(*compared, 1000), HasSubstr("1 point was not measured before"));
  EXPECT_EQ(compared->gone, 1U);
  EXPECT_THAT(text_of(*compared, 1000), HasSubstr("1 point was measured before alone"));
  EXPECT_THAT(text_of(*compared, 1000), HasSubstr("the machines or versions differ"));
}

TEST(Compare, TheEnvironmentIsNotTheMachine) {
  const std::vector<double> speeds{10, 10, 10, 10};
  const Json older = results(speeds);
  Json before = older, now = older;
  before["machines"] = {{"initiator", {{"cores", 4}, {"environment", {{"WEFT_RAILS", "1"}}}}}};
  now["machines"] = {{"initiator", {{"cores", 4}, {"environment", {{"WEFT_RAILS", "2"}}}}}};
  const auto compared = compare(before, now, 0.03);
  EXPECT_FALSE(compared->other_machine);
  EXPECT_TRUE(compared->other_environment);
  EXPECT_THAT(text_of(*compared, 1000), HasSubstr("variables of the environment differ"));
  EXPECT_FALSE(compare(before, before, 0.03)->other_environment);
  EXPECT_FALSE(compare(older, now, 0.03)->other_environment) << "it does not say";
}

TEST(Compare, OtherNumbersOfInitiatorsAreOtherPoints) {
  const std::vector<double> speeds{10, 10.2, 9.9, 10.1, 10, 9.8};
  Json before = results(speeds), now = before;
  now["points"][0]["point"]["initiators"] = 2;
  EXPECT_EQ(compare(before, now, 0.03)->unmatched, 1U);
  // One from before there could be several had one.
  before["points"][0]["point"].erase("initiators");
  EXPECT_EQ(compare(before, now, 0.03)->unmatched, 1U);
  EXPECT_EQ(compare(before, results(speeds), 0.03)->unmatched, 0U);
}

TEST(Compare, OtherPrioritiesAndBuffersAreOtherPoints) {
  const std::vector<double> speeds{10, 10.2, 9.9, 10.1, 10, 9.8};
  Json before = results(speeds);
  for (const auto& [name, value] :
       std::map<std::string, Json>{{"priority", "latency"}, {"one_buffer", true}}) {
    Json now = before;
    now["points"][0]["point"]["work"][name] = value;
    EXPECT_EQ(compare(before, now, 0.03)->unmatched, 1U) << name;
    EXPECT_EQ(compare(now, now, 0.03)->unmatched, 0U) << name;
    // One from before it could be chosen had the usual.
    Json older = before;
    older["points"][0]["point"]["work"].erase(name);
    EXPECT_EQ(compare(older, now, 0.03)->unmatched, 1U) << name;
    EXPECT_EQ(compare(older, before, 0.03)->unmatched, 0U) << name;
  }
}

TEST(Compare, OtherSettingsOfRunsAreNamed) {
  const std::vector<double> speeds{10, 10, 10, 10};
  const Json settings{
      {"seconds", 1.0}, {"count", 0}, {"warm_up_seconds", 0.2}, {"verify", false}, {"repeats", 4}};
  Json before = results(speeds), now = results(speeds);
  before["settings"] = settings;
  for (const auto& [name, value] : std::map<std::string, Json>{
           {"seconds", 2.0}, {"count", 5}, {"warm_up_seconds", 0}, {"verify", true}}) {
    now["settings"] = settings;
    now["settings"][name] = value;
    const auto compared = compare(before, now, 0.03);
    ASSERT_TRUE(compared);
    EXPECT_TRUE(compared->other_settings) << name;
    EXPECT_THAT(text_of(*compared, 1000),
                HasSubstr("--time, --count, --warm-up or --verify differ"));
  }
  now["settings"] = settings;
  now["settings"]["repeats"] = 8;
  EXPECT_FALSE(compare(before, now, 0.03)->other_settings);
}

/// Nothing can be said of what has no ratio, least that it got worse when it rose.
TEST(Compare, WhatWasNothingIsNotJudged) {
  Json before = results({10, 10, 10, 10, 10, 10});
  for (Json& run : before["points"][0]["runs"]) run["gigabytes_per_second"] = 0;
  const auto compared = compare(before, results({10, 10, 10, 10, 10, 10}), 0.03);
  ASSERT_TRUE(compared);
  EXPECT_EQ(compared->changes[0].verdict, Verdict::unknown);
  EXPECT_FALSE(compared->changes[0].ratio);
  EXPECT_EQ(compared->changes[1].verdict, Verdict::same);
  EXPECT_FALSE(compared->regressed());
  EXPECT_THAT(text_of(*compared, 1000), HasSubstr("can't tell of 1: they were 0 before"));
}

TEST(Compare, RefusesWhatIsNoResult) {
  Json broken = results({10, 10, 10, 10});
  broken["points"][0].erase("runs");
  EXPECT_EQ(compare(broken, results({10, 10, 10, 10}), 0.03).error().code(),
            Code::protocol_mismatch);
  EXPECT_EQ(compare(Json::object(), broken, 0.03).error().code(), Code::protocol_mismatch);
}

}  // namespace
}  // namespace weft::perf
