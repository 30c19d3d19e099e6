// Different numbers of rails on the two sides, odd chunks and windows, IPv6.
#include <algorithm>
#include <set>

#include "engines.hpp"

namespace weft::test::rails_tests {
namespace {

struct Shape {
  unsigned ours, theirs;
};

struct Case {
  Variant variant;
  Shape shape;
};

class Rails : public testing::TestWithParam<Case> {};

TEST_P(Rails, EveryByteBothWays) {
  const auto& [variant, shape] = GetParam();
  Config ours = config_for(variant, shape.ours), theirs = config_for(variant, shape.theirs);
  // Neither divides the pieces below, nor each other.
  ours.chunk_bytes = 10'007;
  theirs.chunk_bytes = 7'919;
  ours.bounce_buffer_bytes = 9'001;
  ours.window = 3;
  Couple pair = couple(ours, theirs);
  EXPECT_EQ(pair.to_b.rails().size(), shape.ours);
  EXPECT_EQ(pair.to_a.rails().size(), shape.theirs);

  constexpr std::size_t large = 1'500'007;
  Board board(pair, large + 100, large + 100);
  const Pair pieces[] = {{1, 2, 600'000}, {700'000, 650'001, 800'000}, {600'001, 600'002, 1}};
  board.expect_moved(Direction::write, pieces);
  board.repaint();
  board.expect_moved(Direction::read, pieces);

  // And from the other end.
  board.repaint();
  board.expect_written_back({3, 5, large});
}

TEST_P(Rails, SeveralOfOursTakePart) {
  const auto& [variant, shape] = GetParam();
  Config config = config_for(variant, shape.ours);
  config.chunk_bytes = 16 * 1024;
  config.window = 1;
  Couple pair = couple(config, config_for(variant, shape.theirs));
  Board board(pair, 8 << 20, 8 << 20);
  const Pair piece[] = {{0, 0, 8 << 20}};
  // Rails pull: one whose thread gets no core in time finds nothing left, and on a loaded machine
  // that may go on for a while.
  const std::size_t wanted = shape.ours > 1 ? 2U : 1U;
  std::set<std::string> used;
  const Deadline deadline = soon();
  while (used.size() < wanted && !deadline.passed()) {
    Transfer transfer = must(pair.a.write(board.local, board.there, piece));
    ASSERT_TRUE(succeeds(transfer.wait(soon())));
    const auto rails = transfer.report().rails;
    ASSERT_LE(rails.size(), shape.ours);
    if (rails.size() >= wanted)
      for (const auto& share : rails) used.insert(share.rail);
  }
  board.expect_pieces(Direction::write, piece);
  EXPECT_GE(used.size(), wanted);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Variant& variant : all_variants())
    for (const Shape shape :
         {Shape{1, 1}, Shape{1, 4}, Shape{4, 1}, Shape{2, 5}, Shape{8, 3}, Shape{8, 8}})
      all.push_back({variant, shape});
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Rails, testing::ValuesIn(cases()), [](const auto& info) {
  return name_of(info.param.variant) + "_" + std::to_string(info.param.shape.ours) + "x" +
         std::to_string(info.param.shape.theirs);
});

class Chunks : public testing::TestWithParam<Variant> {};

TEST_P(Chunks, OfAnySizeAndWindow) {
  for (const std::uint64_t chunk : {1, 7, 4096, 65'537, 1 << 20})
    for (const std::size_t window : {1, 2, 33}) {
      SCOPED_TRACE(testing::Message() << chunk << " bytes, window " << window);
      Config config = config_for(GetParam());
      config.chunk_bytes = chunk;
      config.bounce_buffer_bytes = chunk;
      config.window = window;
      Couple pair = couple(config);
      const std::size_t bytes = std::min<std::size_t>(2000 * chunk + 3, 5 << 20);
      Board board(pair, bytes + 20, bytes + 20);
      const Pair pieces[] = {{0, 10, bytes / 3}, {bytes / 3 + 5, bytes / 2 + 1, bytes / 2}};
      board.expect_moved(Direction::write, pieces);
      board.repaint();
      board.expect_moved(Direction::read, pieces);
    }
}

TEST_P(Chunks, OneThreadForAllRails) {
  Config config = config_for(GetParam(), 5);
  config.threads = 1;
  config.spin = 0ns;
  Couple pair = couple(config);
  Board board(pair, 3'000'001, 3'000'001);
  const Pair piece[] = {{0, 0, 3'000'001}};
  board.expect_moved(Direction::write, piece);
}

INSTANTIATE_TEST_SUITE_P(All, Chunks, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

TEST(Addresses, Ipv6) {
  if (!has_ipv6()) GTEST_SKIP() << "no ::1 here";
  for (const Variant& variant : all_variants()) {
    SCOPED_TRACE(name_of(variant));
    Config config = config_for(variant);
    config.listen = "[::1]:0";
    Couple pair = couple(config);
    EXPECT_TRUE(pair.b.address().starts_with("[::1]:")) << pair.b.address();
    Board board(pair, 1 << 20, 1 << 20);
    const Pair piece[] = {{3, 0, 1'000'000}};
    board.expect_moved(Direction::write, piece);
    board.repaint();
    board.expect_moved(Direction::read, piece);
  }
}

TEST(Addresses, AnEngineThatOnlyConnects) {
  Config config = config_for("tcp");
  Config quiet = config;
  quiet.listen = "";
  Couple pair = couple(quiet, config);
  EXPECT_EQ(pair.a.address(), "");
  Board board(pair, 4096, 4096);
  const Pair piece[] = {{0, 0, 4096}};
  board.expect_moved(Direction::write, piece);
}

TEST(Choice, ShmOnOneHostByItselfAndTcpOtherwise) {
  Config all = config_for("tcp");
  all.providers = {};
  all.name = "all";  // the first by name chooses, and says why
  {
    Config other = all;
    other.name = "other";
    Couple pair = couple(all, other);
    EXPECT_TRUE(pair.to_b.same_host());
    for (const std::string& rail : pair.to_b.rails()) EXPECT_TRUE(rail.starts_with("shm")) << rail;
  }
  Config some = config_for("tcp");
  some.name = "some";
  Couple pair = couple(all, some);
  for (const std::string& rail : pair.to_b.rails()) EXPECT_TRUE(rail.starts_with("tcp")) << rail;
  EXPECT_NE(pair.to_b.route_reason().find("only one side has it"), std::string::npos)
      << pair.to_b.route_reason();
  Board board(pair, 100'000, 100'000);
  const Pair piece[] = {{0, 0, 100'000}};
  board.expect_moved(Direction::write, piece);
}

TEST(Choice, NothingInCommonIsAnError) {
  Engine a = must(Engine::open(config_for("tcp")));
  Engine b = must(Engine::open(config_for("shm")));
  EXPECT_TRUE(fails_with(a.connect(b.address(), soon()), Code::unavailable));
}

TEST(Choice, WaysThatLibfabricHasForOneProviderDoNotMix) {
  Engine usual = must(Engine::open(config_for("tcp")));
  auto other = Engine::open(config_for("tcp;ofi_rxm"));
  if (!other && other.error().code() == Code::unavailable) GTEST_SKIP() << other.error().message();
  EXPECT_TRUE(
      fails_with(usual.connect(must(std::move(other)).address(), soon()), Code::unavailable));
}

}  // namespace
}  // namespace weft::test::rails_tests
