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
  const Reach all{};
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

/// Rails that reach only parts of both memories, against a model of single bytes.
TEST(PartedChunkTable, EveryByteIsTakenOnceByARailThatMayCarryIt) {
  constexpr std::uint64_t extent = 16, extents = 4, rails = 3;
  constexpr RailBits all_rails = (RailBits{1} << rails) - 1;
  enum class Byte { untouched, touched, out, carried, lost };
  int parted = 0, stranded = 0;
  for (std::uint32_t seed = 0; seed < 800; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto pick = [&](std::uint64_t below) { return random() % below; };
    const auto masks = [&] {
      std::vector<RailBits> made(extents);
      for (RailBits& mask : made) mask = pick(2) == 0 ? 1 + pick(all_rails) : all_rails;
      return made;
    };
    const std::vector<RailBits> ours = masks(), theirs = masks();
    const auto may_carry = [&](std::uint64_t local, std::uint64_t remote) {
      return ours[local / extent] & theirs[remote / extent];
    };
    // Pieces at random places, some of them neighbours, none of bytes that no rail carries.
    std::vector<Pair> pairs;
    std::vector<Pair> bytes;  // of the transfer, each with its place
    Pair at;
    for (std::uint64_t i = 0, count = 1 + pick(12); i < count; ++i) {
      at.local += at.length;
      at.remote += at.length;
      if (pick(2) == 0 || at.local >= extents * extent || at.remote >= extents * extent)
        at = {pick(extents * extent), pick(extents * extent), 0};
      at.length = std::min({pick(20), extents * extent - at.local, extents * extent - at.remote});
      std::uint64_t reached = 0;
      while (reached < at.length && may_carry(at.local + reached, at.remote + reached) != 0)
        ++reached;
      at.length = reached;
      pairs.push_back(at);
      for (std::uint64_t byte = 0; byte < at.length; ++byte)
        bytes.push_back({at.local + byte, at.remote + byte, 1});
    }
    const PieceList pieces(pairs);
    const Reach reach = make_reach(pieces, extent, ours, theirs, rails);
    ChunkTable table(pieces, std::nullopt, reach, *std::pmr::new_delete_resource());
    ASSERT_EQ(table.parted(), reach.parted());
    parted += table.parted() ? 1 : 0;
    std::vector<Byte> state(bytes.size(), Byte::untouched);
    const auto to_take = [&](RailBits by) {
      for (std::size_t i = 0; i < bytes.size(); ++i)
        if (state[i] <= Byte::touched && (may_carry(bytes[i].local, bytes[i].remote) & by) != 0)
          return true;
      return false;
    };
    const auto mark = [&](const Chunk& chunk, Byte as) {
      for (std::uint64_t i = 0; i < chunk.length; ++i) state[chunk.at + i] = as;
    };
    std::vector<Chunk> out;
    RailBits left = 0;  // rails that take no more
    for (int step = 0; step < 1000 && (to_take(all_rails & ~left) || !out.empty()); ++step) {
      const std::size_t rail = pick(rails);
      const RailBits bit = RailBits{1} << rail;
      if (pick(40) == 0) left |= bit;
      if ((left & bit) == 0) {
        const std::uint64_t limit = 1 + pick(30);
        ASSERT_EQ(table.exhausted_for(rail), !to_take(bit));
        const Chunk chunk = taken(table, limit, rail);
        ASSERT_EQ(chunk.length > 0, to_take(bit));
        ASSERT_LE(chunk.length, limit);
        for (std::uint64_t i = 0; i < chunk.length; ++i) {
          ASSERT_LE(state[chunk.at + i], Byte::touched) << "taken twice";
          ASSERT_EQ(bytes[chunk.at + i].local, chunk.local + i);
          ASSERT_EQ(bytes[chunk.at + i].remote, chunk.remote + i);
          ASSERT_NE(may_carry(chunk.local + i, chunk.remote + i) & bit, 0U);
          ASSERT_EQ((chunk.local + i) / extent, chunk.local / extent) << "over a seam";
          ASSERT_EQ((chunk.remote + i) / extent, chunk.remote / extent) << "over a seam";
        }
        mark(chunk, Byte::out);
        if (chunk.length > 0) out.push_back(chunk);
      }
      if (!out.empty() && pick(2) == 0) {
        std::swap(out[pick(out.size())], out.back());
        Chunk home = out.back();
        out.pop_back();
        switch (pick(5)) {
          case 0:
            home.touched = home.touched || pick(2) == 0;
            table.give_back(home);
            mark(home, home.touched ? Byte::touched : Byte::untouched);
            break;
          case 1:
            table.lost(home);
            mark(home, Byte::lost);
            break;
          default:
            table.carried(home);
            mark(home, Byte::carried);
        }
      }
      ASSERT_EQ(table.exhausted(), !to_take(all_rails));
      if (table.parted()) {
        const RailBits stay = all_rails & ~left;
        bool none_may = false;
        for (std::size_t i = 0; i < bytes.size(); ++i)
          none_may = none_may || (state[i] <= Byte::touched &&
                                  (may_carry(bytes[i].local, bytes[i].remote) & stay) == 0);
        ASSERT_EQ(table.strands(stay), none_may);
        stranded += none_may ? 1 : 0;
      }
      std::vector<bool> unknown(bytes.size()), untouched(bytes.size());
      const auto gaps = table.gaps(bytes.size());
      const auto fill = [](const std::vector<Span>& spans, std::vector<bool>& into) {
        for (const Span& span : spans)
          for (std::uint64_t i = 0; i < span.length; ++i) {
            ASSERT_FALSE(into[span.at + i]) << "spans overlap";
            into[span.at + i] = true;
          }
      };
      fill(gaps.unknown, unknown);
      fill(gaps.untouched, untouched);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        ASSERT_EQ(untouched[i], state[i] == Byte::untouched) << "byte " << i;
        ASSERT_EQ(unknown[i], state[i] != Byte::untouched && state[i] != Byte::carried)
            << "byte " << i;
      }
    }
    ASSERT_TRUE(out.empty());
    ASSERT_FALSE(to_take(all_rails & ~left));
  }
  EXPECT_GT(parted, 200);
  EXPECT_GT(stranded, 200);
}

TEST(PartedChunkTable, ARailTakesFirstWhatFewOthersMayCarry) {
  const std::vector<Pair> pairs = {{0, 0, 32}, {32, 0, 16}};
  const PieceList pieces(pairs);
  // All may carry the first extent, rail 0 alone the second, and rails 0 and 1 the third.
  const Reach reach = make_reach(pieces, 16, {0b111, 0b001, 0b011}, {0b111, 0b111}, 3);
  ChunkTable table(pieces, std::nullopt, reach, *std::pmr::new_delete_resource());
  EXPECT_EQ(taken(table, 100, 0).local, 16U);
  EXPECT_EQ(taken(table, 100, 0).local, 32U);
  EXPECT_EQ(taken(table, 100, 1).local, 0U);
  EXPECT_TRUE(table.exhausted());
}

TEST(PartedChunkTable, ARailThatIsNotOfThePathTakesNothing) {
  const std::vector<Pair> pairs = {{0, 0, 32}};
  const PieceList pieces(pairs);
  const Reach reach = make_reach(pieces, 16, {0b11, 0b01}, {0b11, 0b11}, 2);
  ChunkTable table(pieces, std::nullopt, reach, *std::pmr::new_delete_resource());
  EXPECT_TRUE(table.exhausted_for(2));
  EXPECT_EQ(taken(table, 100, 2).length, 0U);
  EXPECT_EQ(table.runs(), 1U);
}

}  // namespace
}  // namespace weft::core::test
