// Results as documents and tables.

#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>
#include <limits>
#include <set>

#include "report/document.hpp"
#include "report/summary.hpp"
#include "report/table.hpp"
#include "report/title.hpp"

namespace weft::perf {
namespace {

using testing::HasSubstr;

Run run_at(double gigabytes, Nanoseconds latency) {
  Run run;
  run.operations = 1000;
  run.bytes = static_cast<std::uint64_t>(gigabytes * 1e9);
  run.seconds = 1;
  run.cpu_seconds = 2;
  run.peer_cpu_seconds = 1;
  for (int i = 0; i < 1000; ++i) run.latency.add(latency);
  run.copies = {1, true};
  run.rails = {{"tcp:0", 3000}, {"tcp:1", 1000}};
  run.findings = {100, 0, ""};
  return run;
}

PointResult measured() {
  PointResult result;
  result.point.work.size = 65536;
  result.point.work.pieces = 16;
  result.point.work.pattern = Pattern::random;
  result.point.fabric.provider = "tcp";
  result.provider = "net";
  for (const double gigabytes : {1.0, 2.0, 4.0})
    result.runs.push_back(run_at(gigabytes, std::chrono::microseconds(10)));
  result.baselines["raw"] = {2, 4, 8};
  result.latencies["raw"] = {{20'000, 10'000, 5'000}, {40'000, 40'000, 40'000}};
  return result;
}

/// What a sweep has noted of where it ran.
Json machines() {
  const Json held_back{{"congestion_control", "bbr"}};
  return {{"initiator", held_back}, {"targets", {held_back, held_back}}};
}

/// With all its columns.
Table table_of(const PointResult& result) {
  return {{result.point}, baselines_of({result}), std::numeric_limits<std::size_t>::max()};
}

std::string table_row(const PointResult& result) {
  return table_of(result).row(result);
}

std::string table_foot(const std::vector<PointResult>& results, const Json& machines) {
  return table_of(results.front()).foot(results, machines);
}

TEST(Results, Summary) {
  const Summary sum = summarize(measured());
  EXPECT_EQ(sum.gigabytes.median, 2);
  EXPECT_EQ(sum.gigabytes.least, 1);
  EXPECT_EQ(sum.gigabytes.greatest, 4);
  EXPECT_EQ(sum.latency.count(), 3000U);
  EXPECT_DOUBLE_EQ(sum.cpu, 6.0 / 7);
  EXPECT_DOUBLE_EQ(sum.peer_cpu, 3.0 / 7);
  EXPECT_DOUBLE_EQ(sum.rails.at("tcp:0"), 0.75);
  EXPECT_EQ(sum.findings.checked, 300U);
  EXPECT_EQ(sum.ratios.at("raw").middle, 0.5);
  EXPECT_DOUBLE_EQ(sum.latency_ratios.at("raw").p50.middle, 1);
  EXPECT_DOUBLE_EQ(sum.latency_ratios.at("raw").p50.low, 0.5);
  EXPECT_DOUBLE_EQ(sum.latency_ratios.at("raw").p50.high, 2);
  EXPECT_DOUBLE_EQ(sum.latency_ratios.at("raw").p99.middle, 0.25);
  EXPECT_DOUBLE_EQ(sum.copies.per_byte, 1);
}

/// One by a low rate may have none.
TEST(Results, ARunWithoutOperationsCountsForNothingByBytes) {
  PointResult result = measured();
  const double before = summarize(result).copies.per_byte;
  perf::Run none;
  none.cpu_seconds = 0.01;
  result.runs.push_back(none);
  EXPECT_DOUBLE_EQ(summarize(result).copies.per_byte, before);
  result.runs = {none};
  const Summary sum = summarize(result);
  EXPECT_EQ(sum.cpu, 0);
  EXPECT_EQ(sum.peer_cpu, 0);
  EXPECT_EQ(sum.copies.per_byte, 0);
}

TEST(Results, PointsSurviveJson) {
  Point point = measured().point;
  point.fabric.chunk = 1 << 20;
  point.fabric.bounce_bytes = 2 << 20;
  point.fabric.bounce_buffers = 8;
  point.fabric.gpu_path = GpuPath::staged;
  point.fabric.progress = weft::Progress::manual;
  point.work.operation = Operation::mixed;
  point.work.rate = 12.5;
  point.work.memory = "node:1";
  point.work.priority = Priority::latency;
  point.work.one_buffer = true;
  point.work.kv.model = "DeepSeek-V3";
  point.work.kv.tokens = 77;
  const Json json = Json::parse(Json(point).dump());
  EXPECT_EQ(json.get<Point>(), point);
  EXPECT_EQ(json["work"]["operation"], "mixed");
  EXPECT_EQ(json["work"]["pattern"], "random");
  EXPECT_EQ(json["work"]["priority"], "latency");
  EXPECT_EQ(json["fabric"]["progress"], "manual");
  EXPECT_EQ(json["fabric"]["gpu_path"], "staged");
}

// Documents from before it could be chosen.
TEST(Results, PointsWithoutProgressHaveThreads) {
  Json json(measured().point);
  json["fabric"].erase("progress");
  EXPECT_EQ(json.get<Point>(), measured().point);
}

TEST(Results, PointsWithoutPriorityAreNormal) {
  Json json(measured().point);
  json["work"].erase("priority");
  json["work"].erase("one_buffer");
  EXPECT_EQ(json.get<Point>(), measured().point);
}

TEST(Results, DocumentSurvivesAFile) {
  const Json made = document({measured(), PointResult{}}, {{"repeats", 3}}, {{"cores", 4}},
                             {"interrupted", "by the test"});
  const std::string path = testing::TempDir() + "weft-perf-results.json";
  std::ofstream(path) << made.dump();
  const auto read = read_document(path);
  std::remove(path.c_str());
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, made);
  EXPECT_EQ(made["ended"], "interrupted");
  EXPECT_EQ(made["error"], "by the test");
  ASSERT_EQ(made["points"].size(), 1U);  // One that was never run says nothing.
  const Json& point = made["points"][0];
  EXPECT_EQ(point["title"], "net write 64.00 KiB x16 random, window 1");
  EXPECT_EQ(point["series"], "net write x16 random, window 1");
  EXPECT_EQ(point["remarks"], Json::array());
  EXPECT_THAT(made["notes"].at(0).get<std::string>(), HasSubstr("GB/s (10^9 bytes)"));
  EXPECT_EQ(point["runs"].size(), 3U);
  EXPECT_EQ(point["gigabytes_per_second"]["median"], 2);
  EXPECT_EQ(point["latency_ns"]["p99.9"], 10'000);
  EXPECT_EQ(point["baselines"]["raw"]["ratio"]["middle"], 0.5);
  EXPECT_EQ(point["baselines"]["raw"]["p50_ratio"]["middle"], 1);
  EXPECT_EQ(point["baselines"]["raw"]["p99_ratio"]["high"], 0.25);
  EXPECT_EQ(point["baselines"]["raw"]["latency_ns"]["p50"][0], 20'000);
  EXPECT_EQ(point["histogram_ns"][0][1], 3000);
}

TEST(Results, OtherFilesAreRefused) {
  const std::string path = testing::TempDir() + "weft-perf-other.json";
  for (const char* text : {"", "{", "[]", "{}", R"({"format": 5, "points": []})",
                           R"({"format": "weft-perf", "version": 99, "points": []})",
                           R"({"format": "weft-perf", "version": 1})"}) {
    std::ofstream(path) << text;
    const auto read = read_document(path);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code(), Code::protocol_mismatch) << text;
  }
  std::remove(path.c_str());
  EXPECT_EQ(read_document(path).error().code(), Code::not_found);
}

TEST(Results, TableSaysWhatWentWrong) {
  PointResult result = measured();
  result.runs[1].findings = {100, 3, "at the target, byte 17 is 0x00 and should be 0xc5"};
  result.runs[2].overloaded = true;
  result.runs[0].copies.known = false;
  const std::string row = table_row(result);
  EXPECT_THAT(row, HasSubstr("net write 64.00 KiB x16 random, window 1"));
  EXPECT_THAT(row, HasSubstr("2.000 (1.000-4.000)"));
  EXPECT_THAT(row, HasSubstr("1.00+"));
  EXPECT_THAT(row, HasSubstr("0.50 (0.50-0.50)"));
  EXPECT_THAT(row, HasSubstr("tcp:0 75 %, tcp:1 25 %"));
  EXPECT_THAT(row, HasSubstr("3 BYTES WRONG: at the target, byte 17"));
  EXPECT_THAT(row, HasSubstr("OVERLOADED"));
  EXPECT_THAT(table_foot({result}, Json()), HasSubstr("300 B were compared"));
}

TEST(Results, TableSaysWhereSocketsMayBeHeldBack) {
  PointResult result = measured();
  Json facts = machines();
  const auto told = HasSubstr("congestion control bbr may hold a stream");
  EXPECT_THAT(table_foot({result}, facts), told);
  result.provider = "efa";
  EXPECT_THAT(table_foot({result}, facts), testing::Not(told));
  result.provider = "net";
  facts["initiator"]["congestion_control"] = "cubic";
  EXPECT_THAT(table_foot({result}, facts), told);  // the targets' does
  for (Json& target : facts["targets"]) target.erase("congestion_control");
  EXPECT_THAT(table_foot({result}, facts), testing::Not(told));
}

/// Ledgers tell of transfers alone.
TEST(Results, NoFigureForTheCopiesOfMessages) {
  PointResult result = measured();
  const auto copies = [&] {
    return document({result}, {}, {}, {})["points"][0]["copies_per_byte"];
  };
  EXPECT_EQ(copies(), 1.0);
  result.point.work.operation = Operation::message;
  EXPECT_TRUE(copies().is_null());
  EXPECT_THAT(table_row(result), HasSubstr("0.86+0.43      -"));
}

TEST(Results, SayWhenTheTimeWasOverBeforeTheCount) {
  PointResult result = measured();
  EXPECT_THAT(table_row(result) + table_foot({result}, Json()),
              testing::Not(HasSubstr("ENDED BY TIME")));
  EXPECT_EQ(document({result}, {}, {}, {})["points"][0]["ended_by_time"], false);
  result.runs[1].ended_by_time = true;
  EXPECT_THAT(table_row(result), HasSubstr("ENDED BY TIME"));
  EXPECT_THAT(table_foot({result}, Json()), HasSubstr("ENDED BY TIME: the time (--time) was over"));
  EXPECT_EQ(document({result}, {}, {}, {})["points"][0]["ended_by_time"], true);
}

TEST(Title, TellsCachesOfOtherShapesApart) {
  Point usual;
  usual.work.size = 1 << 20;
  usual.work.kv.model = "DeepSeek-V3";
  usual.work.kv.tokens = 77;
  usual.work.kv.layer_groups = 8;
  EXPECT_EQ(title(usual), "write DeepSeek-V3 77 tokens 1.00 MiB, window 1");
  std::vector<Point> points(6, usual);
  points[1].work.kv.dtype = "fp8";
  points[2].work.kv.block_tokens = 32;
  points[3].work.kv.layer_groups = 1;
  points[4].work.kv.tp = 2;
  points[5].work.kv.peer_tp = 2;
  std::set<std::string> titles, series;
  for (const Point& point : points) {
    titles.insert(title(point));
    series.insert(series_title(point));
  }
  EXPECT_EQ(titles.size(), points.size());
  EXPECT_EQ(series.size(), points.size());
  EXPECT_EQ(series_title(points[3]), "write DeepSeek-V3, window 1 layer-groups 1");
}

/// As if the second initiator had been three times as fast.
PointResult measured_by_two() {
  PointResult result = measured();
  result.point.initiators = 2;
  for (Run& run : result.runs)
    run.shares = {{250, run.bytes / 4, 0, 1}, {750, run.bytes / 4 * 3, 0.001, 1}};
  return result;
}

TEST(Results, SeveralInitiatorsHaveShares) {
  const PointResult result = measured_by_two();
  EXPECT_DOUBLE_EQ(summarize(result).least_share, 0.25);
  EXPECT_DOUBLE_EQ(summarize(result).greatest_share, 0.75);
  EXPECT_EQ(summarize(measured()).least_share, 1);
  const Json both = document({measured(), result}, {}, {}, {});
  EXPECT_FALSE(both["points"][0].contains("shares"));
  EXPECT_FALSE(both["points"][0]["runs"][0].contains("initiators"));
  const Json& point = both["points"][1];
  EXPECT_EQ(point["point"]["initiators"], 2);
  EXPECT_EQ(point["shares"], Json::parse(R"({"least": 0.25, "greatest": 0.75, "each": [
                {"at": "here", "share": 0.25}, {"at": "here", "share": 0.75}]})"));
  ASSERT_EQ(point["runs"][0]["initiators"].size(), 2U);
  EXPECT_EQ(point["runs"][0]["initiators"][1]["operations"], 750);
  EXPECT_EQ(point["runs"][0]["initiators"][1]["begun_seconds"], 0.001);
  EXPECT_THAT(table_row(result), HasSubstr("window 1, 2 initiators"));
  EXPECT_THAT(table_row(result), HasSubstr("each 25.0-75.0 %"));
  EXPECT_THAT(table_foot({result}, Json()), HasSubstr("Several initiators"));
  EXPECT_THAT(table_foot({measured()}, Json()), testing::Not(HasSubstr("initiators")));
}

TEST(Results, InitiatorsElsewhereAreNamed) {
  PointResult result = measured_by_two();
  for (perf::Run& run : result.runs) {
    run.shares[1].at = "10.0.0.3:7000";
    run.shares[1].clock_error = 0.000125;
  }
  const Json point = document({result}, {}, {}, {})["points"][0];
  EXPECT_EQ(point["shares"]["each"][1], Json({{"at", "10.0.0.3:7000"}, {"share", 0.75}}));
  EXPECT_EQ(point["runs"][0]["initiators"][0]["at"], "here");
  EXPECT_EQ(point["runs"][0]["initiators"][1]["at"], "10.0.0.3:7000");
  EXPECT_EQ(point["runs"][0]["initiators"][1]["clock_error_seconds"], 0.000125);
  EXPECT_THAT(table_row(result), HasSubstr("from here 25.0 %, 10.0.0.3:7000 75.0 %"));
  EXPECT_THAT(table_foot({result}, Json()), HasSubstr("0.125 ms off at most"));
  EXPECT_THAT(table_foot({measured_by_two()}, Json()), testing::Not(HasSubstr("Clocks")));
}

// Documents from before there could be several.
TEST(Results, PointsWithoutInitiatorsHaveOne) {
  Json json(measured_by_two().point);
  json.erase("initiators");
  EXPECT_EQ(json.get<Point>(), measured().point);
}

TEST(Title, NamesPrioritiesAndBuffersThatAreUnusual) {
  Point point;
  point.work.size = 4096;
  point.work.priority = Priority::latency;
  EXPECT_EQ(title(point), "write 4.00 KiB, window 1, latency priority");
  point.work.one_buffer = true;
  EXPECT_EQ(series_title(point), "write, window 1, latency priority, one buffer");
}

TEST(Title, NamesMemoryThatIsUnusual) {
  Point point;
  point.work.size = 4096;
  EXPECT_EQ(title(point), "write 4.00 KiB, window 1");
  point.work.peer_memory = "gpu:1";
  EXPECT_EQ(title(point), "write 4.00 KiB, window 1, host and gpu:1 memory");
  point.work.memory = "gpu:1";
  EXPECT_EQ(title(point), "write 4.00 KiB, window 1, gpu:1 memory");
}

}  // namespace
}  // namespace weft::perf
