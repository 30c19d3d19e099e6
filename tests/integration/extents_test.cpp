// Memory that NICs take in parts, and keys that grants share, over NICs that pin memory and have
// little room.
#include <algorithm>
#include <future>
#include <random>

#include "engines.hpp"
#include "full_nics.hpp"
#include "gate.hpp"
#include "process.hpp"

namespace weft::test::extents_tests {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::uint64_t pages_of_4_mib = 1024;

/// Engines whose NICs are FullNics with these limits, from here on.
void limit_nics(const NicLimits& limits) {
  nic_limits() = limits;
}

Engine open_limited(const Config& config, const core::EngineHooks& hooks = {}) {
  return must(wrapped<FullNic>([&] { return core::open_engine(config, hooks); }));
}

Couple limited_couple(const Config& config, const core::EngineHooks& hooks_a = {},
                      const core::EngineHooks& hooks_b = {}) {
  return wrapped<FullNic>([&] { return couple(config, config, hooks_a, hooks_b); });
}

class SegmentsInExtents : public testing::TestWithParam<std::string> {
 protected:
  ~SegmentsInExtents() override { limit_nics({}); }
  Config config = config_for(Variant{GetParam(), TransportKind::one_sided});
};

TEST_P(SegmentsInExtents, GrantsShareWhatIsRegistered) {
  limit_nics({});
  Couple pair = limited_couple(config);
  Board board(pair, 8 * mib, 8 * mib);
  const std::uint64_t before = FullNic::made();
  std::vector<Grant> grants;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const Range part[] = {{i * 8192, 4096}, {4 * mib + i * 8192, 4096}};
    grants.push_back(must(board.remote.grant(part, Rights::read_write)));
  }
  EXPECT_EQ(FullNic::made(), before);
  const Remote there = must(pair.a.import(grants.back().blob()));
  const Pair piece[] = {{0, 99 * 8192, 4096}, {4096, 4 * mib + 99 * 8192, 4096}};
  board.repaint();
  must(must(pair.a.write(board.local, there, piece)).wait(soon()));
  board.expect_pieces(Direction::write, piece);
  for (Grant& grant : grants) EXPECT_EQ(must(grant.revoke(soon())), Revoked::quiescent);
  const Pair all[] = {{0, 0, 8 * mib}};
  board.expect_moved(Direction::read, all);
  // Other rights have registrations of their own, and so has a grant that asks for them.
  const std::size_t rails = pair.b.info().rails.size();
  must(board.remote.grant({}, Rights::read));
  must(board.remote.grant({}, Rights::read));
  EXPECT_EQ(FullNic::made(), before + rails);
  must(board.remote.grant({}, Rights::read, unlimited, Keys::own));
  EXPECT_EQ(FullNic::made(), before + 2 * rails);
  must(board.remote.release(soon()));
}

