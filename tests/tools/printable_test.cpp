#include "common/printable.hpp"

#include <gtest/gtest.h>

#include "common/layout.hpp"

namespace weft::tool {
namespace {

using std::string_literals::operator""s;

TEST(Printable, TextStaysAsItIs) {
  for (const char* text :
       {"", "rdmap79s0", "GH100 [H100 SXM5 80GB]", "Grüße, 図, 🧵", "a\\b\"<&>"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, WhatATerminalObeysIsSpelled) {
  EXPECT_EQ(printable("a\x1b[2Jb\n\r\t"), "a\\x1b[2Jb\\x0a\\x0d\\x09");
  EXPECT_EQ(printable("\0\x7f"s), "\\x00\\x7f");
  EXPECT_EQ(printable("\u009b31m"), "\\u009b31m");
  EXPECT_EQ(printable("\u202egnp.exe\u2028\u200b\ufeff"), "\\u202egnp.exe\\u2028\\u200b\\ufeff");
  EXPECT_EQ(printable("\U000e0041"), "\\ue0041");
}

TEST(Printable, BytesThatAreNoTextAreSpelled) {
  EXPECT_EQ(printable("a\xff"), "a\\xff");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                             // cut off
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                    // longer than it need be
  EXPECT_EQ(printable("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");           // likewise
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // half of a pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond the last
  EXPECT_EQ(printable("\xe2\x82x"), "\\xe2\\x82x");
}

TEST(Printable, WordsAreWrapped) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrapped({}, 5), Lines());
  EXPECT_EQ(wrapped({"a", "bc", "d", "longer", "e"}, 4), (Lines{"a bc", "d", "longer", "e"}));
}

}  // namespace
}  // namespace weft::tool
