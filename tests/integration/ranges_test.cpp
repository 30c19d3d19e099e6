// Transfers of many pieces: shuffled, strided, paged, prepared and picked.
#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>

#include "after_each.hpp"
#include "engines.hpp"

namespace weft::test {
namespace {

class Ranges : public testing::TestWithParam<Variant> {
 protected:
  Couple pair = couple(config_for(GetParam()));
  std::mt19937_64 random{20240607};

  std::vector<std::uint32_t> shuffled(std::size_t count) {
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), random);
    return order;
  }

  /// Pieces of `least` to `most` bytes with gaps between them, in another order on each side.
  std::vector<Pair> scattered(std::size_t count, std::uint64_t least, std::uint64_t most) {
    std::uniform_int_distribution<std::uint64_t> length(least, most), gap(0, 7);
    std::vector<Pair> pairs(count);
    for (Pair& each : pairs) each.length = length(random);
    std::uint64_t local = 1, remote = 3;
    for (const std::uint32_t i : shuffled(count)) {
      pairs[i].local = local;
      local += pairs[i].length + gap(random);
    }
    for (const std::uint32_t i : shuffled(count)) {
      pairs[i].remote = remote;
      remote += pairs[i].length + gap(random);
    }
    local_bytes = local + 8;
    remote_bytes = remote + 8;
    return pairs;
  }
  void expect_both_ways(std::span<const Pair> pairs) {
    Board board(pair, local_bytes, remote_bytes);
    board.expect_moved(Direction::write, pairs);
    board.repaint();
    board.expect_moved(Direction::read, pairs);
  }
  std::uint64_t local_bytes = 0, remote_bytes = 0;
};

TEST_P(Ranges, ScatteredPieces) {
  for (const std::size_t count : {1, 2, 10, 100, 1000}) {
    SCOPED_TRACE(count);
    expect_both_ways(scattered(count, 1, 5000));
  }
}

TEST_P(Ranges, PiecesShareOperationsWhereTheProviderTakesSeveral) {
  constexpr std::size_t count = 64;
  std::atomic<std::size_t> operations{0}, chunks{0};
  pair = couple(config_for(GetParam(), 1), config_for(GetParam(), 1),
                after_each([&](const core::Op& op) {
                  if (op.chunk.proof()) return;
                  ++operations;
                  chunks += op.chunks();
                }));
  const std::size_t together = pair.a.info().rails.front().capability.rma_pieces;
  const auto pieces = scattered(count, 1000, 2000);
  Board board(pair, local_bytes, remote_bytes);
  for (const Direction direction : {Direction::write, Direction::read}) {
    operations = chunks = 0;
    board.repaint();
    board.expect_moved(direction, pieces);
    if (GetParam().transport != TransportKind::one_sided) continue;
    EXPECT_GE(chunks, count - 1) << "neighbours on both sides are one";
    EXPECT_EQ(operations, (chunks + together - 1) / together);
  }
}

TEST_P(Ranges, LargeScatteredPieces) {
  expect_both_ways(scattered(12, 1 << 20, 2 << 20));
}