/// All of it, a part on every seam, and thousands of pieces anywhere.
void expect_all_moves(Board& board, std::uint64_t bytes, std::uint64_t extent) {
  const Pair all[] = {{0, 0, bytes}};
  board.expect_moved(Direction::write, all);
  board.expect_moved(Direction::read, all);
  std::vector<Pair> seams;
  for (std::uint64_t seam = extent; seam + 4000 < bytes; seam += extent)
    seams.push_back({seam - 5000, seam - 1000, 3000 + seam / extent % 1000});
  board.expect_moved(Direction::write, seams);
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> places(bytes / 20'000);
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = 20'000 * i;
  std::vector<Pair> pieces;
  std::vector<std::uint64_t> targets = places;
  std::shuffle(places.begin(), places.end(), random);
  std::shuffle(targets.begin(), targets.end(), random);
  for (std::size_t i = 0; i < places.size(); ++i)
    pieces.push_back({places[i], targets[i], 1 + random() % 20'000});
  board.expect_moved(Direction::write, pieces);
  board.expect_moved(Direction::read, pieces);
}

TEST_P(SegmentsInExtents, AreRegisteredInPartsThatTheNicTakes) {
  limit_nics({.most_at_once = 4 * mib, .pages = pages_of_4_mib});
  Couple pair = limited_couple(config);
  constexpr std::uint64_t bytes = 17 * mib + 12345;
  Board board(pair, bytes, bytes);
  expect_all_moves(board, bytes, 4 * mib);
}

TEST_P(SegmentsInExtents, AreCutSmallerWhereTheNicDoesNotSayWhatItTakes) {
  limit_nics({.most_at_once = 16 * mib});
  Couple pair = limited_couple(config);
  constexpr std::uint64_t bytes = 40 * mib;
  Board board(pair, bytes, bytes);
  expect_all_moves(board, bytes, 16 * mib);
}

TEST_P(SegmentsInExtents, NicsShareWhatIsTooMuchForOne) {
  limit_nics({.pages = pages_of_4_mib, .room = 24 * mib});
  Couple pair = limited_couple(config);
  if (pair.b.info().rails.size() < 2) GTEST_SKIP() << "one rail alone";
  constexpr std::uint64_t bytes = 40 * mib;
  Board board(pair, bytes, bytes);
  expect_all_moves(board, bytes, 4 * mib);
}

TEST_P(SegmentsInExtents, AGrantOfWhatNoNicHasRoomForIsRefusedAndLosesNothing) {
  config = config_for(Variant{GetParam(), TransportKind::one_sided}, 1);
  limit_nics({.pages = pages_of_4_mib, .room = 20 * mib});
  Couple pair = limited_couple(config);
  Board board(pair, 4 * mib, 4 * mib);
  Segment large = must(pair.b.add(Memory::own(40 * mib)));
  EXPECT_TRUE(fails_with(large.grant({}, Rights::write), Code::out_of_memory));
  const Pair all[] = {{0, 0, 4 * mib}};
  board.expect_moved(Direction::write, all);
  // There is room again once another segment has gone.
  must(large.release(soon()));
  Segment small = must(pair.b.add(Memory::own(12 * mib)));
  EXPECT_TRUE(succeeds(small.grant({}, Rights::write)));
}

constexpr std::uint64_t shared_bytes = 8 * mib;

/// Imports what the engine at an address has published, and waits to be killed.
WEFT_ROLE(holder) {
  Engine engine = must(Engine::open(config_for(arguments.at(0))));
  const Peer owner = must(engine.connect(arguments.at(1), soon()));
  const Remote there = must(owner.lookup("board", soon()));
  parent.say("holds");
  parent.hear(Deadline::in(300s));
  return 0;
}

class SharedKeys : public SegmentsInExtents {
 protected:
  static constexpr Pair all[] = {{0, 0, shared_bytes}};
};

TEST_P(SharedKeys, AreReplacedWhereAHolderIsGoneAndTheOthersGoOn) {
  limit_nics({});
  Couple pair = limited_couple(config);
  if (!keys_fence(pair.b)) GTEST_SKIP() << "closing keys proves nothing here";
  Board board(pair, shared_bytes, shared_bytes);
  const Prepared prepared = must(pair.a.prepare(board.local, board.there, Direction::write, all));
  must(must(pair.a.submit(prepared)).wait(soon()));
  Grant lost = must(board.remote.grant({}, Rights::read_write));
  must(pair.b.publish("board", lost));
  Child holder("holder", {GetParam(), pair.b.address()});
  EXPECT_EQ(holder.hear(), "holds");
  const std::uint64_t before = FullNic::made();
  const Blob blob = board.grant.blob();
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> moved{0};
  auto writer = std::async(std::launch::async, [&] {
    while (!over) {
      must(must(pair.a.submit(prepared)).wait(soon()));
      ++moved;
    }
  });
  holder.kill();
  EXPECT_EQ(must(lost.revoke(soon())), Revoked::quiescent);
  EXPECT_EQ(FullNic::made(), before + pair.b.info().rails.size()) << "the keys were replaced";
  const std::uint64_t then = moved;
  EXPECT_TRUE(comes_to_be([&] { return moved >= then + 3; }));
  over = true;
  EXPECT_NO_THROW(writer.get()) << "no transfer of the other holder's was lost";
  board.expect_moved(Direction::write, all);
  // Neither does one that comes later with what was handed out before.
  const Remote again = must(pair.a.import(blob));
  board.repaint();
  must(must(pair.a.write(board.local, again, all)).wait(soon()));
  board.expect_pieces(Direction::write, all);
}

TEST_P(SharedKeys, AreReplacedThoughOthersGoMeanwhile) {
  limit_nics({});
  Couple pair = limited_couple(config);
  if (!keys_fence(pair.b)) GTEST_SKIP() << "closing keys proves nothing here";
  Board board(pair, shared_bytes, shared_bytes);
  std::vector<Grant> grants;
  std::vector<std::unique_ptr<Child>> holders;
  for (int i = 0; i < 4; ++i) {
    grants.push_back(must(board.remote.grant({}, Rights::read_write)));
    must(pair.b.publish("board", grants.back()));
    holders.push_back(
        std::make_unique<Child>("holder", std::vector<std::string>{GetParam(), pair.b.address()}));
    EXPECT_EQ(holders.back()->hear(), "holds");
  }
  auto killer = std::async(std::launch::async, [&] {
    for (auto& holder : holders) holder->kill();
  });
  for (Grant& grant : grants) EXPECT_EQ(must(grant.revoke(soon())), Revoked::quiescent);
  killer.get();
  board.expect_moved(Direction::write, all);
}

/// An owner that grants its board to two engines, of which one is to be fenced. The other, with a
/// segment of 2s, posts only while its gate is open.
struct Fencing {
  explicit Fencing(const Config& config, const core::EngineHooks& hooks_of_owner = {})
      : owner(open_limited(config, hooks_of_owner)),
        fenced(open_limited(config)),
        bystander(open_limited(config, gate.hooks())),
        board(must(owner.add(Memory::own(shared_bytes)))),
        to_fenced(must(board.grant({}, Rights::write))),
        to_bystander(must(board.grant({}, Rights::write))),
        good(must(bystander.add(Memory::own(shared_bytes)))) {
    acquaint(fenced, owner);
    acquaint(bystander, owner);
    fill(bytes_of(good), 2);
  }
  Gate gate;
  Engine owner, fenced, bystander;
  Segment board;
  Grant to_fenced, to_bystander;
  Segment good;
};

TEST_P(SharedKeys, KeepOutWhomAGrantWasFencedFromAndTheOthersGoOn) {
  limit_nics({});
  // Whoever is fenced never hears that its grant has ended.
  Fencing scene(config, losing<core::RevokeRequest>());
  auto& [gate, owner, fenced, bystander, board, to_fenced, to_bystander, good] = scene;
  if (!keys_fence(owner)) GTEST_SKIP() << "closing keys proves nothing here";
  Segment bad = must(fenced.add(Memory::own(shared_bytes)));
  fill(bytes_of(bad), 1);
  const Remote of_fenced = must(fenced.import(to_fenced.blob()));
  const Remote of_bystander = must(bystander.import(to_bystander.blob()));
  gate.open();
  must(must(fenced.write(bad, of_fenced, all)).wait(soon()));
  must(must(bystander.write(good, of_bystander, all)).wait(soon()));
  gate.shut();
  Transfer under_way = must(bystander.write(good, of_bystander, all));
  auto fence = std::async(std::launch::async, [&] { return scene.to_fenced.fence(soon()); });
  EXPECT_EQ(fence.wait_for(a_while), std::future_status::timeout)
      << "what the bystander may have posted is waited for";
  gate.open();
  EXPECT_EQ(must(fence.get()), Revoked::quiescent);
  EXPECT_TRUE(succeeds(under_way.wait(soon())));
  ASSERT_TRUE(holds(bytes_of(board), 2));
  EXPECT_FALSE(must(fenced.write(bad, of_fenced, all)).wait(soon()));
  EXPECT_TRUE(holds(bytes_of(board), 2)) << "the old keys are closed";
  fill(bytes_of(good), 3);
  EXPECT_TRUE(succeeds(must(bystander.write(good, of_bystander, all)).wait(soon())));
  EXPECT_TRUE(holds(bytes_of(board), 3));
}

TEST_P(SharedKeys, AFenceDoesNotWaitForBystandersBeyondItsDeadline) {
  limit_nics({});
  Fencing scene(config);
  auto& [gate, owner, fenced, bystander, board, to_fenced, to_bystander, good] = scene;
  if (!keys_fence(owner)) GTEST_SKIP() << "closing keys proves nothing here";
  const Remote of_fenced = must(fenced.import(to_fenced.blob()));
  const Remote of_bystander = must(bystander.import(to_bystander.blob()));
  Transfer under_way = must(bystander.write(good, of_bystander, all));
  EXPECT_EQ(must(to_fenced.fence(Deadline::in(a_while))), Revoked::quiescent);
  gate.open();
  EXPECT_TRUE(succeeds(under_way.wait(soon()))) << "it had posted nothing with the old keys";
  EXPECT_TRUE(holds(bytes_of(board), 2));
}

INSTANTIATE_TEST_SUITE_P(All, SegmentsInExtents, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });
INSTANTIATE_TEST_SUITE_P(All, SharedKeys, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test::extents_tests
