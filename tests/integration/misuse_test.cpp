// Calls that are wrong get an error, before anything is posted.
#include "engines.hpp"

namespace weft::test {
namespace {

class Misuse : public testing::TestWithParam<std::string> {
 protected:
  Couple pair = couple(config_for(GetParam()));
  Board board{pair, 1000, 2000};
  Result<Transfer> write(const Pair& piece) {
    return pair.a.write(board.local, board.there, {&piece, 1});
  }
};

TEST_P(Misuse, RangesOutside) {
  constexpr std::uint64_t huge = ~0ULL;
  for (const Pair piece : {Pair{1, 0, 1000}, Pair{1000, 0, 1}, Pair{0, 1500, 501}, Pair{0, 2000, 1},
                           Pair{huge, 0, 1}, Pair{0, huge, 1}, Pair{0, 0, huge},
                           Pair{huge, 0, huge}, Pair{10, huge - 5, 10}, Pair{1001, 0, 0}}) {
    SCOPED_TRACE(testing::Message() << piece.local << ' ' << piece.remote << ' ' << piece.length);
    EXPECT_TRUE(fails_with(write(piece), Code::invalid_argument));
  }
  const Pair mixed[] = {{0, 0, 10}, {995, 0, 10}};
  EXPECT_TRUE(fails_with(pair.a.read(board.local, board.there, mixed), Code::invalid_argument));
  board.expect_untouched();
  EXPECT_TRUE(
      succeeds(write({0, 1000, 1000}).and_then([](Transfer&& t) { return t.wait(soon()); })));
}

TEST_P(Misuse, FormsOutside) {
  const auto prepare = [&](const auto& form) {
    return pair.a.prepare(board.local, board.there, Direction::write, form);
  };
  EXPECT_TRUE(fails_with(prepare(Strided{{0, 0, 10}, 101, 10, 10}), Code::invalid_argument));
  EXPECT_TRUE(fails_with(prepare(Strided{{0, 0, 10}, 3, ~0ULL / 2, 10}), Code::invalid_argument));
  EXPECT_TRUE(succeeds(prepare(Strided{{0, 0, 10}, 100, 10, 10})));
  const std::uint32_t pages[] = {0, 1, 10}, fewer[] = {0, 1};
  EXPECT_TRUE(
      fails_with(prepare(Paged{100, 0, 100, 0, 100, pages, pages}), Code::invalid_argument));
  EXPECT_TRUE(
      fails_with(prepare(Paged{100, 0, 100, 0, 100, fewer, pages}), Code::invalid_argument));
  EXPECT_TRUE(succeeds(prepare(Paged{100, 0, 100, 0, 100, fewer, fewer})));
}

TEST_P(Misuse, Picks) {
  const Pair pieces[] = {{0, 0, 1}, {1, 1, 1}};
  const Prepared prepared =
      must(pair.a.prepare(board.local, board.there, Direction::write, pieces));
  const std::uint32_t bad[] = {0, 2};
  EXPECT_TRUE(fails_with(pair.a.submit(prepared, bad), Code::invalid_argument));
  board.expect_untouched();
}

TEST_P(Misuse, RangesOutsideTheGrant) {
  const Range granted[] = {{100, 100}, {300, 100}, {200, 50}};
  Grant grant = must(board.remote.grant(granted, Rights::write));
  const Remote there = must(pair.a.import(grant.blob()));
  ASSERT_EQ(there.ranges().size(), 2U);
  EXPECT_EQ(there.ranges()[0].length, 150U);
  EXPECT_EQ(there.segment_size(), 2000U);
  const auto write = [&](Pair piece) { return pair.a.write(board.local, there, {&piece, 1}); };
  for (const Pair piece : {Pair{0, 99, 1}, Pair{0, 99, 10}, Pair{0, 249, 2}, Pair{0, 260, 10},
                           Pair{0, 200, 150}, Pair{0, 399, 2}, Pair{0, 0, 1000}})
    EXPECT_TRUE(fails_with(write(piece), Code::invalid_argument)) << piece.remote;
  const Pair good[] = {{0, 100, 150}, {500, 300, 100}};
  ASSERT_TRUE(succeeds(must(pair.a.write(board.local, there, good)).wait(soon())));
  board.expect_pieces(Direction::write, good);
}

TEST_P(Misuse, Rights) {
  Grant readable = must(board.remote.grant({}, Rights::read));
  Grant writable = must(board.remote.grant({}, Rights::write));
  const Remote source = must(pair.a.import(readable.blob()));
  const Remote target = must(pair.a.import(writable.blob()));
  const Pair piece[] = {{0, 0, 1000}};
  EXPECT_TRUE(fails_with(pair.a.write(board.local, source, piece), Code::permission_denied));
  EXPECT_TRUE(fails_with(pair.a.read(board.local, target, piece), Code::permission_denied));
  EXPECT_TRUE(succeeds(must(pair.a.write(board.local, target, piece)).wait(soon())));
  board.expect_pieces(Direction::write, piece);
  EXPECT_TRUE(succeeds(must(pair.a.read(board.local, source, piece)).wait(soon())));
  board.expect_pieces(Direction::read, piece);
  EXPECT_TRUE(
      fails_with(board.remote.grant({}, static_cast<enum Rights>(0)), Code::invalid_argument));
  const Range beyond[] = {{1999, 2}}, empty[] = {{5, 0}};
  EXPECT_TRUE(fails_with(board.remote.grant(beyond, Rights::read), Code::invalid_argument));
  EXPECT_TRUE(fails_with(board.remote.grant(empty, Rights::read), Code::invalid_argument));
}

TEST_P(Misuse, SegmentsOfAnotherEngine) {
  const Pair piece[] = {{0, 0, 10}};
  EXPECT_TRUE(fails_with(pair.a.write(board.remote, board.there, piece), Code::invalid_argument));
  // A remote of one engine, used by another.
  EXPECT_TRUE(fails_with(pair.b.write(board.remote, board.there, piece), Code::invalid_argument));
  const Prepared prepared = must(pair.a.prepare(board.local, board.there, Direction::write, piece));
  EXPECT_TRUE(fails_with(pair.b.submit(prepared), Code::invalid_argument));
  EXPECT_FALSE(pair.b.publish("x", must(board.local.grant({}, Rights::read))));
  board.expect_untouched();
}

TEST_P(Misuse, HandlesThatWereMovedFrom) {
  const Pair piece[] = {{0, 0, 10}};
  Segment segment = must(pair.a.add(Memory::own(10)));
  Segment moved_segment = std::move(segment);
  EXPECT_TRUE(fails_with(segment.grant({}, Rights::read), Code::closed));
  EXPECT_TRUE(fails_with(segment.release(soon()), Code::closed));
  EXPECT_TRUE(fails_with(pair.a.write(segment, board.there, piece), Code::closed));

  Grant grant = must(board.remote.grant({}, Rights::read));
  Grant moved_grant = std::move(grant);
  EXPECT_TRUE(fails_with(grant.revoke(soon()), Code::closed));
  EXPECT_TRUE(fails_with(pair.b.publish("x", grant), Code::closed));

  Remote remote = must(pair.a.import(moved_grant.blob()));
  Remote moved_remote = std::move(remote);
  EXPECT_TRUE(succeeds(must(pair.a.read(board.local, remote, piece)).wait(soon())));  // a copy

  Prepared prepared = must(pair.a.prepare(board.local, moved_remote, Direction::read, piece));
  Prepared moved_prepared = std::move(prepared);
  EXPECT_TRUE(succeeds(must(pair.a.submit(prepared)).wait(soon())));  // a copy

  Transfer transfer = must(pair.a.submit(moved_prepared));
  Transfer moved_transfer = std::move(transfer);
  EXPECT_TRUE(fails_with(transfer.wait(soon()), Code::closed));
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::closed));
  EXPECT_TRUE(succeeds(moved_transfer.wait(soon())));

