// The walk from pieces to chunks, by example and against a model.
#include "transfer/cursor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

namespace weft::core {

bool operator==(const Chunk& a, const Chunk& b) {
  return a.local == b.local && a.remote == b.remote && a.length == b.length;
}
void PrintTo(const Chunk& chunk, std::ostream* out) {
  *out << chunk.length << " bytes from " << chunk.local << " to " << chunk.remote;
}

namespace {

using testing::ElementsAre;

struct Walk {
  std::vector<Chunk> chunks;
  std::uint64_t runs = 0;
};

Walk walk(const PieceList& pieces, const Picks& picks, std::uint64_t limit,
          const Seams& seams = {}) {
  Cursor cursor(pieces, picks, seams);
  Walk walk;
  while (const auto chunk = cursor.next(limit)) walk.chunks.push_back(*chunk);
  EXPECT_TRUE(cursor.exhausted());
  EXPECT_FALSE(cursor.next(limit));
  walk.runs = cursor.runs();
  return walk;
}

Walk walk(const std::vector<Pair>& pairs, std::uint64_t limit = 1000) {
  return walk(PieceList(pairs), {}, limit);
}

TEST(Cursor, NeighboursOnBothSidesBecomeOneRun) {
  const Walk result = walk({{0, 100, 10}, {10, 110, 5}, {15, 115, 1}});
  EXPECT_THAT(result.chunks, ElementsAre(Chunk{0, 100, 16}));
  EXPECT_EQ(result.runs, 1U);
}

TEST(Cursor, NeighboursOnOneSideOnlyStayApart) {
  const Walk result = walk({{0, 100, 10}, {10, 111, 10}, {21, 121, 10}});
  EXPECT_THAT(result.chunks,
              ElementsAre(Chunk{0, 100, 10}, Chunk{10, 111, 10}, Chunk{21, 121, 10}));
  EXPECT_EQ(result.runs, 3U);
}

TEST(Cursor, NeighboursInFallingOrderStayApart) {
  EXPECT_EQ(walk({{10, 10, 10}, {0, 0, 10}}).runs, 2U);
}

TEST(Cursor, RunsAreCutAtTheLimitAcrossPieces) {
  const Walk result = walk({{0, 0, 10}, {10, 10, 10}, {20, 20, 5}}, 8);
  EXPECT_THAT(result.chunks,
              ElementsAre(Chunk{0, 0, 8}, Chunk{8, 8, 8}, Chunk{16, 16, 8}, Chunk{24, 24, 1}));
  EXPECT_EQ(result.runs, 1U);
}

TEST(Cursor, ARunThatEndsExactlyAtTheLimitIsStillOneRun) {
  const Walk result = walk({{0, 0, 8}, {8, 8, 8}, {100, 100, 8}}, 8);
  EXPECT_EQ(result.chunks.size(), 3U);
  EXPECT_EQ(result.runs, 2U);
}

TEST(Cursor, TheLimitMayChangeFromChunkToChunk) {
  const std::vector<Pair> pairs = {{0, 0, 10}, {10, 10, 10}};
  const PieceList pieces(pairs);
  Cursor cursor(pieces, {});
  EXPECT_EQ(cursor.next(3), (Chunk{0, 0, 3}));
  EXPECT_EQ(cursor.next(12), (Chunk{3, 3, 12}));
  EXPECT_EQ(cursor.next(std::numeric_limits<std::uint64_t>::max()), (Chunk{15, 15, 5}));
  EXPECT_TRUE(cursor.exhausted());
}

TEST(Cursor, EmptyPiecesAreNoWork) {
  const Walk result = walk({{5, 5, 0}, {0, 0, 4}, {9, 9, 0}, {4, 4, 4}, {8, 8, 0}, {50, 50, 0}});
  EXPECT_THAT(result.chunks, ElementsAre(Chunk{0, 0, 8}));
  EXPECT_EQ(result.runs, 1U);
}

TEST(Cursor, AListOfEmptyPiecesIsExhaustedFromTheStart) {
  const std::vector<Pair> pairs = {{5, 5, 0}, {9, 9, 0}};
  const PieceList pieces(pairs);
  EXPECT_TRUE(Cursor(pieces, {}).exhausted());
}

TEST(Cursor, AnEmptyListIsExhaustedFromTheStart) {
  const PieceList pieces{std::span<const Pair>{}};
  EXPECT_TRUE(Cursor(pieces, {}).exhausted());
  const std::vector<Pair> pairs = {{0, 0, 1}};
  const PieceList one(pairs);
  const std::vector<std::uint32_t> none;
  EXPECT_TRUE(Cursor(one, none).exhausted());
  EXPECT_FALSE(Cursor(one, {}).exhausted());
}

TEST(Cursor, PicksAreTakenInTheirOrderAndMayRepeat) {
  const std::vector<Pair> pairs = {{0, 0, 4}, {4, 4, 4}, {8, 8, 4}};
  const std::vector<std::uint32_t> picks = {2, 0, 1, 0};
  const Walk result = walk(PieceList(pairs), picks, 100);
  EXPECT_THAT(result.chunks, ElementsAre(Chunk{8, 8, 4}, Chunk{0, 0, 8}, Chunk{0, 0, 4}));
  EXPECT_EQ(result.runs, 3U);
}

TEST(Cursor, ARunBeginsAnewOnlyWhenItIsReached) {
  const std::vector<Pair> pairs = {{0, 0, 4}, {100, 100, 4}};
  const PieceList pieces(pairs);
  Cursor cursor(pieces, {});
  EXPECT_EQ(cursor.runs(), 0U);
  cursor.next(100);
  EXPECT_EQ(cursor.runs(), 1U);
  cursor.next(100);
  EXPECT_EQ(cursor.runs(), 2U);
}

TEST(Cursor, NoChunkGoesOverASeamOfEitherSide) {
  const std::vector<Pair> pairs = {{10, 100, 50}};
  const Walk local = walk(PieceList(pairs), {}, 1000, {.local = 32});
  EXPECT_THAT(local.chunks, ElementsAre(Chunk{10, 100, 22}, Chunk{32, 122, 28}));
  const Walk remote = walk(PieceList(pairs), {}, 1000, {.remote = 64});
  EXPECT_THAT(remote.chunks, ElementsAre(Chunk{10, 100, 28}, Chunk{38, 128, 22}));
  const Walk both = walk(PieceList(pairs), {}, 25, {32, 64});
  EXPECT_THAT(both.chunks, ElementsAre(Chunk{10, 100, 22}, Chunk{32, 122, 6}, Chunk{38, 128, 22}));
  for (const Walk* each : {&local, &remote, &both}) EXPECT_EQ(each->runs, 1U);
}

TEST(Cursor, NeighboursOverASeamAreOneRunAndTwoChunks) {
  const std::vector<Pair> pairs = {{0, 100, 16}, {16, 116, 16}, {32, 132, 16}};
  const Walk result = walk(PieceList(pairs), {}, 1000, {.local = 16});
  EXPECT_THAT(result.chunks,
              ElementsAre(Chunk{0, 100, 16}, Chunk{16, 116, 16}, Chunk{32, 132, 16}));
  EXPECT_EQ(result.runs, 1U);
}

TEST(Cursor, ItsFrontIsWhereTheNextChunkBegins) {
  const std::vector<Pair> pairs = {{5, 5, 0}, {0, 50, 10}, {10, 60, 10}, {0, 0, 0}, {70, 0, 4}};
  const PieceList pieces(pairs);
  for (Cursor cursor(pieces, {}, {.local = 16}); !cursor.exhausted();) {
    const Pair front = cursor.front();
    const auto chunk = cursor.next(7);
    ASSERT_TRUE(chunk);
    EXPECT_EQ(front.local, chunk->local);
    EXPECT_EQ(front.remote, chunk->remote);
  }
}

/// What a walk must come to, by the simplest means: runs as maximal sequences of neighbours, empty
/// pieces left out.
std::vector<Chunk> runs_of(const std::vector<Pair>& pairs) {
  std::vector<Chunk> runs;
  for (const Pair& pair : pairs) {
    if (pair.length == 0) continue;
    if (!runs.empty() && runs.back().local + runs.back().length == pair.local &&
        runs.back().remote + runs.back().length == pair.remote)
      runs.back().length += pair.length;
    else
      runs.push_back({pair.local, pair.remote, pair.length});
  }
  return runs;
}

/// Byte by byte.
std::vector<Chunk> cut(const std::vector<Chunk>& runs, std::uint64_t limit, const Seams& seams) {
  std::vector<Chunk> chunks;
  for (const Chunk& run : runs)
    for (std::uint64_t at = 0; at < run.length; ++at) {
      const bool seam =
          (run.local + at) % seams.local == 0 || (run.remote + at) % seams.remote == 0;
      if (at == 0 || seam || chunks.back().length == limit)
        chunks.push_back({run.local + at, run.remote + at, 0});
      ++chunks.back().length;
    }
  return chunks;
}

TEST(Cursor, AgreesWithTheModelOnGeneratedLists) {
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](std::uint32_t below) {
      return static_cast<std::uint32_t>(random() % below);
    };
    std::vector<Pair> pairs;
    Pair at{1000, 5000, 0};
    for (std::uint32_t i = 0, count = pick(40); i < count; ++i) {
      at.local += at.length;
      at.remote += at.length;
      // Gaps on neither, either or both sides; some pieces go back.
      if (pick(3) == 0) at.local += pick(4);
      if (pick(3) == 0) at.remote += pick(4);
      if (pick(10) == 0) at = {pick(2000), pick(2000), 0};
      at.length = pick(5) == 0 ? 0 : pick(30);
      pairs.push_back(at);
    }
    std::vector<std::uint32_t> picks;
    const bool picked = pick(2) == 0 && !pairs.empty();
    if (picked)
      for (std::uint32_t i = 0, count = pick(60); i < count; ++i) {
        const bool next = !picks.empty() && picks.back() + 1 < pairs.size() && pick(2) == 0;
        picks.push_back(next ? picks.back() + 1 : pick(static_cast<std::uint32_t>(pairs.size())));
      }
    std::vector<Pair> meant;
    if (picked)
      for (const std::uint32_t index : picks) meant.push_back(pairs[index]);
    else
      meant = pairs;
    const std::uint64_t limit = 1 + pick(50);
    const auto seam = [&] { return pick(2) == 0 ? no_seams : std::uint64_t{8} << pick(5); };
    const Seams seams{seam(), seam()};
    const Walk result = walk(PieceList(pairs), picked ? Picks(picks) : std::nullopt, limit, seams);
    const std::vector<Chunk> runs = runs_of(meant);
    ASSERT_EQ(result.chunks, cut(runs, limit, seams)) << "seed " << seed;
    ASSERT_EQ(result.runs, runs.size()) << "seed " << seed;
  }
}

