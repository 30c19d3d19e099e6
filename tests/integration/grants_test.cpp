// Grants that are published, looked up, revoked; segments that are released.
#include "engines.hpp"
#include "gate.hpp"

namespace weft::test {
namespace {

class Grants : public testing::TestWithParam<Variant> {
 protected:
  Config config = config_for(GetParam());
  Gate gate;
};

TEST_P(Grants, AreLookedUpBeforeAndAfterTheyArePublished) {
  Couple pair = couple(config);
  Board board(pair, 1000, 1000);
  must(pair.b.publish("early", board.grant));
  EXPECT_EQ(must(pair.to_b.lookup("early", soon())).segment_size(), 1000U);

  std::atomic<bool> published{false};
  bool before = true;
  std::jthread asker([&] {
    const auto remote = pair.to_b.lookup("late", soon());
    before = !published;
    EXPECT_TRUE(succeeds(remote));
  });
  EXPECT_TRUE(fails_with(pair.to_b.lookup("never", Deadline::in(a_while)), Code::timed_out));
  published = true;
  must(pair.b.publish("late", board.grant));
  asker.join();
  EXPECT_FALSE(before);

  // A name published again means the newer one.
  const Range part[] = {{0, 10}};
  Grant other = must(board.remote.grant(part, Rights::read));
  must(pair.b.publish("early", other));
  EXPECT_EQ(must(pair.to_b.lookup("early", soon())).ranges()[0].length, 10U);
  EXPECT_TRUE(fails_with(pair.b.publish("", other), Code::invalid_argument));
  EXPECT_TRUE(fails_with(pair.b.publish(std::string(256, 'n'), other), Code::invalid_argument));
  EXPECT_TRUE(fails_with(pair.to_b.lookup("", soon()), Code::invalid_argument));
}

TEST_P(Grants, LookupEndsWhenThePeerGoes) {
  Couple pair = couple(config);
  std::jthread asker(
      [&] { EXPECT_TRUE(fails_with(pair.to_b.lookup("never", soon()), Code::peer_down)); });
  EXPECT_TRUE(fails_with(pair.to_b.lookup("other", Deadline::in(a_while)), Code::timed_out));
  must(pair.b.close(soon()));
}

TEST_P(Grants, RevokedOnesRefuseNewTransfers) {
  Couple pair = couple(config);
  Board board(pair, 1000, 1000);
  Grant other = must(board.remote.grant({}, Rights::read));
  const Remote still = must(pair.a.import(other.blob()));
  must(pair.b.publish("name", board.grant));
  EXPECT_EQ(must(board.grant.revoke(soon())), Revoked::quiescent);
  const Pair piece[] = {{0, 0, 1000}};
  EXPECT_TRUE(fails_with(pair.a.write(board.local, board.there, piece), Code::stale));
  EXPECT_TRUE(fails_with(pair.to_b.lookup("name", Deadline::in(a_while)), Code::timed_out));
  EXPECT_TRUE(fails_with(pair.b.publish("name", board.grant), Code::stale));
  board.expect_untouched();
  ASSERT_TRUE(succeeds(must(pair.a.read(board.local, still, piece)).wait(soon())));
  board.expect_pieces(Direction::read, piece);
}

TEST_P(Grants, CannotBeImportedAfterTheirEnd) {
  Couple pair = couple(config);
  Board board(pair, 100'000, 100'000);
  Grant grant = must(board.remote.grant({}, Rights::write));
  const Blob blob = grant.blob();
  EXPECT_EQ(must(grant.revoke(soon())), Revoked::quiescent);
  const Pair piece[] = {{0, 0, 100'000}};
  for (int round = 0; round < 2; ++round) EXPECT_TRUE(fails_with(pair.a.import(blob), Code::stale));
  board.expect_untouched();
  // Others are not harmed.
  board.expect_moved(Direction::write, piece);
  must(pair.to_b.signal({1}, soon()));
  EXPECT_TRUE(succeeds(must(pair.to_a.expect(1, 1)).wait(Deadline::in(5s))));
}

TEST_P(Grants, RevokedInTheMiddleOfTrafficAreQuiescent) {
  config.chunk_bytes = 16'384;
  config.bounce_buffer_bytes = 16'384;
  Couple pair = couple(config);
  constexpr std::size_t bytes = 4 << 20;
  Board board(pair, bytes, bytes);
  const Pair piece[] = {{0, 0, bytes}};
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::optional<Error> refusal;
  std::jthread writer([&] {
    while (!stop) {
      auto transfer = pair.a.write(board.local, board.there, piece);
      if (!transfer) {
        refusal = transfer.error();
        return;
      }
      const auto ended = transfer->wait(soon());
      if (!ended) {
        EXPECT_TRUE(fails_with(ended, Code::stale));
      }
      ++rounds;
    }
  });
  const Deadline deadline = soon();
  while (rounds < 2 && !deadline.passed()) std::this_thread::yield();
  EXPECT_EQ(must(board.grant.revoke(soon())), Revoked::quiescent);
  // From here on the memory is ours alone.
  fill(bytes_of(board.remote), 5);
  writer.join();
  stop = true;
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->code(), Code::stale);
  EXPECT_TRUE(holds(bytes_of(board.remote), 5));
}

TEST_P(Grants, ReleaseWhileInFlightNeverFreesUnderTheNic) {
  Couple pair = couple(config, config, gate.hooks());
  Board board(pair, 1000, 1000);
  const Pair piece[] = {{0, 0, 1000}};
  Transfer transfer = must(pair.a.write(board.local, board.there, piece));
  EXPECT_TRUE(fails_with(board.local.release(Deadline::in(a_while)), Code::quarantined));
  EXPECT_TRUE(fails_with(pair.a.write(board.local, board.there, piece), Code::closed));
  EXPECT_TRUE(fails_with(board.local.grant({}, Rights::read), Code::closed));
  gate.open();
  EXPECT_TRUE(succeeds(board.local.release(soon())));
  EXPECT_TRUE(succeeds(transfer.wait(Deadline::now())));
  board.expect_pieces(Direction::write, piece);
  EXPECT_TRUE(succeeds(board.local.release(soon()))) << "twice is once";
}

TEST_P(Grants, ReleaseEndsTheGrantsOfASegment) {
  Couple pair = couple(config);
  Board board(pair, 1000, 1000);
  EXPECT_TRUE(succeeds(board.remote.release(soon())));
  const Pair piece[] = {{0, 0, 1000}};
  EXPECT_TRUE(fails_with(pair.a.write(board.local, board.there, piece), Code::stale));
  board.expect_untouched();
}

TEST_P(Grants, MemoryStaysWhileATransferUsesIt) {
  Couple pair = couple(config, config, gate.hooks());
  constexpr std::size_t bytes = 300'000;
  Segment remote = must(pair.b.add(Memory::own(bytes)));
  const Remote there = must(pair.a.import(must(remote.grant({}, Rights::write)).blob()));
  const Pair piece[] = {{0, 0, bytes}};
  std::optional<Segment> local = must(pair.a.add(Memory::own(bytes)));
  fill(bytes_of(*local), 11);
  Transfer transfer = must(pair.a.write(*local, there, piece));
  local.reset();
  gate.open();
  ASSERT_TRUE(succeeds(transfer.wait(soon())));
  EXPECT_TRUE(holds(bytes_of(remote), 11));
}

TEST_P(Grants, OfAnEarlierIncarnationAreRefused) {
  config.name = "service";
  Config client = config_for(GetParam());
  Engine a = must(Engine::open(client));
  Engine first = must(Engine::open(config));
  Segment local = must(a.add(Memory::own(1000)));
  Segment segment = must(first.add(Memory::own(1000)));
  Grant grant = must(segment.grant({}, Rights::read_write));
  const Peer to_first = must(a.connect(first.address(), soon()));
  const Remote there = must(a.import(grant.blob()));

  // The same name again, while the first one is still there.
  Engine second = must(Engine::open(config));
  EXPECT_NE(second.info().incarnation, first.info().incarnation);
  const Peer to_second = must(a.connect(second.address(), soon()));
  EXPECT_NE(to_second.incarnation(), to_first.incarnation());
  EXPECT_TRUE(fails_with(must(to_first.expect(1, 1)).wait(soon()), Code::stale));
  EXPECT_FALSE(to_first.up());
  EXPECT_TRUE(to_second.up());
  const Pair piece[] = {{0, 0, 1000}};
  EXPECT_TRUE(fails_with(a.write(local, there, piece), Code::stale));
  EXPECT_TRUE(fails_with(a.import(grant.blob()), Code::stale));
  const Blob zeros(1000);
  EXPECT_TRUE(same_bytes(bytes_of(segment), zeros));
}

INSTANTIATE_TEST_SUITE_P(All, Grants, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
