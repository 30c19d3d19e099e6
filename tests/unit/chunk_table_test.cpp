// Chunks of one transfer: each byte is out once at a time, and known to be in its place or not.
#include "transfer/chunk_table.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "parts.hpp"

namespace weft::core::test {
namespace {

std::uint64_t bytes_in(const std::vector<Span>& spans) {
  return std::accumulate(spans.begin(), spans.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Span& span) { return sum + span.length; });
}

/// A chunk of length 0: there is none.
Chunk taken(ChunkTable& table, std::uint64_t limit = 100, std::size_t rail = 0) {
  Chunk chunk;
  return table.take(rail, limit, chunk) ? chunk : Chunk{};
}
class ChunkTableTest : public testing::Test {
 protected:
  const PieceList pieces = scattered(4, 25);
  const Reach all;
  ChunkTable table{pieces, std::nullopt, all, *std::pmr::new_delete_resource()};
};

TEST_F(ChunkTableTest, SkippedBytesAreInTheirPlace) {
  table.skip(40);
  EXPECT_EQ(taken(table).at, 40U);
  const auto gaps = table.gaps(100);
  EXPECT_EQ(bytes_in(gaps.untouched), 50U);
  EXPECT_EQ(bytes_in(gaps.unknown), 10U);
}

TEST_F(ChunkTableTest, TouchedChunksThatCameBackAreUnknown) {
  Chunk chunk = taken(table);
  table.give_back(chunk);
  EXPECT_EQ(bytes_in(table.gaps(100).unknown), 0U);
  chunk = taken(table);
  chunk.touched = true;
  table.give_back(chunk);
  EXPECT_EQ(bytes_in(table.gaps(100).unknown), 25U);
  EXPECT_EQ(bytes_in(table.gaps(100).untouched), 75U);
}

TEST_F(ChunkTableTest, TakesEveryByteOnceWhateverComesBack) {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    ChunkTable any(pieces, std::nullopt, all, *std::pmr::new_delete_resource());
    std::vector<Chunk> out;
    std::vector<int> carried(100), lost(100);
    const auto mark = [](std::vector<int>& bytes, const Chunk& chunk) {
      for (std::uint64_t i = 0; i < chunk.length; ++i) ++bytes[chunk.at + i];
    };
    while (!any.exhausted() || !out.empty()) {
      const std::uint64_t limit = 1 + random() % 30;
      const Chunk chunk = taken(any, limit);
      EXPECT_LE(chunk.length, limit);
      if (chunk.length > 0) out.push_back(chunk);
      if (out.empty() || random() % 2 == 0) continue;
      std::swap(out[random() % out.size()], out.back());
      const Chunk home = out.back();
      out.pop_back();
      switch (random() % 4) {
        case 0:
          any.give_back(home);
          break;
        case 1:
          any.lost(home);
          mark(lost, home);
          break;
        default:
          any.carried(home);
          mark(carried, home);
      }
    }
    for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(carried[i] + lost[i], 1) << i;
    EXPECT_EQ(bytes_in(any.gaps(100).unknown),
              static_cast<std::uint64_t>(std::accumulate(lost.begin(), lost.end(), 0)));
    EXPECT_EQ(bytes_in(any.gaps(100).untouched), 0U);
  }
}

}  // namespace
}  // namespace weft::core::test