TEST_P(Ranges, HundredThousandPieces) {
  const auto pairs = scattered(100'000, 1, 64);
  Board board(pair, local_bytes, remote_bytes);
  board.expect_moved(Direction::write, pairs);
}

TEST_P(Ranges, HundredThousandPiecesRead) {
  const auto pairs = scattered(100'000, 1, 64);
  Board board(pair, local_bytes, remote_bytes);
  board.expect_moved(Direction::read, pairs);
}

TEST_P(Ranges, EmptyPiecesAmongOthers) {
  auto pairs = scattered(500, 0, 3);
  pairs.push_back({0, 0, 0});
  expect_both_ways(pairs);
}

TEST_P(Ranges, NeighboursBecomeOneRun) {
  constexpr std::uint64_t piece = 1000, count = 1000;
  std::vector<Pair> pairs;
  for (std::uint64_t i = 0; i < count; ++i) pairs.push_back({i * piece + 7, i * piece + 1, piece});
  Board board(pair, piece * count + 16, piece * count + 16);
  Transfer transfer = must(pair.a.write(board.local, board.there, pairs));
  ASSERT_TRUE(succeeds(transfer.wait(soon())));
  board.expect_pieces(Direction::write, pairs);
  const Report report = transfer.report();
  EXPECT_EQ(report.ranges, count);
  EXPECT_EQ(report.runs, 1U);
  EXPECT_EQ(report.bytes, piece * count);
  EXPECT_EQ(report.bytes_done, piece * count);
  std::uint64_t operations = 0, bytes = 0;
  for (const auto& share : report.rails) {
    operations += share.operations;
    bytes += share.bytes;
  }
  EXPECT_EQ(operations, report.operations);
  EXPECT_EQ(bytes, report.bytes);
  EXPECT_EQ(report.transport, GetParam().transport);
}

TEST_P(Ranges, Strided) {
  const Strided rows{
      .first = {5, 11, 333}, .count = 700, .local_stride = 401, .remote_stride = 512};
  std::vector<Pair> pairs;
  for (std::uint64_t i = 0; i < rows.count; ++i)
    pairs.push_back({5 + i * rows.local_stride, 11 + i * rows.remote_stride, 333});
  Board board(pair, 701 * 401, 701 * 512);
  for (const Direction direction : {Direction::write, Direction::read}) {
    board.repaint();
    const Prepared prepared = must(pair.a.prepare(board.local, board.there, direction, rows));
    EXPECT_EQ(prepared.size(), rows.count);
    EXPECT_EQ(prepared.bytes(), rows.count * 333);
    ASSERT_TRUE(succeeds(must(pair.a.submit(prepared)).wait(soon())));
    board.expect_pieces(direction, pairs);
  }
}

TEST_P(Ranges, StridedBackToBackIsOneRun) {
  const Strided rows{.first = {0, 0, 64}, .count = 500, .local_stride = 64, .remote_stride = 64};
  Board board(pair, 500 * 64, 500 * 64);
  const Prepared prepared = must(pair.a.prepare(board.local, board.there, Direction::read, rows));
  Transfer transfer = must(pair.a.submit(prepared));
  ASSERT_TRUE(succeeds(transfer.wait(soon())));
  EXPECT_EQ(transfer.report().runs, 1U);
  const Pair all[] = {{0, 0, 500 * 64}};
  board.expect_pieces(Direction::read, all);
}

TEST_P(Ranges, Paged) {
  constexpr std::size_t pages = 900;
  const auto here = shuffled(pages), there = shuffled(pages);
  const Paged form{.page_bytes = 1000,
                   .local_base = 17,
                   .local_stride = 1024,
                   .remote_base = 3,
                   .remote_stride = 1001,
                   .local_pages = here,
                   .remote_pages = there};
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < pages; ++i)
    pairs.push_back({17 + std::uint64_t{here[i]} * 1024, 3 + std::uint64_t{there[i]} * 1001, 1000});
  Board board(pair, 17 + pages * 1024, 3 + pages * 1001);
  for (const Direction direction : {Direction::write, Direction::read}) {
    board.repaint();
    const Prepared prepared = must(pair.a.prepare(board.local, board.there, direction, form));
    ASSERT_TRUE(succeeds(must(pair.a.submit(prepared)).wait(soon())));
    board.expect_pieces(direction, pairs);
  }
}

TEST_P(Ranges, PreparedIsRepostedByPicks) {
  constexpr std::size_t pieces = 400;
  const auto pairs = scattered(pieces, 1, 3000);
  Board board(pair, local_bytes, remote_bytes);
  for (const Direction direction : {Direction::write, Direction::read}) {
    const Prepared prepared = must(pair.a.prepare(board.local, board.there, direction, pairs));
    for (int round = 0; round < 20; ++round) {
      board.repaint();
      auto picks = shuffled(pieces);
      picks.resize(std::uniform_int_distribution<std::size_t>(1, pieces)(random));
      std::vector<Pair> picked;
      for (const std::uint32_t pick : picks) picked.push_back(pairs[pick]);
      ASSERT_TRUE(succeeds(must(pair.a.submit(prepared, picks)).wait(soon())));
      board.expect_pieces(direction, picked);
    }
  }
}

TEST_P(Ranges, NoPicksIsDoneAtOnce) {
  Board board(pair, 100, 100);
  const Pair piece[] = {{0, 0, 100}};
  const Prepared prepared = must(pair.a.prepare(board.local, board.there, Direction::write, piece));
  Transfer transfer = must(pair.a.submit(prepared, std::span<const std::uint32_t>()));
  ASSERT_TRUE(succeeds(transfer.wait(soon())));
  board.expect_untouched();
}

TEST_P(Ranges, PicksOfManyTransfersAtOnce) {
  constexpr std::size_t pieces = 320;
  const auto pairs = scattered(pieces, 100, 2000);
  Board board(pair, local_bytes, remote_bytes);
  const Prepared prepared = must(pair.a.prepare(board.local, board.there, Direction::write, pairs));
  const auto order = shuffled(pieces);
  std::vector<Transfer> transfers;
  for (std::size_t i = 0; i < pieces; i += 10)
    transfers.push_back(must(pair.a.submit(prepared, std::span(order).subspan(i, 10))));
  for (Transfer& each : transfers) ASSERT_TRUE(succeeds(each.wait(soon())));
  board.expect_pieces(Direction::write, pairs);
}

INSTANTIATE_TEST_SUITE_P(All, Ranges, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
