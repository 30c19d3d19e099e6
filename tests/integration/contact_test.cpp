// Engine::warm: first contact before the first transfer.
#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "engines.hpp"
#include "folder.hpp"

namespace weft::test {
namespace {

class Contact : public testing::TestWithParam<std::string> {
 protected:
  std::vector<std::uint64_t> operations() {
    std::vector<std::uint64_t> each;
    for (const RailInfo& rail : pair.a.info().rails) each.push_back(rail.operations);
    return each;
  }

  static bool all_greater(const std::vector<std::uint64_t>& a,
                          const std::vector<std::uint64_t>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), std::greater<>());
  }

  Couple pair = couple(config_for(GetParam()));
};

TEST_P(Contact, EachRailAsksForAnAnswer) {
  Board board(pair, 65'536, 65'536);
  const auto before = operations();
  Transfer warm = must(pair.a.warm(board.local, board.there));
  ASSERT_TRUE(succeeds(warm.wait_quiescent(soon())));
  EXPECT_EQ(warm.state(), State::done);
  EXPECT_EQ(warm.report().bytes, 0U);
  // A rail counts at the end of its round.
  const Deadline counted = soon();
  while (!all_greater(operations(), before) && !counted.passed()) std::this_thread::yield();
  EXPECT_TRUE(all_greater(operations(), before));
  const Pair all[] = {{0, 0, 65'536}};
  for (const Direction direction : {Direction::write, Direction::read}) {
    board.repaint();
    board.expect_moved(direction, all);
  }
}

TEST_P(Contact, WhateverTheGrantAllows) {
  for (const Rights rights : {Rights::read, Rights::write}) {
    Board board(pair, 4096, 4096, rights);
    EXPECT_TRUE(succeeds(must(pair.a.warm(board.local, board.there)).wait(soon())));
  }
}

/// Only bounce buffers carry it.
TEST_P(Contact, WithAFile) {
  const Folder folder;
  const std::string path = folder.write("pages", std::string(8192, 'x'));
  const Segment mine = must(pair.a.add(Memory::own(4096)));
  Segment file = must(pair.b.add(Memory::file(path, 0, 0)));
  const Grant grant = must(file.grant({}, Rights::read));
  const Remote there = must(pair.a.import(grant.blob()));
  EXPECT_TRUE(succeeds(must(pair.a.warm(mine, there)).wait(soon())));
}

TEST_P(Contact, ItsSignalComesBehindTheAnswers) {
  Board board(pair, 4096, 4096);
  TransferOptions options;
  options.signal = Signal{7, {}};
  Transfer warm = must(pair.a.warm(board.local, board.there, options));
  EXPECT_TRUE(succeeds(must(pair.to_a.expect(7, 1)).wait(soon())));
  EXPECT_TRUE(succeeds(warm.wait(soon())));
}

TEST_P(Contact, ManyAtATimeBesideTransfers) {
  constexpr std::size_t bytes = 1 << 20;
  Board board(pair, bytes, bytes);
  const Pair all[] = {{0, 0, bytes}};
  std::vector<Transfer> under_way;
  for (int i = 0; i < 50; ++i) {
    under_way.push_back(must(pair.a.warm(board.local, board.there)));
    if (i % 10 == 0) under_way.push_back(must(pair.a.write(board.local, board.there, all)));
  }
  for (Transfer& each : under_way) EXPECT_TRUE(succeeds(each.wait(soon())));
  EXPECT_EQ(pair.a.info().transfers_active, 0U);
}

TEST_P(Contact, FailsWhereATransferWould) {
  Board board(pair, 4096, 4096), other(pair, 4096, 4096);
  ASSERT_EQ(must(board.grant.revoke(soon())), Revoked::quiescent);
  auto warm = pair.a.warm(board.local, board.there);
  if (warm)
    EXPECT_TRUE(fails_with(warm->wait(soon()), Code::stale));
  else
    EXPECT_EQ(warm.error().code(), Code::stale);
  must(pair.to_b.disconnect());
  EXPECT_FALSE(pair.a.warm(other.local, other.there));
}

TEST_P(Contact, EndsWithItsPeer) {
  Board board(pair, 4096, 4096);
  std::vector<Transfer> under_way;
  for (int i = 0; i < 20; ++i) under_way.push_back(must(pair.a.warm(board.local, board.there)));
  must(pair.b.close(soon()));
  for (Transfer& each : under_way) {
    const auto ended = each.wait(soon());
    EXPECT_NE(each.state(), State::active);
    EXPECT_TRUE(ended || ended.error().code() == Code::peer_down) << ended.error().to_string();
  }
}

TEST_P(Contact, UnderManualProgress) {
  Config config = config_for(GetParam());
  config.progress = Progress::manual;
  Couple manual = couple(config, config_for(GetParam()));
  Board board(manual, 4096, 4096);
  EXPECT_TRUE(succeeds(must(manual.a.warm(board.local, board.there)).wait(soon())));
}

INSTANTIATE_TEST_SUITE_P(Providers, Contact, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
