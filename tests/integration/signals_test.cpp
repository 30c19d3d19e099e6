// Signals: early, late, counted, with bytes, with data, and those that never come.
#include <algorithm>
#include <numeric>
#include <random>

#include "engines.hpp"
#include "gate.hpp"
#include "process.hpp"
#include "small_packets.hpp"

namespace weft::test {
namespace {

constexpr auto at_once = 100ms;

class SignalsOver : public testing::TestWithParam<Variant> {
 protected:
  Config config = config_for(GetParam());
};

/// An event of an expectation that was not done yet sent its reader away empty-handed.
TEST_P(SignalsOver, WhatAnEventTellsOfIsThere) {
  constexpr int count = 2000;
  Couple pair = couple(config);
  std::jthread sender([&] {
    for (int i = 0; i < count; ++i) must(pair.to_b.signal({7}, soon()));
  });
  const auto expect = [&] { return must(pair.to_a.expect(7, 1, {.event = true})); };
  Expectation next = expect();
  const Deadline deadline = soon();
  Event event;
  for (int i = 0; i < count && !deadline.passed();) {
    if (pair.b.poll({&event, 1}) == 0) continue;
    ASSERT_EQ(must(next.wait(Deadline::now())).count, 1U);
    next = expect();
    ++i;
  }
  EXPECT_FALSE(deadline.passed());
}

TEST_P(SignalsOver, BeforeAndAfterTheyAreExpected) {
  Couple pair = couple(config);
  must(pair.to_b.signal({7}, soon()));
  must(pair.to_b.send(1, {}, soon()));
  must(pair.to_a.recv(1, ~0ULL, soon()));  // so the signal is there
  Expectation late = must(pair.to_a.expect(7, 1));
  EXPECT_TRUE(late.ready());
  EXPECT_EQ(must(late.wait(soon())).count, 1U);

  Expectation early = must(pair.to_a.expect(7, 1));
  EXPECT_TRUE(fails_with(early.wait(Deadline::in(at_once)), Code::timed_out));
  EXPECT_FALSE(early.ready());
  must(pair.to_b.signal({7}, soon()));
  EXPECT_EQ(must(early.wait(soon())).count, 1U);
}

TEST_P(SignalsOver, AreCounted) {
  Couple pair = couple(config);
  Expectation three = must(pair.to_a.expect(1, 3));
  Expectation two = must(pair.to_a.expect(1, 2));
  for (int i = 0; i < 2; ++i) must(pair.to_b.signal({1}, soon()));
  must(pair.to_b.signal({2}, soon()));
  must(must(pair.to_a.expect(2, 1)).wait(soon()));
  EXPECT_FALSE(three.ready());
  must(pair.to_b.signal({1}, soon()));
  EXPECT_EQ(must(three.wait(soon())).count, 3U);
  const auto overdue = two.wait(Deadline::now());
  ASSERT_TRUE(fails_with(overdue, Code::timed_out));
  EXPECT_EQ(overdue.error().peer(), pair.to_a.name());
  for (int i = 0; i < 2; ++i) must(pair.to_b.signal({1}, soon()));
  EXPECT_EQ(must(two.wait(soon())).count, 2U);
  EXPECT_TRUE(fails_with(pair.to_a.expect(1, 0), Code::invalid_argument));
}

TEST_P(SignalsOver, CarryBytes) {
  Couple pair = couple(config);
  const std::size_t most = config.max_message;
  for (const std::size_t size : {std::size_t{1}, std::size_t{100}, most}) {
    const Blob bytes = pattern(size, size);
    must(pair.to_b.signal({5, bytes}, soon()));
  }
  must(pair.to_b.signal({5}, soon()));
  const Signals got = must(must(pair.to_a.expect(5, 4)).wait(soon()));
  EXPECT_EQ(got.count, 4U);
  ASSERT_EQ(got.payloads.size(), 3U);
  for (const Blob& payload : got.payloads) EXPECT_TRUE(holds(payload, payload.size()));
  const Blob over(most + 1);
  EXPECT_TRUE(fails_with(pair.to_b.signal({5, over}, soon()), Code::invalid_argument));
}

TEST_P(SignalsOver, InManyPacketsComeAfterTheDataToo) {
  config.max_message = 10'000;
  Couple pair = wrapped<SmallPackets>([&] { return couple(config); });
  constexpr std::size_t count = 20, slice = 50'001;
  Board board(pair, count * slice, count * slice);
  std::vector<Transfer> transfers;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Pair piece[] = {{i * slice, i * slice, slice}};
    const Blob note = pattern(500 * i, i);
    TransferOptions options;
    options.signal = Signal{i, note};
    transfers.push_back(must(pair.a.write(board.local, board.there, piece, options)));
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const Signals got = must(must(pair.to_a.expect(i, 1)).wait(soon()));
    ASSERT_TRUE(same_bytes(bytes_of(board.remote).subspan(i * slice, slice),
                           bytes_of(board.local).subspan(i * slice, slice)));
    ASSERT_EQ(got.payloads.size(), i > 0 ? 1U : 0U);
    if (i > 0) {
      EXPECT_TRUE(same_bytes(got.payloads[0], pattern(500 * i, i)));
    }
  }
  for (Transfer& transfer : transfers) EXPECT_TRUE(succeeds(transfer.wait(soon())));
}

TEST_P(SignalsOver, ComeAfterTheDataOfEveryTransfer) {
  Couple pair = couple(config);
  constexpr std::size_t count = 60, slice = 150'001;
  Board board(pair, count * slice, count * slice);
  std::vector<std::uint64_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  std::vector<Transfer> transfers;
  for (const std::uint64_t i : order) {
    const Pair piece[] = {{i * slice, i * slice, slice}};
    const Blob note = pattern(8, i);
    TransferOptions options;
    options.signal = Signal{i, note};
    transfers.push_back(must(pair.a.write(board.local, board.there, piece, options)));
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const Signals got = must(must(pair.to_a.expect(i, 1)).wait(soon()));
    // All of it is visible by now, whether or not the initiator knows.
    ASSERT_TRUE(same_bytes(bytes_of(board.remote).subspan(i * slice, slice),
                           bytes_of(board.local).subspan(i * slice, slice)));
    ASSERT_EQ(got.payloads.size(), 1U);
    EXPECT_TRUE(holds(got.payloads[0], i));
  }
  for (Transfer& transfer : transfers) EXPECT_TRUE(succeeds(transfer.wait(soon())));
}

TEST_P(SignalsOver, OfAReadTellThatTheBlocksAreFree) {
  Couple pair = couple(config);
  Board board(pair, 1 << 20, 1 << 20);
  const Pair piece[] = {{0, 0, 1 << 20}};
  const Blob note = pattern(300, 9);
  TransferOptions options;
  options.signal = Signal{3, note};
  Transfer transfer = must(pair.a.read(board.local, board.there, piece, options));
  const Signals got = must(must(pair.to_a.expect(3, 1)).wait(soon()));
  ASSERT_EQ(got.payloads.size(), 1U);
  EXPECT_TRUE(same_bytes(got.payloads[0], note));
  // The owner may now write over them: the reader has all it wanted.
  board.expect_pieces(Direction::read, piece);
  EXPECT_TRUE(succeeds(transfer.wait(soon())));
}

TEST_P(SignalsOver, WithAnEmptyTransfer) {
  Couple pair = couple(config);
  Board board(pair, 10, 10);
  TransferOptions options;
  options.signal = Signal{3};
  Transfer transfer = must(pair.a.write(board.local, board.there, {}, options));
  must(must(pair.to_a.expect(3, 1)).wait(soon()));
  EXPECT_TRUE(succeeds(transfer.wait(soon())));
}

TEST_P(SignalsOver, ThousandsInAnyOrder) {
  Couple pair = couple(config);
  constexpr std::uint64_t ids = 1000, each = 5;
  std::vector<std::uint64_t> sent;
  for (std::uint64_t i = 0; i < ids * each; ++i) sent.push_back(i % ids);
  std::shuffle(sent.begin(), sent.end(), std::mt19937(1));
  std::vector<std::uint64_t> order(ids);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937(2));
  std::vector<Expectation> expected;
  const auto expect_some = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i)
      expected.push_back(must(pair.to_a.expect(order[i], each)));
  };
  expect_some(0, ids / 2);
  std::jthread sender([&] {
    for (const std::uint64_t id : sent)
      if (!pair.to_b.signal({id}, soon())) return;
  });
  expect_some(ids / 2, ids);
  for (Expectation& each_one : expected) ASSERT_TRUE(succeeds(each_one.wait(soon())));
  // None was counted twice, none is left over.
  for (const std::uint64_t id : {0, 500, 999}) EXPECT_FALSE(must(pair.to_a.expect(id, 1)).ready());
}

