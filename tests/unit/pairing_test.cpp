// Both sides compute which rail talks to which, and must agree without asking.
#include "peer/pairing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace weft::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

enum Kind : std::uint32_t { shm = 1, tcp = 2, efa = 3 };

Introduction engine(const std::string& name, const std::vector<Kind>& rails,
                    std::uint64_t incarnation = 1) {
  Introduction introduction;
  introduction.name = name;
  introduction.incarnation = incarnation;
  for (const Kind kind : rails)
    introduction.rails.push_back({kind == shm   ? "shm"
                                  : kind == tcp ? "tcp"
                                                : "efa",
                                  kind,
                                  kind * 10,
                                  kind == shm,
                                  {},
                                  0});
  return introduction;
}

Pairing pair_rails(const Introduction& own, const Introduction& peer, bool same_host,
                   const std::string& reason) {
  return core::pair_rails(own, peer, {.same_host = same_host, .reason = reason});
}

std::vector<Kind> times(Kind kind, std::size_t count) {
  return std::vector<Kind>(count, kind);
}

std::map<std::uint32_t, std::uint64_t> weights_of(const PairedRail& rail) {
  std::map<std::uint32_t, std::uint64_t> weights;
  for (const auto& [target, weight] : rail.targets) weights[target] += weight;
  return weights;
}

/// What must hold for two sides' pairings whatever their rails are.
void expect_consistent(const Pairing& a, const Pairing& b) {
  ASSERT_FALSE(a.rails.empty());
  ASSERT_FALSE(b.rails.empty());
  const auto check = [](const Pairing& own, const Pairing& peer) {
    std::set<std::uint32_t> used, reached;
    for (const PairedRail& rail : own.rails) {
      EXPECT_TRUE(used.insert(rail.own).second) << "a rail is listed once";
      EXPECT_FALSE(rail.targets.empty());
      EXPECT_EQ(weights_of(rail).size(), rail.targets.size()) << "a target is listed once";
      for (const PairedRail::Target& target : rail.targets) {
        reached.insert(target.rail);
        const auto back =
            std::find_if(peer.rails.begin(), peer.rails.end(),
                         [&](const PairedRail& each) { return each.own == target.rail; });
        ASSERT_NE(back, peer.rails.end());
        EXPECT_EQ(weights_of(*back)[rail.own], target.weight)
            << "both sides say the same of a pair";
      }
    }
    EXPECT_EQ(reached, std::set(own.theirs.begin(), own.theirs.end())) << "nobody idles";
    EXPECT_EQ(used, std::set(peer.theirs.begin(), peer.theirs.end()));
  };
  check(a, b);
  check(b, a);
  // Messages go between the first rails, so receives must be posted there on both sides.
  EXPECT_EQ(a.rails.front().targets.front().rail, b.rails.front().own);
  EXPECT_EQ(b.rails.front().targets.front().rail, a.rails.front().own);
}

TEST(Pairing, IsConsistentForAllCounts) {
  for (std::size_t ours = 1; ours <= 8; ++ours)
    for (std::size_t theirs = 1; theirs <= 8; ++theirs) {
      SCOPED_TRACE(testing::Message() << ours << " x " << theirs);
      const Introduction a = engine("a", times(tcp, ours)), b = engine("b", times(tcp, theirs));
      const Pairing from_a = pair_rails(a, b, false, "far"),
                    from_b = pair_rails(b, a, false, "far");
      expect_consistent(from_a, from_b);
      EXPECT_EQ(from_a.rails.size(), ours);
      EXPECT_EQ(from_b.rails.size(), theirs);
      std::map<std::uint32_t, std::uint64_t> load;
      for (const PairedRail& rail : from_a.rails)
        for (const auto& [target, weight] : rail.targets) load[target] += weight;
      for (const auto& [target, weight] : load)
        EXPECT_EQ(weight, load.begin()->second) << "rails of equal speed are loaded equally";
    }
}

TEST(Pairing, IsConsistentAmongOtherKindsInAnyOrder) {
  const Introduction a = engine("a", {tcp, shm, tcp, efa, shm, tcp});
  const Introduction b = engine("b", {shm, efa, tcp, tcp});
  for (const bool same_host : {false, true})
    expect_consistent(pair_rails(a, b, same_host, "far"), pair_rails(b, a, same_host, "far"));
}

