// Text in lines that fit, and numbers as people write them.
#include "common/layout.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "common/units.hpp"

namespace weft::tool {
namespace {

TEST(Layout, BreaksAtSpacesAndIndentsWhatFollows) {
  EXPECT_EQ(hanging("  name  ", "one two three", 16),
            "  name  one two\n"
            "        three\n");
  EXPECT_EQ(hanging("", "a few  words", 40), "a few  words\n");
}

TEST(Layout, WordsThatDoNotFitStayWhole) {
  EXPECT_EQ(hanging("x ", "extraordinarily long", 10), "x extraordinarily\n  long\n");
  EXPECT_EQ(hanging("x ", "", 10), "x \n");
}

TEST(Layout, FarColumnsIndentLess) {
  EXPECT_EQ(hanging("a long first part ", "one two", 24), "a long first part one\n    two\n");
}

TEST(Layout, CountsCharactersAndNotBytes) {
  EXPECT_EQ(columns_of("└─ é"), 4U);
  EXPECT_EQ(hanging("└─ ", "éé éé", 8), "└─ éé éé\n");
}

TEST(Layout, NoLineIsLongerThanAsked) {
  const std::string text = "the quick brown fox jumps over the lazy dog and goes on for a while";
  for (std::size_t width = 20; width < 70; ++width) {
    std::istringstream lines(hanging("  fox: ", text, width));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), width);
  }
}

TEST(Layout, TakesTheWidthThatColumnsNames) {
  setenv("COLUMNS", "72", 1);
  EXPECT_EQ(line_width(), 72U);
  setenv("COLUMNS", "wide", 1);
  EXPECT_GE(line_width(), 40U);
  unsetenv("COLUMNS");
}

TEST(Units, CountThings) {
  EXPECT_EQ(counted(1, "request"), "1 request");
  EXPECT_EQ(counted(0, "request"), "0 requests");
  EXPECT_EQ(counted(2000, "request"), "2,000 requests");
}

TEST(Units, AreRead) {
  EXPECT_EQ(parse_number("17", Multiples::decimal), 17U);
  EXPECT_EQ(parse_number("4K", Multiples::binary), 4096U);
  EXPECT_EQ(parse_number("4KiB", Multiples::binary), 4096U);
  EXPECT_EQ(parse_number("4K", Multiples::decimal), 4000U);
  for (const char* wrong : {"", "-1", "K", "4X", "4Ki", "1.5", "99999999999999999999", "1 "})
    EXPECT_FALSE(parse_number(wrong, Multiples::binary)) << wrong;
}

}  // namespace
}  // namespace weft::tool