TEST(Cursor, EveryByteComesOnceWhateverTheLimits) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    // Pages in shuffled order, some of them neighbours: no byte twice.
    constexpr std::uint32_t pages = 64, page = 32;
    std::vector<std::uint32_t> local(pages), remote(pages);
    std::iota(local.begin(), local.end(), 0U);
    std::iota(remote.begin(), remote.end(), 0U);
    for (std::uint32_t swap = 0; swap < random() % 40; ++swap) {
      std::swap(local[random() % pages], local[random() % pages]);
      std::swap(remote[random() % pages], remote[random() % pages]);
    }
    const PieceList pieces(Paged{page, 0, page, 0, page, local, remote});
    std::vector<std::optional<std::uint64_t>> source(pages * page);
    Cursor cursor(pieces, {});
    while (!cursor.exhausted()) {
      const std::uint64_t limit = 1 + random() % 100;
      const auto chunk = cursor.next(limit);
      ASSERT_TRUE(chunk);
      ASSERT_LE(chunk->length, limit);
      for (std::uint64_t i = 0; i < chunk->length; ++i) {
        ASSERT_FALSE(source.at(chunk->remote + i)) << "seed " << seed;
        source[chunk->remote + i] = chunk->local + i;
      }
    }
    for (std::uint32_t i = 0; i < pages; ++i)
      for (std::uint32_t byte = 0; byte < page; ++byte)
        ASSERT_EQ(source[remote[i] * page + byte], local[i] * page + byte) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weft::core
