// What became of each piece.
#include "transfer/outcome.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace weft::core::test {
namespace {

using testing::ElementsAre;
using enum Placed;

PieceList pieces_of(const std::vector<std::uint64_t>& lengths) {
  std::vector<Pair> pairs;
  for (const std::uint64_t length : lengths) pairs.push_back({0, 0, length});
  return PieceList(pairs);
}

TEST(Outcome, WhatNobodyDoubtsIsPlaced) {
  EXPECT_THAT(outcome_of(pieces_of({10, 0, 5}), {}, {}, {}), ElementsAre(all, all, all));
  EXPECT_THAT(outcome_of(pieces_of({}), {}, {}, {}), ElementsAre());
}

TEST(Outcome, OneByteOfDoubtIsEnough) {
  EXPECT_THAT(outcome_of(pieces_of({10, 10, 10}), {}, {{10, 1}}, {}),
              ElementsAre(all, unknown, all));
  EXPECT_THAT(outcome_of(pieces_of({10, 10, 10}), {}, {{29, 1}, {9, 1}}, {}),
              ElementsAre(unknown, all, unknown));
}

TEST(Outcome, WhatWasNotTouchedAtAllIsKnown) {
  EXPECT_THAT(outcome_of(pieces_of({10, 10, 10}), {}, {}, {{15, 15}}),
              ElementsAre(all, unknown, none));
  EXPECT_THAT(outcome_of(pieces_of({10, 10}), {}, {}, {{5, 5}, {0, 5}}), ElementsAre(none, all));
  EXPECT_THAT(outcome_of(pieces_of({10, 10}), {}, {{0, 20}}, {{10, 10}}),
              ElementsAre(unknown, none))
      << "not touched is not touched";
}

TEST(Outcome, PiecesAreThoseThatWerePicked) {
  const std::vector<std::uint32_t> picks{2, 0, 2};
  EXPECT_THAT(outcome_of(pieces_of({1, 100, 10}), picks, {{10, 1}}, {{11, 10}}),
              ElementsAre(all, unknown, none));
}

TEST(Outcome, IsWhatALookAtEachByteSays) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::uint64_t> lengths(random() % 8);
    std::uint64_t total = 0;
    for (auto& length : lengths) total += length = random() % 6;
    enum Byte { placed, doubtful, untouched };
    std::vector<Byte> bytes(total);
    std::vector<Span> unknown_spans, untouched_spans;
    for (std::uint64_t at = 0; at < total;) {
      const std::uint64_t length = 1 + random() % std::min<std::uint64_t>(5, total - at);
      const auto what = static_cast<Byte>(random() % 3);
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length, what);
      if (what == doubtful) unknown_spans.push_back({at, length});
      if (what == untouched) untouched_spans.push_back({at, length});
      at += length;
    }
    std::shuffle(unknown_spans.begin(), unknown_spans.end(), random);
    std::shuffle(untouched_spans.begin(), untouched_spans.end(), random);
    const auto outcome = outcome_of(pieces_of(lengths), {}, unknown_spans, untouched_spans);
    ASSERT_EQ(outcome.size(), lengths.size());
    auto at = bytes.begin();
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const auto end = at + static_cast<std::ptrdiff_t>(lengths[i]);
      const auto is = [&](Byte what) { return std::count(at, end, what); };
      const Placed wanted = is(placed) == end - at      ? all
                            : is(untouched) == end - at ? none
                                                        : unknown;
      ASSERT_EQ(outcome[i], wanted) << "seed " << seed << ", piece " << i;
      at = end;
    }
  }
}

}  // namespace
}  // namespace weft::core::test