TEST_P(SignalsOver, NumbersWrapAround) {
  core::EngineHooks hooks;
  hooks.first_sequence = 0xffff'fff0U;
  Couple pair = couple(config, config, hooks, hooks);
  constexpr std::uint64_t count = 10'000;
  const auto send = [](const Peer& peer) {
    for (std::uint64_t i = 0; i < count; ++i)
      if (!peer.signal({i % 7}, soon())) return;
  };
  std::jthread there([&] { send(pair.to_b); });
  std::jthread back([&] { send(pair.to_a); });
  for (std::uint64_t id = 0; id < 7; ++id) {
    const std::uint64_t wanted = count / 7 + (id < count % 7 ? 1 : 0);
    EXPECT_TRUE(succeeds(must(pair.to_a.expect(id, wanted)).wait(soon())));
    EXPECT_TRUE(succeeds(must(pair.to_b.expect(id, wanted)).wait(soon())));
  }
}

TEST_P(SignalsOver, OfATransferThatTimesOutNeverCome) {
  Gate gate;
  Couple pair = couple(config, config, gate.hooks());
  Board board(pair, 100'000, 100'000);
  const Pair piece[] = {{0, 0, 100'000}};
  for (const bool expected_before : {true, false}) {
    SCOPED_TRACE(expected_before);
    std::optional<Expectation> expectation;
    if (expected_before) expectation = must(pair.to_a.expect(9, 1));
    TransferOptions options;
    options.signal = Signal{9};
    options.deadline = Deadline::in(at_once);
    Transfer transfer = must(pair.a.write(board.local, board.there, piece, options));
    EXPECT_TRUE(fails_with(transfer.wait(soon()), Code::timed_out));
    EXPECT_EQ(transfer.state(), State::timed_out);
    if (!expected_before) expectation = must(pair.to_a.expect(9, 1));
    const auto got = expectation->wait(soon());
    ASSERT_TRUE(fails_with(got, Code::remote_failed));
    EXPECT_NE(got.error().message().find("timed_out"), std::string::npos)
        << got.error().to_string();
    EXPECT_EQ(got.error().peer(), pair.a.name());
  }
  gate.open();
  board.expect_untouched();
  board.expect_moved(Direction::write, piece);
}

TEST_P(SignalsOver, OfATransferThatIsCancelledNeverCome) {
  Gate gate;
  Couple pair = couple(config, config, gate.hooks());
  Board board(pair, 100'000, 100'000);
  const Pair piece[] = {{0, 0, 100'000}};
  Expectation expectation = must(pair.to_a.expect(9, 1));
  TransferOptions options;
  options.signal = Signal{9};
  Transfer transfer = must(pair.a.write(board.local, board.there, piece, options));
  transfer.cancel();
  gate.open();
  const auto ended = transfer.wait_quiescent(soon());
  const auto got = expectation.wait(soon());
  EXPECT_TRUE(fails_with(ended, Code::cancelled));
  EXPECT_TRUE(fails_with(got, Code::remote_failed));
  board.expect_untouched();
}

TEST_P(SignalsOver, AFailureEndsOneExpectationOnly) {
  Gate gate;
  Couple pair = couple(config, config, gate.hooks());
  Board board(pair, 100, 100);
  const Pair piece[] = {{0, 0, 100}};
  Expectation first = must(pair.to_a.expect(9, 1));
  Expectation second = must(pair.to_a.expect(9, 1));
  TransferOptions options;
  options.signal = Signal{9};
  options.deadline = Deadline::in(at_once);
  Transfer lost = must(pair.a.write(board.local, board.there, piece, options));
  EXPECT_TRUE(fails_with(first.wait(soon()), Code::remote_failed));
  EXPECT_FALSE(second.ready());
  gate.open();
  options.deadline = soon();
  Transfer good = must(pair.a.write(board.local, board.there, piece, options));
  EXPECT_TRUE(succeeds(second.wait(soon())));
  EXPECT_TRUE(succeeds(good.wait(soon())));
  EXPECT_TRUE(fails_with(lost.wait(soon()), Code::timed_out));
}

// Field fault: they filled the limit, and no signal of that peer's came any more.
TEST_P(SignalsOver, ThatComeTooLateDoNotHoldThePeerBack) {
  config.unclaimed_bytes = 64 << 10;
  Couple pair = couple(config);
  for (const Late late : {Late::keep, Late::drop}) {
    SCOPED_TRACE(static_cast<int>(late));
    for (std::uint64_t id = 0; id < 2000; ++id) {
      std::optional<Expectation> given_up = must(pair.to_a.expect(id, 1, {.late = late}));
      given_up.reset();
      must(pair.to_b.signal({id}, soon()));
    }
    const std::uint64_t fresh = std::uint64_t{1} << 30;
    Expectation expectation = must(pair.to_a.expect(fresh, 1));
    must(pair.to_b.signal({fresh}, soon()));
    ASSERT_TRUE(succeeds(expectation.wait(soon())));
  }
}

TEST_P(SignalsOver, ThatComeTooLateAreForTheNextWait) {
  Couple pair = couple(config);
  NotifyOptions options;
  options.deadline = Deadline::in(1ms);
  EXPECT_TRUE(fails_with(must(pair.to_a.expect(1, 1, options)).wait(soon()), Code::timed_out));
  must(pair.to_b.signal({1}, soon()));
  EXPECT_TRUE(succeeds(must(pair.to_a.expect(1, 1)).wait(soon())));
}

TEST_P(SignalsOver, ThatNobodyAsksForCanBeForgotten) {
  config.unclaimed_bytes = 64 << 10;
  config.send_queue = 16;
  Couple pair = couple(config);
  std::uint64_t sent = 0;
  while (pair.to_b.signal({100 + sent}, Deadline::in(500ms))) ASSERT_LT(++sent, 2000U);
  Expectation expectation = must(pair.to_a.expect(1, 1));
  const auto hindered = expectation.wait(Deadline::in(at_once));
  ASSERT_TRUE(fails_with(hindered, Code::timed_out));
  EXPECT_NE(hindered.error().message().find("forget"), std::string::npos)
      << hindered.error().to_string();
  NotifyOptions dated;
  dated.deadline = Deadline::now();
  const auto overdue = must(pair.to_a.receive(1, ~0ULL, dated)).wait(soon());
  ASSERT_TRUE(fails_with(overdue, Code::timed_out));
  EXPECT_NE(overdue.error().message().find("held back"), std::string::npos)
      << overdue.error().to_string();

  must(pair.to_a.forget(100, 10'000));
  must(pair.to_b.signal({1}, soon()));
  EXPECT_TRUE(succeeds(expectation.wait(soon())));
  for (std::uint64_t id = 100; id < 10'000; ++id) must(pair.to_b.signal({id}, soon()));
  must(pair.to_b.signal({2}, soon()));
  EXPECT_TRUE(succeeds(must(pair.to_a.expect(2, 1)).wait(soon())));

  // One that is expected again is no longer forgotten.
  Expectation again = must(pair.to_a.expect(5000, 1));
  EXPECT_FALSE(again.ready());
  must(pair.to_b.signal({5000}, soon()));
  EXPECT_TRUE(succeeds(again.wait(soon())));
  EXPECT_TRUE(fails_with(pair.to_a.forget(2, 1), Code::invalid_argument));
}

WEFT_ROLE(signaller) {
  Engine engine = must(Engine::open(config_for(arguments.at(0))));
  const Peer peer = must(engine.connect(arguments.at(1), soon()));
  must(peer.signal({1}, soon()));
  parent.hear(soon());
  return 0;
}

TEST_P(SignalsOver, OfAPeerThatDiesEndWithAnError) {
  Engine engine = must(Engine::open(config));
  Child child("signaller", {GetParam().provider, engine.address()});
  const Peer peer = must(engine.accept(soon()));
  EXPECT_TRUE(succeeds(must(peer.expect(1, 1)).wait(soon())));
  Expectation waiting = must(peer.expect(2, 1));
  EXPECT_FALSE(waiting.ready());
  child.kill();
  EXPECT_TRUE(fails_with(waiting.wait(soon()), Code::peer_down));
  EXPECT_FALSE(peer.up());
  EXPECT_TRUE(peer.why_down().has_value());
  auto later = peer.expect(2, 1).and_then([](Expectation&& e) { return e.wait(soon()); });
  EXPECT_TRUE(fails_with(later, Code::peer_down));
  EXPECT_TRUE(fails_with(peer.signal({1}, soon()), Code::peer_down));
}

TEST_P(SignalsOver, ThatArrivedBeforeThePeerWentStillCount) {
  auto pair = std::make_optional(couple(config));
  must(pair->to_a.signal({1}, soon()));
  must(pair->b.close(soon()));
  EXPECT_TRUE(succeeds(must(pair->to_b.expect(1, 1)).wait(soon())));
  EXPECT_TRUE(fails_with(must(pair->to_b.expect(1, 1)).wait(soon()), Code::peer_down));
}

INSTANTIATE_TEST_SUITE_P(All, SignalsOver, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
