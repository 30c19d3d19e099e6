// Forms of piece lists, and the checks that come before anything is posted.
#include "transfer/piece_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

namespace weft::core {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

Result<std::uint64_t> check(const std::vector<Pair>& pairs, std::uint64_t local_size,
                            const std::vector<Range>& remote) {
  return check_pieces(PieceList(pairs), {local_size, remote});
}

testing::AssertionResult refused(const Result<std::uint64_t>& result, std::string_view part) {
  if (result) return testing::AssertionFailure() << "accepted with " << *result << " bytes";
  if (result.error().code() != Code::invalid_argument)
    return testing::AssertionFailure() << result.error().to_string();
  if (result.error().message().find(part) == std::string::npos)
    return testing::AssertionFailure() << "'" << result.error().message() << "' lacks " << part;
  return testing::AssertionSuccess();
}

TEST(PieceList, PairsAreKeptInOrder) {
  const std::vector<Pair> pairs = {{1, 2, 3}, {4, 5, 6}};
  const PieceList list(pairs);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[1].local, 4U);
  EXPECT_EQ(list[1].remote, 5U);
  EXPECT_EQ(list[1].length, 6U);
}

TEST(PieceList, StridedPiecesLieAtMultiplesOfTheStrides) {
  const PieceList list(Strided{{10, 20, 5}, 4, 100, 1000});
  ASSERT_EQ(list.size(), 4U);
  EXPECT_EQ(list[3].local, 310U);
  EXPECT_EQ(list[3].remote, 3020U);
  EXPECT_EQ(list[3].length, 5U);
}

TEST(PieceList, PagedPiecesFollowBothPageTables) {
  const std::array<std::uint32_t, 3> local = {7, 0, 2}, remote = {1, 1, 4};
  const PieceList list(Paged{16, 100, 32, 200, 64, local, remote});
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].local, 100U + 7 * 32);
  EXPECT_EQ(list[0].remote, 200U + 64);
  EXPECT_EQ(list[2].local, 100U + 2 * 32);
  EXPECT_EQ(list[2].remote, 200U + 4 * 64);
  EXPECT_EQ(list[2].length, 16U);
}

TEST(PieceList, PageTablesAreCopied) {
  std::vector<std::uint32_t> pages = {3};
  const PieceList list(Paged{1, 0, 10, 0, 10, pages, pages});
  pages[0] = 9;
  EXPECT_EQ(list[0].local, 30U);
}

TEST(CheckForm, StridedFormsMayReachTheLastOffsetAndNoFurther) {
  EXPECT_TRUE(check_form(Strided{{0, 0, 1}, 1, 0, 0}));
  EXPECT_TRUE(check_form(Strided{{most - 8, 0, 8}, 1, 0, 0}));
  EXPECT_FALSE(check_form(Strided{{most - 8, 0, 9}, 1, 0, 0}));
  EXPECT_FALSE(check_form(Strided{{0, 0, 1}, 1U << 31, std::uint64_t{1} << 34, 0}));
  EXPECT_FALSE(check_form(Strided{{0, 0, 1}, 1U << 31, 0, std::uint64_t{1} << 34}));
  EXPECT_FALSE(check_form(Strided{{0, 0, 1}, most, 2, 1}));
  EXPECT_FALSE(check_form(Strided{{most, 0, 0}, 1, 1, 0}));
}

TEST(CheckForm, PagedFormsMustFitForEveryPageNumber) {
  const std::array<std::uint32_t, 1> pages = {std::numeric_limits<std::uint32_t>::max()};
  EXPECT_TRUE(check_form(Paged{4096, 0, 4096, 0, 4096, pages, pages}));
  EXPECT_FALSE(check_form(Paged{4096, most - 4095, 0, 0, 0, pages, pages}));
  EXPECT_FALSE(check_form(Paged{1, 0, std::uint64_t{1} << 33, 0, 1, pages, pages}));
  EXPECT_FALSE(check_form(Paged{1, 0, 1, 0, std::uint64_t{1} << 33, pages, pages}));
}

TEST(CheckForm, PageTablesOfDifferentLengthsAreNamed) {
  const std::array<std::uint32_t, 2> two = {0, 1};
  const std::array<std::uint32_t, 1> one = {0};
  const auto checked = check_form(Paged{1, 0, 1, 0, 1, two, one});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code(), Code::invalid_argument);
  EXPECT_THAT(checked.error().message(), HasSubstr("2 local pages and 1 remote"));
}

TEST(CheckPieces, SumsTheBytes) {
  EXPECT_EQ(check({}, 10, {{0, 10}}).value(), 0U);
  EXPECT_EQ(check({{0, 0, 4}, {4, 6, 4}, {9, 0, 0}}, 10, {{0, 10}}).value(), 8U);
}

