#include "peer/targets.hpp"

#include <gtest/gtest.h>

#include <map>

namespace weft::core {
namespace {

TEST(Targets, OneIsAlwaysNext) {
  Targets targets;
  Whereto whereto{30};
  targets.add({3, &whereto});
  for (int turn = 0; turn < 5; ++turn) EXPECT_EQ(targets.take_turn().address(), 30U);
  whereto = 31;
  EXPECT_EQ(targets.take_turn().address(), 31U) << "it has moved";
}

TEST(Targets, EqualOnesTakeTurns) {
  Targets targets;
  for (std::uint32_t i = 0; i < 3; ++i) targets.add({i, nullptr});
  for (std::uint32_t turn = 0; turn < 9; ++turn) EXPECT_EQ(targets.take_turn().index, turn % 3);
}

TEST(Targets, EachHasItsShareOfAnyStretch) {
  Targets targets;
  const std::map<std::uint32_t, int> weights = {{0, 5}, {1, 1}, {2, 2}};
  for (const auto& [index, weight] : weights)
    targets.add({index, nullptr}, static_cast<std::uint64_t>(weight));
  std::map<std::uint32_t, int> taken;
  for (int turn = 1; turn <= 800; ++turn) {
    ++taken[targets.take_turn().index];
    for (const auto& [index, weight] : weights)
      EXPECT_NEAR(taken[index], turn * weight / 8.0, 1.0) << "after " << turn << " turns";
  }
}

TEST(Targets, WhereSomeAreLeftOutTheOthersShareTheTurns) {
  Targets targets;
  const std::map<std::uint32_t, int> weights = {{0, 5}, {1, 1}, {2, 2}};
  for (const auto& [index, weight] : weights)
    targets.add({index, nullptr}, static_cast<std::uint64_t>(weight));
  const auto take = [&](auto holds) {
    const RemoteRail* taken = targets.take_turn_of(holds);
    return taken == nullptr ? -1 : static_cast<int>(taken->index);
  };
  EXPECT_EQ(take([](const RemoteRail&) { return false; }), -1);
  std::map<int, int> taken;
  for (int turn = 0; turn < 30; ++turn)
    ++taken[take([](const RemoteRail& each) { return each.index != 0; })];
  EXPECT_EQ(taken, (std::map<int, int>{{1, 10}, {2, 20}}));
  for (int turn = 0; turn < 5; ++turn)
    EXPECT_EQ(take([](const RemoteRail& each) { return each.index == 1; }), 1);
  taken.clear();
  for (int turn = 0; turn < 80; ++turn) ++taken[static_cast<int>(targets.take_turn().index)];
  EXPECT_EQ(taken, (std::map<int, int>{{0, 50}, {1, 10}, {2, 20}})) << "nothing is left of it";
}

TEST(Targets, WeightsMayBeAsLargeAsSpeedsMultiplied) {
  Targets targets;
  constexpr std::uint64_t huge = std::uint64_t{1} << 50;
  targets.add({0, nullptr}, huge);
  targets.add({1, nullptr}, 3 * huge);
  int first = 0;
  for (int turn = 0; turn < 400; ++turn) first += targets.take_turn().index == 0 ? 1 : 0;
  EXPECT_EQ(first, 100);
}

}  // namespace
}  // namespace weft::core
