#include "compare.hpp"

#include <gmock/gmock.h>

namespace weft::perf {
namespace {

using testing::HasSubstr;

/// One point whose runs have these speeds, with latencies that go with them.
Json results(const std::vector<double>& speeds, std::uint64_t size = 4096, double p99 = 50'000) {
  Json runs = Json::array();
  for (const double speed : speeds)
    runs.push_back({{"gigabytes_per_second", speed},
                    {"latency_ns", {{"p50", 1e4 / speed}, {"p99", p99 / speed}}}});
  Point point;
  point.work.size = size;
  return {{"machines", {{"cores", 4}}},
          {"points", {{{"point", point}, {"provider", "net"}, {"runs", runs}}}}};
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
  const std::vector<double> before{10, 10.2, 9.9, 10.1, 10};
  EXPECT_EQ(verdict(before, before), Verdict::same);
  EXPECT_EQ(verdict(before, {8, 8.1, 7.9, 8, 8.2}), Verdict::worse);
  EXPECT_EQ(verdict(before, {12, 12.1, 11.9, 12, 12.2}), Verdict::better);
}

TEST(Compare, NoiseIsNoChange) {
  EXPECT_EQ(verdict({10, 14, 6, 11, 9}, {8, 13, 5, 10, 7}), Verdict::same);
}

TEST(Compare, LessThanTheThresholdIsNoChange) {
  const std::vector<double> before{10, 10.01, 10.02, 10.01, 10};
  EXPECT_EQ(verdict(before, {9.8, 9.81, 9.8, 9.82, 9.8}), Verdict::same);
  const auto strict = compare(results(before), results({9.8, 9.81, 9.8, 9.82, 9.8}), 0.01);
  EXPECT_TRUE(strict->regressed());
}

TEST(Compare, FewRunsTellNothing) {
  EXPECT_EQ(verdict({10, 10, 10}, {5, 5, 5, 5, 5}), Verdict::unknown);
  EXPECT_EQ(verdict({10, 10, 10, 10, 10}, {5, 5, 5}), Verdict::unknown);
}

/// As fast as before on average, but with a longer tail.
TEST(Compare, TheTailCounts) {
  const std::vector<double> speeds{10, 10.1, 9.9, 10, 10};
  const auto compared = compare(results(speeds), results(speeds, 4096, 80'000), 0.03);
  ASSERT_TRUE(compared);
  EXPECT_EQ(compared->changes[0].verdict, Verdict::same);
  EXPECT_EQ(compared->changes[1].verdict, Verdict::same);
  EXPECT_EQ(compared->changes[2].verdict, Verdict::worse);
  EXPECT_TRUE(compared->regressed());
  EXPECT_THAT(text_of(*compared), HasSubstr("WORSE"));
  EXPECT_THAT(text_of(*compared), HasSubstr("2 of 3 figures are as before"));
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
  EXPECT_THAT(text_of(*compared), HasSubstr("1 points were not measured before"));
  EXPECT_THAT(text_of(*compared), HasSubstr("the machines or versions differ"));
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
