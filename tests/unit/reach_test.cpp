// Which rails may carry which bytes, by example and against a model.
#include "transfer/reach.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "parts.hpp"

namespace weft::core::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PieceList listed(const std::vector<Pair>& pairs) {
  return PieceList(pairs);
}

const std::vector<std::size_t> two = {4, 7};  // rails, by position

TEST(Reach, MemoryThatLiesInOneExtentOnEachSideIsNotLookedAt) {
  SideExtents local = make_extents(16, {0b11}, 2), remote = make_extents(32, {0b11}, 2);
  local.reached = remote.reached = nullptr;
  const auto reach = Reach::find(listed({{0, 16, 16}}), two, local, remote);
  ASSERT_TRUE(reach);
  EXPECT_TRUE(reach->complete());
  EXPECT_FALSE(reach->parted());
  EXPECT_EQ(reach->seams(), nullptr);
}

TEST(Reach, WhereAllRailsReachAllOnlySeamsAreLeft) {
  const auto reach = Reach::find(listed({{0, 0, 32}}), two, make_extents(16, {0b11, 0b11, 0b11}, 2),
                                 make_extents(32, {0b11}, 2));
  ASSERT_TRUE(reach);
  EXPECT_TRUE(reach->complete());
  EXPECT_FALSE(reach->parted());
  ASSERT_NE(reach->seams(), nullptr);
  EXPECT_EQ(reach->seams()->local, 16U);
  EXPECT_EQ(reach->seams()->remote, no_seams) << "the only extent there";
}

TEST(Reach, ATargetWithoutAKeyDoesNotPartIt) {
  SideExtents remote = make_extents(16, {0b11, 0b11}, 2);
  remote.reached = [](std::uint64_t) { return SideExtents::Reached{0b11, true, false}; };
  const auto reach =
      Reach::find(listed({{0, 0, 32}}), two, make_extents(16, {0b11, 0b11}, 2), remote);
  ASSERT_TRUE(reach);
  EXPECT_FALSE(reach->complete());
  EXPECT_FALSE(reach->parted());
}

TEST(Reach, OnlyWhatPiecesTouchIsLookedAtAndOnce) {
  std::map<std::uint64_t, int> looks;
  SideExtents local = make_extents(16, {0b11, 0, 0b01, 0}, 2);
  local.reached = [&, reached = local.reached](std::uint64_t offset) {
    ++looks[offset / 16];
    return reached(offset);
  };
  const SideExtents remote = make_extents(64, {0b11, 0b11}, 2);
  const auto reach = Reach::find(
      listed({{0, 0, 4}, {40, 8, 8}, {8, 100, 8}, {16, 0, 0}, {32, 32, 4}}), two, local, remote);
  ASSERT_TRUE(reach);
  EXPECT_EQ(looks, (std::map<std::uint64_t, int>{{0, 1}, {2, 1}}));
  EXPECT_TRUE(reach->parted());
  EXPECT_EQ(reach->rails_for(15, 127), 0b11U);
  EXPECT_EQ(reach->rails_for(32, 0), 0b01U);
  EXPECT_THAT(reach->parts(), ElementsAre(0b01, 0b11)) << "the fewest rails first";
  EXPECT_EQ(reach->bit_of(4), 0b01U);
  EXPECT_EQ(reach->bit_of(7), 0b10U);
  EXPECT_EQ(reach->bit_of(5), 0U);
}

TEST(Reach, BytesInReachOfNoRailAreNamed) {
  const std::vector<Pair> pairs = {{0, 0, 40}};
  const auto why = [&](std::vector<RailBits> ours, std::vector<RailBits> theirs) {
    SideExtents local = make_extents(16, std::move(ours), 2),
                remote = make_extents(16, std::move(theirs), 2);
    local.memory = "local memory";
    remote.memory = "peer's memory";
    remote.extents = Extents(40, 16);  // the last extent is shorter
    const auto reach = Reach::find(PieceList(pairs), two, local, remote);
    EXPECT_FALSE(reach);
    EXPECT_EQ(reach.error().code(), Code::unavailable);
    return reach.error().message();
  };
  EXPECT_EQ(why({0b11, 0, 0b11}, {0b11, 0b11, 0b11}),
            "no rail reaches bytes 16 to 32 of the local memory");
  EXPECT_EQ(why({0b11, 0b01, 0b11}, {0b11, 0b11, 0}),
            "no rail reaches bytes 32 to 40 of the peer's memory");
  EXPECT_EQ(why({0b11, 0b01, 0b11}, {0b01, 0b10, 0b11}),
            "no rail reaches both bytes 16 to 32 of the local memory and bytes 16 to 32 of the "
            "peer's memory");
}