  Expectation expectation = must(pair.to_a.expect(1, 1));
  Expectation moved_expectation = std::move(expectation);
  EXPECT_TRUE(fails_with(expectation.wait(soon()), Code::closed));
  Receive receive = must(pair.to_a.receive(1, 1));
  Receive moved_receive = std::move(receive);
  EXPECT_TRUE(fails_with(receive.wait(soon()), Code::closed));

  Peer peer = pair.to_b;
  Peer moved_peer = std::move(peer);
  EXPECT_TRUE(peer.up());  // a copy
  EXPECT_TRUE(succeeds(peer.signal({1}, soon())));
  EXPECT_TRUE(pair.to_b.up());
}

TEST_P(Misuse, AnEngineThatWasMovedFrom) {
  Engine engine = must(Engine::open(config_for(GetParam(), 1)));
  Engine moved = std::move(engine);
  EXPECT_TRUE(fails_with(engine.connect(pair.b.address(), soon()), Code::closed));
  EXPECT_TRUE(fails_with(engine.accept(soon()), Code::closed));
  EXPECT_TRUE(fails_with(engine.add(Memory::own(1)), Code::closed));
  EXPECT_TRUE(fails_with(engine.import({}), Code::closed));
  EXPECT_TRUE(fails_with(engine.progress(), Code::closed));
  EXPECT_TRUE(fails_with(engine.close(soon()), Code::closed));
  EXPECT_TRUE(succeeds(moved.connect(pair.b.address(), soon())));
}