TEST(Pairing, GoesBySpeed) {
  Introduction a = engine("a", times(efa, 4)), b = engine("b", times(efa, 2));
  for (RailAddress& rail : a.rails) rail.mbps = 100'000;
  for (RailAddress& rail : b.rails) rail.mbps = 200'000;
  b.rails.push_back(b.rails[0]);
  b.rails.back().mbps = 400'000;  // as fast as the two others together, and as all of a's
  const Pairing pairing = pair_rails(a, b, false, "far");
  expect_consistent(pairing, pair_rails(b, a, false, "far"));
  std::map<std::uint32_t, std::uint64_t> load;
  for (const PairedRail& rail : pairing.rails)
    for (const auto& [target, weight] : rail.targets) load[target] += weight;
  EXPECT_EQ(load[0], load[1]);
  EXPECT_EQ(load[2], load[0] + load[1]);
}

TEST(Pairing, SomeRailsOfBothSidesAreSpreadOverEachOther) {
  const Introduction a = engine("a", times(efa, 8)), b = engine("b", times(efa, 8));
  const auto paired = spread(a, {0, 1}, b, {6, 7});
  ASSERT_EQ(paired.size(), 2U);
  EXPECT_EQ(paired[0].own, 0U);
  ASSERT_EQ(paired[0].targets.size(), 1U);
  EXPECT_EQ(paired[0].targets[0].rail, 6U);
  EXPECT_EQ(paired[1].targets[0].rail, 7U);
}

TEST(Pairing, SameHostRailsNeedProof) {
  const Introduction a = engine("a", {shm, tcp}), b = engine("b", {shm, tcp});
  const Pairing near = pair_rails(a, b, true, "");
  ASSERT_EQ(near.rails.size(), 1U);
  EXPECT_EQ(near.rails[0].own, 0U);
  EXPECT_THAT(near.reason, HasSubstr("shm with 1 of our rails"));
  const Pairing far = pair_rails(a, b, false, "the proof failed");
  ASSERT_EQ(far.rails.size(), 1U);
  EXPECT_EQ(far.rails[0].own, 1U);
  EXPECT_THAT(far.reason, HasSubstr("tcp with"));
  EXPECT_THAT(far.reason, HasSubstr("not shm: the proof failed"));
}

// What one side can't use neither uses, and both say why.
TEST(Pairing, RailsThatAreOut) {
  Introduction a = engine("a", {shm, tcp, tcp, tcp}), b = engine("b", {shm, tcp, tcp});
  b.rails[0].why_out = "no slot is free";
  a.rails[2].why_out = "seen by the peer: no room for its address";
  const Pairing from_a = pair_rails(a, b, true, ""), from_b = pair_rails(b, a, true, "");
  expect_consistent(from_a, from_b);
  EXPECT_THAT(from_b.theirs, ElementsAre(1, 3));
  EXPECT_THAT(from_a.theirs, ElementsAre(1, 2));
  EXPECT_THAT(from_a.reason, HasSubstr("not shm: no slot is free"));
  for (const Pairing& each : {from_a, from_b}) {
    EXPECT_THAT(each.fallback, HasSubstr("shm: no slot is free"));
    EXPECT_THAT(each.fallback, HasSubstr("tcp: seen by the peer: no room for its address"));
    EXPECT_THAT(each.not_used, ElementsAre("shm: no slot is free"));
  }
  for (RailAddress& rail : b.rails) rail.why_out = "no slot is free";
  EXPECT_THAT(pair_rails(a, b, true, "").rails, IsEmpty());
  EXPECT_THAT(pair_rails(a, b, true, "").reason, HasSubstr("not tcp: no slot is free"));
}

TEST(Pairing, TheSmallerNamesPreferenceCounts) {
  const Introduction a = engine("a", {tcp, efa}), b = engine("b", {efa, tcp});
  EXPECT_THAT(pair_rails(a, b, false, "").reason, HasSubstr("tcp with"));
  EXPECT_THAT(pair_rails(b, a, false, "").reason, HasSubstr("tcp with"));
  expect_consistent(pair_rails(a, b, false, ""), pair_rails(b, a, false, ""));
  const Introduction z = engine("z", {tcp, efa});
  EXPECT_THAT(pair_rails(z, b, false, "").reason, HasSubstr("efa with"));
}

TEST(Pairing, OfEqualNamesTheSmallerIncarnationCounts) {
  const Introduction first = engine("a", {tcp, efa}, 1), second = engine("a", {efa, tcp}, 2);
  EXPECT_THAT(pair_rails(first, second, false, "").reason, HasSubstr("tcp with"));
  EXPECT_THAT(pair_rails(second, first, false, "").reason, HasSubstr("tcp with"));
}

