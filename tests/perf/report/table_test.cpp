// Tables that fit.
#include "report/table.hpp"

#include <gmock/gmock.h>

#include <sstream>

#include "report/columns.hpp"

namespace weft::perf {
namespace {

using testing::HasSubstr;
using testing::Not;

PointResult measured(std::uint64_t size, std::uint32_t window, const std::string& provider) {
  PointResult result;
  result.point.work.size = size;
  result.point.work.window = window;
  result.provider = provider;
  for (const double gigabytes : {1.0, 2.0, 0.0}) {
    Run run;
    run.operations = 10;
    run.bytes = static_cast<std::uint64_t>(gigabytes * 1e9);
    run.seconds = 1;
    for (int i = 0; i < 10; ++i) run.latency.add(std::chrono::microseconds(10 + i));
    run.rails = {{"tcp:0", 1000}};
    result.runs.push_back(run);
  }
  result.baselines["raw"] = result.baselines["memcpy"] = {2, 4, 8};
  result.latencies["raw"] = {{20'000, 10'000, 5'000}, {40'000, 40'000, 40'000}};
  return result;
}

std::vector<PointResult> sweep() {
  std::vector<PointResult> results;
  for (const char* provider : {"net", "shm"})
    for (const std::uint32_t window : {1U, 16U})
      for (const std::uint64_t size : {4096U, 65536U, 1U << 20})
        results.push_back(measured(size, window, provider));
  return results;
}

std::string text_of(const std::vector<PointResult>& results, std::size_t width) {
  std::vector<Point> points;
  for (const PointResult& each : results) points.push_back(each.point);
  const Table table(points, baselines_of(results), width);
  std::string text = table.head();
  for (const PointResult& each : results) text += table.row(each);
  return text + table.foot(results, Json());
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

TEST(Table, FitsItsWidth) {
  std::vector<PointResult> results = sweep();
  results[0].point.work.kv = {"Qwen3-235B-A22B", "fp8", 4096, 256, 4, 2, 4};
  results[0].point.initiators = 2;
  results[1].runs[0].findings = {100, 3, "at the target, byte 17 is 0x00 and should be 0xc5"};
  for (const std::size_t width : {80U, 100U, 120U, 200U})
    EXPECT_LE(longest_line(text_of(results, width)), width);
}

/// What a sweep was asked to compare comes before what is nice to know.
TEST(Table, LeavesOutWhatMattersLeast) {
  const std::string text = text_of(sweep(), 100);
  for (const char* shown : {"GB/s", "p50 us", "p99", "to memcpy", "to raw"})
    EXPECT_THAT(text.substr(0, text.find('\n')), HasSubstr(shown));
  EXPECT_THAT(text, HasSubstr("Not shown: intervals of the ratios, "));
  EXPECT_THAT(text_of(sweep(), 1000), Not(HasSubstr("Not shown")));
  EXPECT_THAT(text_of(sweep(), 1000), HasSubstr("0.50 (0."));
}

}  // namespace
}  // namespace weft::perf
