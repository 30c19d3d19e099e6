// Tables that fit, pictures and reports.
#include <gmock/gmock.h>

#include <set>
#include <sstream>

#include "report/columns.hpp"
#include "report/html.hpp"
#include "report/plot.hpp"
#include "report/table.hpp"

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

/// The colours of curves in which a script draws a data block.
std::set<std::string> colors_of(const std::string& script) {
  std::set<std::string> colors;
  for (std::size_t at = 0; (at = script.find("lc rgb '", at)) != script.npos; at += 8)
    colors.insert(script.substr(at + 8, 7));
  return colors;
}

TEST(Plot, AColorMeansASeries) {
  // One for each of four series, and black for what is of all.
  EXPECT_EQ(colors_of(plot_script(sweep(), Picture::svg)).size(), 5U);
  std::vector<PointResult> many;
  for (std::uint32_t window = 1; window <= 24; ++window)
    many.push_back(measured(4096, window, "shm"));
  EXPECT_EQ(colors_of(plot_script(many, Picture::svg)).size(), 25U);
}

TEST(Plot, SizesHaveOneSpelling) {
  const std::string script = plot_script(sweep(), Picture::svg);
  EXPECT_THAT(script, HasSubstr("set xtics ('4 KiB' 4096, '64 KiB' 65536, '1 MiB' 1048576)"));
  EXPECT_THAT(script, Not(HasSubstr("kiB")));
}

/// Error bars end within the axes, also where a run moved nothing.
TEST(Plot, NothingIsCut) {
  const std::string script = plot_script(sweep(), Picture::svg);
  EXPECT_THAT(script, HasSubstr("set xrange [3150.7"));
  EXPECT_THAT(script, HasSubstr("4096 1 1 2\n"));
  const std::size_t range = script.find("set yrange [");
  ASSERT_NE(range, script.npos);
  double least = 0, greatest = 0;
  ASSERT_EQ(std::sscanf(script.c_str() + range, "set yrange [%lf:%lf]", &least, &greatest), 2);
  EXPECT_LT(least, 1);
  EXPECT_GT(greatest, 4);
}

TEST(Plot, KnowsPicturesByTheirNames) {
  EXPECT_EQ(picture_of("a.svg"), Picture::svg);
  EXPECT_EQ(picture_of("a.png"), Picture::png);
  for (const char* other : {"a.jpg", "svg", "a.svg.gz", ""})
    EXPECT_EQ(picture_of(other), std::nullopt);
}

TEST(Html, SaysWhenAndHow) {
  const Json document{
      {"date", "2026-11-27T06:52:00Z"},
      {"command_line", "weft-perf --local --nics '<a>'"},
      {"ended", "complete"},
      {"settings", {{"warm_up_seconds", 0.2}, {"baselines", {"raw", "memcpy"}}}},
      {"machines",
       {{"initiator", {{"memory_bytes", 1ULL << 30}, {"environment", {{"WEFT_RAILS", "1"}}}}}}}};
  const std::string page = html(sweep(), "<?xml?><svg></svg>", document);
  const std::string shown = page.substr(0, page.find("<script"));
  EXPECT_THAT(shown, HasSubstr("<th>date</th><td>2026-11-27T06:52:00Z</td>"));
  EXPECT_THAT(shown, HasSubstr("<td>weft-perf --local --nics '&lt;a>'</td>"));
  EXPECT_THAT(shown, HasSubstr("<th>warm up seconds</th><td>0.2</td>"));
  EXPECT_THAT(shown, HasSubstr("<th>baselines</th><td>raw, memcpy</td>"));
  EXPECT_THAT(shown, HasSubstr("<th>initiator, memory</th><td>1.00 GiB</td>"));
  EXPECT_THAT(shown, HasSubstr("<th>initiator, environment, WEFT_RAILS</th>"));
  EXPECT_THAT(shown, HasSubstr("<td>1.000<small>(0.000-2.000)</small></td>"));
  EXPECT_THAT(shown, HasSubstr("<h2>Pictures</h2>\n<svg></svg>"));
}

}  // namespace
}  // namespace weft::perf