TEST_P(Misuse, ImportOfGarbage) {
  EXPECT_FALSE(pair.a.import({}));
  const Blob good = board.grant.blob();
  for (std::size_t length = 0; length < good.size(); length += 3)
    EXPECT_FALSE(pair.a.import(Bytes(good).first(length))) << length;
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    EXPECT_FALSE(pair.a.import(pattern(good.size(), seed)));
  // Single bits: refused, or harmless. Never a crash, and never a write elsewhere.
  for (std::size_t bit = 0; bit < good.size() * 8; bit += 5) {
    Blob bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    static_cast<void>(pair.a.import(bad));
  }
  board.expect_untouched();
  const Pair piece[] = {{0, 0, 1000}};
  board.expect_moved(Direction::write, piece);
}

TEST_P(Misuse, ImportOfWhatIsNotConnected) {
  Engine stranger = must(Engine::open(config_for(GetParam(), 1)));
  Segment segment = must(stranger.add(Memory::own(10)));
  Grant grant = must(segment.grant({}, Rights::read));
  EXPECT_TRUE(fails_with(pair.a.import(grant.blob()), Code::peer_down));
}

TEST_P(Misuse, Configurations) {
  const auto refused = [](auto&& change) {
    Config config;
    change(config);
    return fails_with(Engine::open(config), Code::invalid_argument);
  };
  EXPECT_TRUE(refused([](Config& c) { c.message_credits = 1; }));
  EXPECT_TRUE(refused([](Config& c) { c.max_message = 0; }));
  EXPECT_TRUE(refused([](Config& c) { c.max_message = (1 << 20) + 1; }));
  EXPECT_TRUE(refused([](Config& c) { c.bounce_buffers = 0; }));
  EXPECT_TRUE(refused([](Config& c) { c.rails = 1000; }));
  EXPECT_TRUE(refused([](Config& c) { c.name = std::string(256, 'x'); }));
  EXPECT_TRUE(refused([](Config& c) { c.default_timeout = 0ns; }));
  EXPECT_TRUE(refused([](Config& c) { c.death_after = c.heartbeat; }));
  EXPECT_TRUE(refused([](Config& c) { c.listen = "0.0.0.0:0"; }));
  Config unknown;
  unknown.providers = {"carrier pigeon"};
  EXPECT_FALSE(Engine::open(unknown));
}

INSTANTIATE_TEST_SUITE_P(All, Misuse, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