TEST(CheckPieces, LocalBoundsAreExact) {
  const std::vector<Range> everything = {{0, most}};
  EXPECT_TRUE(check({{0, 0, 100}}, 100, everything));
  EXPECT_TRUE(check({{99, 0, 1}}, 100, everything));
  EXPECT_TRUE(check({{100, 0, 0}}, 100, everything));
  EXPECT_TRUE(refused(check({{0, 0, 101}}, 100, everything), "101 bytes at 0 of 100"));
  EXPECT_TRUE(refused(check({{99, 0, 2}}, 100, everything), "piece 0 leaves the local segment"));
  EXPECT_TRUE(refused(check({{101, 0, 0}}, 100, everything), "leaves the local segment"));
  EXPECT_TRUE(refused(check({{0, 0, 1}, {most, 0, 2}}, 100, everything), "piece 1"));
  EXPECT_TRUE(refused(check({{50, 0, most}}, 100, everything), "leaves the local segment"));
}

TEST(CheckPieces, APieceMustLieInOneGrantedRange) {
  const std::vector<Range> ranges = {{10, 10}, {30, 10}, {50, 1}};
  for (const Pair& good : std::vector<Pair>{
           {0, 10, 10}, {0, 19, 1}, {0, 30, 10}, {0, 35, 5}, {0, 50, 1}, {0, 20, 0}, {0, 51, 0}})
    EXPECT_TRUE(check({good}, 100, ranges)) << good.remote << "+" << good.length;
  for (const Pair& bad : std::vector<Pair>{{0, 9, 1},
                                           {0, 9, 0},
                                           {0, 9, 12},
                                           {0, 19, 2},
                                           {0, 20, 1},
                                           {0, 21, 0},
                                           {0, 10, 30},
                                           {0, 29, 2},
                                           {0, 40, 1},
                                           {0, 51, 1},
                                           {0, 50, 2},
                                           {0, most, 1},
                                           {0, 35, 100}})
    EXPECT_TRUE(refused(check({bad}, 1000, ranges), "leaves what the peer granted"))
        << bad.remote << "+" << bad.length;
}

TEST(CheckPieces, RemoteLengthsThatWrapAreRefused) {
  EXPECT_TRUE(refused(check({{0, 5, most - 2}}, most, {{0, 10}}), "leaves what the peer granted"));
}

TEST(CheckPieces, ASumBeyond64BitsIsRefused) {
  EXPECT_TRUE(refused(check({{0, 0, most}, {0, 0, 1}}, most, {{0, most}}), "2^64"));
}

TEST(CheckPieces, EveryPieceOfAFormIsChecked) {
  const std::vector<Range> ranges = {{0, 1000}};
  EXPECT_EQ(check_pieces(PieceList(Strided{{0, 0, 10}, 10, 10, 100}), {100, ranges}).value(), 100U);
  EXPECT_TRUE(
      refused(check_pieces(PieceList(Strided{{0, 0, 10}, 11, 10, 10}), {100, ranges}), "piece 10"));
  const std::array<std::uint32_t, 3> pages = {0, 9, 10};
  EXPECT_TRUE(refused(check_pieces(PieceList(Paged{10, 0, 10, 0, 10, pages, pages}), {100, ranges}),
                      "piece 2"));
}

TEST(CheckPieces, OfAFileThatIsCheckedAreWholeBlocks) {
  const Range all[] = {{0, 1 << 20}};
  const auto check = [&](const Pair& piece, std::uint64_t local, std::uint64_t remote) {
    const Pair pairs[] = {piece};
    return check_pieces(PieceList(pairs), {1 << 20, all, local, remote});
  };
  EXPECT_TRUE(check({5, 8192, 4096}, 1, 4096));
  EXPECT_TRUE(check({8192, 5, 4096}, 4096, 1));
  EXPECT_TRUE(check({4096, 8192, 8192}, 4096, 8192));
  EXPECT_TRUE(refused(check({0, 4096, 4095}, 1, 4096),
                      "not aligned to the file's 4096-byte checked blocks"));
  EXPECT_TRUE(refused(check({0, 4095, 4096}, 1, 4096),
                      "not aligned to the file's 4096-byte checked blocks"));
  EXPECT_TRUE(
      refused(check({1, 0, 4096}, 4096, 1), "not aligned to the file's 4096-byte checked blocks"));
  EXPECT_TRUE(refused(check({4096, 8192, 4096}, 4096, 8192),
                      "not aligned to the file's 8192-byte checked blocks"));
}

}  // namespace
}  // namespace weft::core
