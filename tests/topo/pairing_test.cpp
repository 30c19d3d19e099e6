// Both sides pair their NICs alone, and must come to the same pairs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <weft/topology.hpp>

namespace weft {
namespace {

using Speeds = std::vector<double>;
using Pairs = std::vector<std::vector<NicShare>>;

/// What part of each own NIC's traffic goes to each of the peer's.
std::vector<std::vector<double>> parts(const Pairs& pairs, std::size_t peers) {
  std::vector<std::vector<double>> parts(pairs.size(), std::vector<double>(peers, 0));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    double all = 0;
    for (const NicShare& share : pairs[i]) all += static_cast<double>(share.weight);
    for (const NicShare& share : pairs[i])
      parts[i].at(share.nic) += static_cast<double>(share.weight) / all;
  }
  return parts;
}

/// Speeds as they count: what is not known is as slow as the slowest that is.
Speeds counted(const Speeds& own, const Speeds& peer) {
  double slowest = 0;
  for (const Speeds& side : {own, peer})
    for (const double gbps : side)
      if (gbps > 0 && (slowest <= 0 || gbps < slowest)) slowest = gbps;
  Speeds speeds = own;
  for (double& gbps : speeds)
    if (gbps <= 0) gbps = slowest > 0 ? slowest : 1;
  return speeds;
}

double sum(const Speeds& speeds) {
  return std::accumulate(speeds.begin(), speeds.end(), 0.0);
}

/// What must hold of any two sides.
void expect_fair(const Speeds& own, const Speeds& peer) {
  const Pairs ours = pair_nics(own, peer), theirs = pair_nics(peer, own);
  ASSERT_EQ(ours.size(), own.size());
  ASSERT_EQ(theirs.size(), peer.size());
  for (const Pairs& side : {ours, theirs})
    for (const auto& shares : side) {
      EXPECT_FALSE(shares.empty()) << "a NIC that talks to nobody";
      for (const NicShare& share : shares) EXPECT_GT(share.weight, 0U);
    }
  const auto a = parts(ours, peer.size()), b = parts(theirs, own.size());
  const Speeds fast_a = counted(own, peer), fast_b = counted(peer, own);
  for (std::size_t j = 0; j < peer.size(); ++j) {
    double received = 0;
    for (std::size_t i = 0; i < own.size(); ++i) {
      // In parts of all that a side sends, each pair carries the same both ways.
      const double there = fast_a[i] / sum(fast_a) * a[i][j],
                   back = fast_b[j] / sum(fast_b) * b[j][i];
      EXPECT_NEAR(there, back, 1e-3) << i << " and " << j;
      EXPECT_EQ(a[i][j] > 0, b[j][i] > 0) << i << " and " << j;
      received += there;
    }
    EXPECT_NEAR(received, fast_b[j] / sum(fast_b), 1e-3) << "NIC " << j << " of the peer";
  }
}

std::vector<std::size_t> peers_of(const std::vector<NicShare>& shares) {
  std::vector<std::size_t> peers;
  for (const NicShare& share : shares) peers.push_back(share.nic);
  return peers;
}

TEST(PairNics, EqualSidesAreRailAligned) {
  const Speeds eight(8, 400);
  const Pairs pairs = pair_nics(eight, eight);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    EXPECT_THAT(peers_of(pairs[i]), testing::ElementsAre(i));
}

TEST(PairNics, FourSlowOnesAgainstTwoFastOnes) {
  const Speeds slow(4, 100), fast(2, 200);
  expect_fair(slow, fast);
  const Pairs pairs = pair_nics(slow, fast);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_THAT(peers_of(pairs[i]), testing::ElementsAre(i / 2));
  EXPECT_THAT(peers_of(pair_nics(fast, slow)[1]), testing::ElementsAre(2, 3));
}

TEST(PairNics, ThreeAgainstTwo) {
  const Speeds three(3, 100), two(2, 100);
  expect_fair(three, two);
  const Pairs pairs = pair_nics(three, two);
  EXPECT_THAT(peers_of(pairs[0]), testing::ElementsAre(0));
  EXPECT_THAT(peers_of(pairs[1]), testing::ElementsAre(0, 1));
  EXPECT_EQ(pairs[1][0].weight, pairs[1][1].weight);
  EXPECT_THAT(peers_of(pairs[2]), testing::ElementsAre(1));
}

TEST(PairNics, OneAgainstMany) {
  const Speeds one(1, 100), many(32, 100);
  expect_fair(one, many);
  EXPECT_EQ(pair_nics(one, many)[0].size(), 32U);
}

TEST(PairNics, UnknownSpeedsAreTheSlowestKnown) {
  expect_fair({0, 200}, {100, 100});
  expect_fair({0, 0}, {0, 0, 0});
  const Speeds unknown = {0, 200}, known = {100, 200}, peer = {100, 100};
  const Pairs as_unknown = pair_nics(unknown, peer), as_known = pair_nics(known, peer);
  ASSERT_EQ(as_unknown.size(), as_known.size());
  for (std::size_t i = 0; i < as_known.size(); ++i)
    EXPECT_EQ(peers_of(as_unknown[i]), peers_of(as_known[i]));
}

TEST(PairNics, NothingPairsWithNothing) {
  const Speeds none, some(3, 100);
  EXPECT_TRUE(pair_nics(none, some).empty());
  EXPECT_TRUE(pair_nics(some, none).empty());
  EXPECT_TRUE(pair_nics(none, none).empty());
}

TEST(PairNics, StrangeSpeedsDoNoHarm) {
  for (const double strange : {-1.0, 1e300, 1e-300, std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()}) {
    SCOPED_TRACE(strange);
    const Speeds own = {100, strange}, peer = {strange, 200, 400};
    const Pairs pairs = pair_nics(own, peer);
    ASSERT_EQ(pairs.size(), 2U);
    for (const auto& shares : pairs) {
      EXPECT_FALSE(shares.empty());
      for (const NicShare& share : shares) EXPECT_LT(share.nic, 3U);
    }
  }
}

TEST(PairNics, AnySidesAreFair) {
  for (unsigned seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const auto side = [&] {
      const double speeds[] = {0, 10, 25, 40, 100, 200, 400, 800};
      Speeds made(1 + random() % 16);
      for (double& gbps : made) gbps = speeds[random() % std::size(speeds)];
      return made;
    };
    const Speeds own = side();
    expect_fair(own, side());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace weft
