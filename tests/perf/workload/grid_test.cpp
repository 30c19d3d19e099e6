#include "workload/grid.hpp"

#include <gmock/gmock.h>

namespace weft::perf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::uint64_t> bytes(std::string_view text) {
  return parse_grid(text, Multiples::binary).value();
}

TEST(Grid, HasListsAndRanges) {
  EXPECT_THAT(bytes("1,2,8"), ElementsAre(1, 2, 8));
  EXPECT_THAT(bytes("4K:64K:x4"), ElementsAre(4096, 16384, 65536));
  EXPECT_THAT(bytes("4K:60K:x4"), ElementsAre(4096, 16384));
  EXPECT_THAT(bytes("1:16:+5"), ElementsAre(1, 6, 11, 16));
  EXPECT_THAT(bytes("1:4"), ElementsAre(1, 2, 4));
  EXPECT_THAT(bytes("7,1:2,0"), ElementsAre(7, 1, 2, 0));
  EXPECT_THAT(bytes("5:5:x2"), ElementsAre(5));
}

TEST(Grid, KnowsUnits) {
  EXPECT_THAT(bytes("1B,1K,1KiB,1KB,2M,1G"),
              ElementsAre(1, 1024, 1024, 1024, 2 << 20, std::uint64_t{1} << 30));
  EXPECT_THAT(parse_grid("1K,2M", Multiples::decimal).value(), ElementsAre(1000, 2'000'000));
  EXPECT_FALSE(parse_grid("1KiB", Multiples::decimal));
}

TEST(Grid, EndsAtTheGreatestNumber) {
  EXPECT_THAT(bytes("9223372036854775808:18446744073709551615:x2"),
              ElementsAre(std::uint64_t{1} << 63));
  EXPECT_THAT(bytes("18446744073709551614:18446744073709551615:+5"),
              ElementsAre(18446744073709551614U));
}

TEST(Grid, RefusesWhatMakesNoSense) {
  for (const char* text : {"",
                           ",",
                           "1,",
                           "x2",
                           "4K:",
                           ":4K",
                           "4K:2K",
                           "1:8:2",
                           "1:8:x1",
                           "1:8:x0",
                           "1:8:+0",
                           "0:8:x2",
                           "1:8:x2:x2",
                           "1.5",
                           "-1",
                           "1T",
                           "1Kx",
                           "99999999999999999999",
                           "18446744073709551615K",
                           "1 ,2"}) {
    const auto parsed = parse_grid(text, Multiples::binary);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), Code::invalid_argument) << text;
  }
  EXPECT_THAT(parse_grid("1:9999:+1", Multiples::binary).error().message(),
              HasSubstr("more than 4096"));
}

}  // namespace
}  // namespace weft::perf
