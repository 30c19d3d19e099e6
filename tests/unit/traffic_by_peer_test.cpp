#include "metrics/traffic_by_peer.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace weft::core {
namespace {

constexpr auto write = static_cast<std::size_t>(Direction::write);
constexpr auto read = static_cast<std::size_t>(Direction::read);

TEST(PeerTraffic, AddsUpWhatItsRailsHaveCarried) {
  PeerTraffic traffic(2);
  traffic.add_own(0, Direction::write, 10);
  traffic.add_own(1, Direction::write, 5);
  traffic.add_own(1, Direction::read, 3);
  traffic.add_of_peer(Direction::read, 100);
  traffic.add_signal(7);
  traffic.add_signal(0);
  traffic.add_message(9);
  const PeerTraffic::Totals totals = traffic.read();
  EXPECT_EQ(totals.begun_here[write], 15U);
  EXPECT_EQ(totals.begun_here[read], 3U);
  EXPECT_EQ(totals.begun_there[write], 0U);
  EXPECT_EQ(totals.begun_there[read], 100U);
  EXPECT_EQ(totals.signals.count, 2U);
  EXPECT_EQ(totals.signals.bytes, 7U);
  EXPECT_EQ(totals.messages.count, 1U);
  EXPECT_EQ(totals.messages.bytes, 9U);
}

TEST(PeerTraffic, LosesNothingBetweenThreads) {
  constexpr std::uint64_t each = 10'000, threads = 4;
  PeerTraffic traffic(2);
  std::vector<std::jthread> adding;
  for (std::size_t i = 0; i < threads; ++i)
    adding.emplace_back([&traffic, i] {
      for (std::uint64_t n = 0; n < each; ++n) traffic.add_own(i % 2, Direction::read, 3);
    });
  adding.clear();
  EXPECT_EQ(traffic.read().begun_here[read], 3 * each * threads);
}

TEST(TrafficByPeer, GoesOnWhenAPeerComesBack) {
  TrafficByPeer all(1);
  all.of("decode")->add_own(0, Direction::write, 1);
  const auto first = all.of("decode"), second = all.of("decode");
  first->add_own(0, Direction::write, 2);
  second->add_own(0, Direction::write, 4);
  EXPECT_EQ(all.read().at("decode").begun_here[write], 7U);
}

TEST(TrafficByPeer, KeepsTheNamesOfThosePeersAloneThatAreUpOrWentLast) {
  TrafficByPeer all(1);
  const auto stays = all.of("stays");
  stays->add_signal(0);
  constexpr std::size_t count = 3 * TrafficByPeer::most_gone;
  for (std::size_t i = 0; i < count; ++i) all.of(std::to_string(i))->add_signal(0);
  const auto last = all.of("last");
  const auto totals = all.read();
  EXPECT_EQ(totals.size(), TrafficByPeer::most_gone + 3) << "two are up, and there are others";
  EXPECT_TRUE(totals.contains("stays"));
  EXPECT_TRUE(totals.contains(std::to_string(count - 1)));
  EXPECT_FALSE(totals.contains("0"));
  std::uint64_t signals = 0;
  for (const auto& [name, each] : totals) signals += each.signals.count;
  EXPECT_EQ(signals, count + 1) << "nothing is lost";
  EXPECT_EQ(totals.at(TrafficByPeer::others).signals.count, count - TrafficByPeer::most_gone);
}

TEST(TrafficByPeer, ANameMayBeAnything) {
  TrafficByPeer all(1);
  const auto odd = all.of("\xff\"\n"), others = all.of(TrafficByPeer::others);
  others->add_signal(0);
  for (std::size_t i = 0; i < 2 * TrafficByPeer::most_gone; ++i)
    all.of(std::to_string(i))->add_signal(0);
  const auto last = all.of("last");
  const auto totals = all.read();
  EXPECT_TRUE(totals.contains("\xef\xbf\xbd\"\n")) << "labels are UTF-8";
  EXPECT_EQ(totals.at(TrafficByPeer::others).signals.count, TrafficByPeer::most_gone + 1);
}

}  // namespace
}  // namespace weft::core
