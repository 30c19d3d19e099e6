// Transfers of every size, both directions, at unaligned places.
#include <algorithm>
#include <random>

#include "engines.hpp"

namespace weft::test::sizes_tests {
namespace {

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;

struct Case {
  Variant variant;
  Direction direction;
};

class Sizes : public testing::TestWithParam<Case> {
 protected:
  /// One piece, with a margin before and behind it on both sides.
  void move(std::size_t bytes, std::size_t local_offset, std::size_t remote_offset) {
    SCOPED_TRACE(std::to_string(bytes) + " bytes");
    constexpr std::size_t margin = 64;
    Board board(pair, local_offset + bytes + margin, remote_offset + bytes + margin);
    const Pair piece[] = {{local_offset, remote_offset, bytes}};
    board.expect_moved(GetParam().direction, piece);
  }
  Couple pair = couple(config_for(GetParam().variant));
};

TEST_P(Sizes, SmallAtEveryAlignment) {
  for (std::size_t bytes = 1; bytes <= 17; ++bytes)
    for (const std::size_t shift : {0, 1, 3, 7}) {
      move(bytes, shift, 8 - shift);
      if (HasFailure()) return;
    }
}

TEST_P(Sizes, AroundPowersOfTwo) {
  for (std::size_t bytes = 64; bytes <= 4 * MiB; bytes *= 4)
    for (const std::size_t size : {bytes - 1, bytes, bytes + 1}) {
      move(size, 13, 4099);
      if (HasFailure()) return;
    }
}

TEST_P(Sizes, Large) {
  move(16 * MiB + 5, 1, 0);
  move(64 * MiB, 0, 4093);
}

TEST_P(Sizes, UpToOneGigabyte) {
  if (!long_forms()) GTEST_SKIP() << "WEFT_LONG=1 asks for it";
  move(256 * MiB + 1, 3, 5);
  move(GiB, 7, 0);
}

TEST_P(Sizes, Nothing) {
  move(0, 5, 5);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Variant& variant : all_variants())
    for (const Direction direction : {Direction::write, Direction::read})
      all.push_back({variant, direction});
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Sizes, testing::ValuesIn(cases()), [](const auto& info) {
  return name_of(info.param.variant) +
         (info.param.direction == Direction::write ? "_write" : "_read");
});

}  // namespace
}  // namespace weft::test::sizes_tests