TEST(Pairing, RailsOfAnotherLayoutAreNone) {
  const Introduction now = engine("a", {shm, tcp});
  Introduction before = engine("b", {shm, tcp});
  before.rails.front().address_format -= 1;
  for (const auto& pairing :
       {pair_rails(now, before, true, ""), pair_rails(before, now, true, "")}) {
    EXPECT_THAT(pairing.reason, HasSubstr("tcp with"));
    EXPECT_THAT(pairing.reason, HasSubstr("shm: the two sides have it in different formats"));
    EXPECT_THAT(pairing.not_used,
                ElementsAre(HasSubstr("shm: the two sides have it in different formats")));
    EXPECT_THAT(pairing.fallback, StartsWith("shm: the two sides have it in different formats"))
        << "it is much slower, and nobody meant to";
  }
  // Far away nobody misses it.
  EXPECT_EQ(pair_rails(now, before, false, "far").fallback, "");
}

TEST(Pairing, NothingSharedIsSaidWithTheReasons) {
  const Pairing none = pair_rails(engine("a", {shm, efa}), engine("b", {shm, tcp}), false, "far");
  EXPECT_TRUE(none.rails.empty());
  EXPECT_THAT(none.reason, HasSubstr("no kind of rail is shared"));
  EXPECT_THAT(none.reason, HasSubstr("shm: far"));
  EXPECT_THAT(none.reason, HasSubstr("efa: only one side has it"));
  EXPECT_TRUE(pair_rails(engine("a", {}), engine("b", {tcp}), false, "").rails.empty());
}

TEST(Pairing, WhatEitherPrefersIsPassedOverForAReason) {
  const Introduction both = engine("a", {shm, efa, efa, tcp}), less = engine("b", {shm, tcp});
  EXPECT_THAT(pair_rails(both, less, false, "far").not_used,
              ElementsAre("shm: far", "efa: the peer has none"));
  EXPECT_THAT(pair_rails(less, both, false, "far").not_used,
              ElementsAre("shm: far", "efa: this engine has none"));
  EXPECT_THAT(pair_rails(both, less, true, "").not_used, IsEmpty());
  const Introduction backward = engine("z", {efa, tcp}), forward = engine("a", {tcp, efa});
  EXPECT_THAT(pair_rails(backward, forward, false, "").not_used,
              ElementsAre("efa: the other engine prefers another"));
}

TEST(Pairing, ABetterWayThatOnlyOneHasIsMissed) {
  const Introduction both = engine("a", {shm, efa, efa, tcp}), less = engine("b", {shm, tcp});
  EXPECT_EQ(pair_rails(both, less, false, "far").fallback, "the peer has no efa");
  EXPECT_EQ(pair_rails(less, both, false, "far").fallback, "this engine has no efa");
  EXPECT_EQ(pair_rails(both, less, true, "").fallback, "") << "nothing is better than shm";
  EXPECT_EQ(pair_rails(both, both, false, "far").fallback, "");
  EXPECT_EQ(pair_rails(less, less, false, "far").fallback, "") << "nobody misses shm far away";
  // Whoever puts tcp first misses nothing.
  const Introduction modest = engine("c", {tcp, efa});
  EXPECT_EQ(pair_rails(modest, less, false, "far").fallback, "");
}

TEST(Pairing, OneHostWithoutSharedMemoryIsAFallback) {
  const Nearness unshared{.one_host = true, .reason = "set host_dir"};
  const Introduction a = engine("a", {shm, tcp}), b = engine("b", {shm, tcp}),
                     plain = engine("c", {tcp});
  EXPECT_EQ(core::pair_rails(a, b, unshared).fallback, "shm: set host_dir");
  EXPECT_EQ(core::pair_rails(b, a, unshared).fallback, "shm: set host_dir");
  EXPECT_EQ(core::pair_rails(a, plain, unshared).fallback, "") << "it would not use shm";
  EXPECT_EQ(core::pair_rails(plain, a, unshared).fallback, "");
  const Introduction last = engine("d", {tcp, shm});
  EXPECT_EQ(core::pair_rails(last, last, unshared).fallback, "") << "tcp is preferred";
}

TEST(Pairing, TheRecordCountsAndNotTheName) {
  Introduction a = engine("a", {tcp, shm}), b = engine("b", {tcp, shm});
  const Pairing before = pair_rails(a, b, true, "");
  for (Introduction* each : {&a, &b})
    for (RailAddress& rail : each->rails) rail.provider = "x" + rail.provider;
  const Pairing after = pair_rails(a, b, true, "");
  EXPECT_EQ(before.rails[0].own, after.rails[0].own);
}

}  // namespace
}  // namespace weft::core