// A grant says so of its segment, and may come from anywhere.
TEST(Reach, ASegmentMayHaveAllBytesThatAGrantMaySay) {
  constexpr std::uint64_t half = std::uint64_t{1} << 62, most = std::uint64_t{1} << 63;
  const Pair pairs[] = {{0, half - 8, 16}, {16, most - 16, 16}};
  const auto both = [](std::uint64_t) { return SideExtents::Reached{0b11, true, true}; };
  const auto reach = Reach::find(PieceList(pairs), two, make_extents(64, {0b11}, 2),
                                 {"peer's memory", Extents(most, half), both});
  ASSERT_TRUE(reach);
  EXPECT_TRUE(reach->complete());
  ASSERT_NE(reach->seams(), nullptr);
  EXPECT_EQ(reach->seams()->remote, half);
}

TEST(Reach, RailsPastThe64thCarryOnlyWhatAllCarry) {
  std::vector<std::size_t> rails(70);
  std::iota(rails.begin(), rails.end(), std::size_t{0});
  const auto pieces = [] { return listed({{0, 0, 32}}); };
  const auto side = [](SideExtents::Reached second) {
    SideExtents extents = make_extents(16, {0, 0}, 70);
    extents.reached = [second](std::uint64_t offset) {
      return offset < 16 ? SideExtents::Reached{~RailBits{0}} : second;
    };
    return extents;
  };
  const SideExtents::Reached all{~RailBits{0}};
  const auto whole = Reach::find(pieces(), rails, side(all), side(all));
  ASSERT_TRUE(whole);
  EXPECT_FALSE(whole->parted());
  const auto parted = Reach::find(pieces(), rails, side({~RailBits{0}, false}), side(all));
  ASSERT_TRUE(parted);
  EXPECT_TRUE(parted->parted()) << "one past the 64th does not reach it";
  EXPECT_EQ(parted->bit_of(63), RailBits{1} << 63);
  EXPECT_EQ(parted->bit_of(64), 0U);
  EXPECT_FALSE(Reach::find(pieces(), rails, side({0, false}), side(all)));
}

TEST(Reach, AgreesWithTheModelOnGeneratedLists) {
  constexpr std::uint64_t extents = 4, rails = 3;
  int parted = 0, failed = 0;
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto pick = [&](std::uint64_t below) { return random() % below; };
    const auto masks = [&] {
      std::vector<RailBits> made(extents);
      for (RailBits& mask : made) mask = pick(3) == 0 ? pick(8) : 7;
      return made;
    };
    const std::vector<RailBits> ours = masks(), theirs = masks();
    const std::uint64_t local = std::uint64_t{4} << pick(3), remote = std::uint64_t{4} << pick(3);
    std::vector<Pair> pairs;
    for (std::uint64_t i = 0, count = pick(5); i < count; ++i) {
      Pair pair{pick(extents * local), pick(extents * remote), 0};
      pair.length =
          std::min({pick(12), extents * local - pair.local, extents * remote - pair.remote});
      pairs.push_back(pair);
    }
    std::set<RailBits> parts;
    bool all = true;
    for (const Pair& pair : pairs)
      for (std::uint64_t byte = 0; byte < pair.length; ++byte) {
        const RailBits our = ours[(pair.local + byte) / local],
                       their = theirs[(pair.remote + byte) / remote];
        parts.insert(our & their);
        all = all && our == 7 && their == 7;
      }
    const auto reach = Reach::find(PieceList(pairs), {0, 1, 2}, make_extents(local, ours, rails),
                                   make_extents(remote, theirs, rails));
    ASSERT_EQ(reach.has_value(), !parts.contains(0));
    failed += reach ? 0 : 1;
    if (!reach) continue;
    ASSERT_EQ(reach->parted(), !all);
    ASSERT_EQ(reach->complete(), all);
    if (all) continue;
    ++parted;
    EXPECT_EQ(std::set<RailBits>(reach->parts().begin(), reach->parts().end()), parts);
    EXPECT_EQ(reach->parts().size(), parts.size());
    for (const Pair& pair : pairs)
      for (std::uint64_t byte = 0; byte < pair.length; ++byte)
        ASSERT_EQ(reach->rails_for(pair.local + byte, pair.remote + byte),
                  ours[(pair.local + byte) / local] & theirs[(pair.remote + byte) / remote]);
  }
  EXPECT_GT(parted, 300);
  EXPECT_GT(failed, 300);
}

/// Memory that rails reach in one extent.
TEST(Reach, BetweenSegmentsOfOneExtent) {
  const auto prepared = make_prepared(make_peer(2), scattered(3, 100), Direction::write, 2);
  const auto reach =
      find_reach(prepared->pieces, *prepared->path, *prepared->local, *prepared->remote);
  ASSERT_TRUE(reach);
  EXPECT_TRUE(reach->complete());
  EXPECT_FALSE(reach->parted());
}

}  // namespace
}  // namespace weft::core::test
