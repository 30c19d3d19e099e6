// What several initiators have to do, and what their measurements come to.
#include "measure/run.hpp"

#include <gmock/gmock.h>

#include <set>

namespace weft::perf {
namespace {

Part part_of(double begun, double seconds, std::uint64_t operations, Nanoseconds latency) {
  Part part;
  part.load.operations = operations;
  part.load.start = Clock::time_point(std::chrono::hours(5)) +
                    std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(begun));
  part.load.seconds = seconds;
  for (std::uint64_t i = 0; i < operations; ++i) part.load.latency.add(latency);
  part.bytes = operations * 1000;
  part.cpu_seconds = 0.5;
  part.copies = {1, true};
  part.rails = {{"tcp:0", operations * 1000}};
  part.transfers = {operations, 3};
  part.ceiling_gbps = 100;
  return part;
}

TEST(Run, IsFromTheFirstBeginToTheLastEnd) {
  std::vector<Part> parts{part_of(0.25, 1, 100, std::chrono::microseconds(10)),
                          part_of(0, 0.5, 300, std::chrono::microseconds(30)),
                          part_of(0.5, 1.5, 200, std::chrono::microseconds(20))};
  parts[1].copies = {4, false};
  parts[2].load.overloaded = true;
  parts[2].rails = {{"tcp:1", 7}};
  const perf::Run run = run_of(parts, 0);
  EXPECT_DOUBLE_EQ(run.seconds, 2);
  EXPECT_EQ(run.operations, 600U);
  EXPECT_EQ(run.bytes, 600'000U);
  EXPECT_DOUBLE_EQ(run.gigabytes_per_second(), 0.0003);
  EXPECT_DOUBLE_EQ(run.cpu_seconds, 1.5);
  EXPECT_EQ(run.latency.count(), 600U);
  EXPECT_EQ(run.latency.greatest(), std::chrono::microseconds(30));
  EXPECT_NEAR(run.latency.mean(), (100 * 10e3 + 300 * 30e3 + 200 * 20e3) / 600, 1);
  EXPECT_TRUE(run.overloaded);
  EXPECT_DOUBLE_EQ(run.copies.per_byte, 2.5);  // for each byte of all
  EXPECT_FALSE(run.copies.known);
  EXPECT_EQ(run.rails, (std::map<std::string, std::uint64_t>{{"tcp:0", 400'000}, {"tcp:1", 7}}));
  ASSERT_EQ(run.shares.size(), 3U);
  EXPECT_DOUBLE_EQ(run.shares[0].begun, 0.25);
  EXPECT_DOUBLE_EQ(run.shares[2].begun, 0.5);
  EXPECT_DOUBLE_EQ(run.shares[1].gigabytes_per_second(), 0.0006);
}

TEST(Run, OfOneIsItsOwn) {
  const perf::Run run = run_of({part_of(3, 0.5, 300, std::chrono::microseconds(30))}, 0);
  EXPECT_DOUBLE_EQ(run.seconds, 0.5);
  EXPECT_EQ(run.shares.size(), 1U);
  EXPECT_EQ(run.shares[0].begun, 0);
}

TEST(Run, EndsByItsTimeUnlessItsQueueGrewBefore) {
  Part part = part_of(0, 0.5, 300, std::chrono::microseconds(30));
  EXPECT_FALSE(run_of({part}, 300).ended_by_time);
  EXPECT_TRUE(run_of({part}, 301).ended_by_time);
  part.load.overloaded = true;
  EXPECT_FALSE(run_of({part}, 301).ended_by_time);
}

TEST(Run, PartsSurviveJson) {
  Part part = part_of(1.5, 0.25, 100, std::chrono::microseconds(10));
  part.load.overloaded = true;
  part.copies = {2.5, false};
  const Json json(part);
  const Part again = Json::parse(json.dump()).get<Part>();
  EXPECT_EQ(Json(again), json);
  EXPECT_EQ(again.load.start, part.load.start);
  EXPECT_EQ(again.load.latency.buckets(), part.load.latency.buckets());
  for (const auto& [name, value] : json.items()) {
    Json lacking = json;
    lacking.erase(name);
    EXPECT_FALSE(value_of<Part>(Json{{"part", lacking}}, "part")) << name;
  }
}

TEST(Engines, AreOpenedForSomeOfAPoint) {
  const auto changed = [](const char* change) {
    Json json = Point{};
    json.merge_patch(Json::parse(change));
    return same_engines(Point{}, json.get<Point>());
  };
  for (const char* same :
       {"{}", R"({"work": {"size": 5, "window": 7, "operation": "read", "priority": "bulk"}})",
        R"({"work": {"memory": "shared", "peer_memory": "node:1", "one_buffer": true}})"})
    EXPECT_TRUE(changed(same)) << same;
  for (const char* other :
       {R"({"fabric": {"rails": 3}})", R"({"initiators": 2})", R"({"work": {"memory": "gpu:0"}})",
        R"({"work": {"peer_memory": "gpu:1"}})",
        R"({"work": {"operation": "message", "size": 5}})"})
    EXPECT_FALSE(changed(other)) << other;
}

TEST(Task, IsAShareOfAll) {
  Point point;
  point.work.rate = 900;
  point.initiators = 3;
  RunOptions options;
  options.verify = true;
  const Task task = task_of(point, options, 2);
  EXPECT_DOUBLE_EQ(task.point.work.rate, 300);
  EXPECT_EQ(task.number, 2U);
  EXPECT_TRUE(task.verify);
  std::uint64_t operations = 0;
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Length length = length_of({std::chrono::seconds(7), 20}, i, 3);
    EXPECT_EQ(length.time, std::chrono::seconds(7));
    EXPECT_THAT(length.operations, testing::AnyOf(6U, 7U));
    operations += length.operations;
  }
  EXPECT_EQ(operations, 20U);
  EXPECT_EQ(length_of({std::chrono::seconds(7), 0}, 1, 3).operations, 0U);
}

TEST(Task, HasAStreamOfItsOwn) {
  RunOptions options;
  std::set<std::uint64_t> seeds;
  for (options.seed = 0; options.seed < 100; ++options.seed)
    for (std::uint32_t i = 0; i < most_initiators; ++i)
      seeds.insert(task_of(Point(), options, i).seed);
  EXPECT_EQ(seeds.size(), 100 * most_initiators);
}

}  // namespace
}  // namespace weft::perf
