// Tagged messages: matching, order, crowds, limits.
#include <algorithm>

#include "engines.hpp"
#include "process.hpp"
#include "small_packets.hpp"

namespace weft::test {
namespace {

constexpr std::uint64_t exactly = ~0ULL;

class Messages : public testing::TestWithParam<std::string> {
 protected:
  Config config = config_for(GetParam());
};

// Some NICs take 8 KiB at a time.
TEST_P(Messages, OfEverySize) {
  constexpr std::size_t most = 100'000;
  config.max_message = most;
  Couple pair = couple(config);
  for (const std::size_t size : {std::size_t{0}, 1UL, 7UL, 64UL, 4095UL, 4096UL, 65'536UL, most}) {
    const Blob text = pattern(size, size);
    must(pair.to_b.send(size, text, soon()));
    const Message got = must(pair.to_a.recv(size, exactly, soon()));
    EXPECT_EQ(got.tag, size);
    EXPECT_EQ(got.peer, pair.a.name());
    EXPECT_TRUE(same_bytes(got.bytes, text));
  }
  const Blob over(most + 1);
  const auto refused = pair.to_b.send(1, over, soon());
  ASSERT_TRUE(fails_with(refused, Code::invalid_argument));
  EXPECT_NE(refused.error().message().find(std::to_string(over.size())), std::string::npos)
      << refused.error().to_string();
}

// Field fault: an engine did without a NIC whose packets were shorter than max_message.
TEST_P(Messages, ThatAreLongerThanAPacketCostNoRail) {
  config.max_message = 1 << 20;
  Couple pair = wrapped<SmallPackets>([&] { return couple(config); });
  EXPECT_EQ(pair.a.info().rails.size(), must(Engine::open(config)).info().rails.size());
  EXPECT_EQ(pair.a.info().fallback, "");
  for (const std::size_t size : {0UL, 900UL, 968UL, 969UL, 1000UL, 2000UL, 65'536UL, 1UL << 20}) {
    const Blob text = pattern(size, size);
    must(pair.to_b.send(size, text, soon()));
    must(pair.to_a.signal({size, text}, soon()));
    EXPECT_TRUE(same_bytes(must(pair.to_a.recv(size, exactly, soon())).bytes, text));
    const Signals got = must(must(pair.to_b.expect(size, 1)).wait(soon()));
    ASSERT_EQ(got.payloads.size(), size > 0 ? 1U : 0U);
    if (size > 0) {
      EXPECT_TRUE(same_bytes(got.payloads[0], text));
    }
  }
}

TEST_P(Messages, BetweenRailsWithPacketsOfDifferentSizes) {
  config.max_message = 20'000;
  Engine small = must(open_wrapped<SmallPackets>(config));
  Engine large = must(Engine::open(config));
  auto [to_large, to_small] = acquaint(small, large);
  for (const std::size_t size : {100UL, 5000UL, 20'000UL}) {
    must(to_large.send(size, pattern(size, 1), soon()));
    must(to_small.send(size, pattern(size, 2), soon()));
    EXPECT_TRUE(holds(must(to_small.recv(size, exactly, soon())).bytes, 1));
    EXPECT_TRUE(holds(must(to_large.recv(size, exactly, soon())).bytes, 2));
  }
}

// Long and short, both ways, beside data, with few credits.
TEST_P(Messages, InManyPacketsStayInOrder) {
  constexpr std::uint64_t count = 500;
  config.max_message = 10'000;
  config.message_credits = 2;
  Couple pair = wrapped<SmallPackets>([&] { return couple(config); });
  Board board(pair, 100'000, 100'000);
  const auto size_of = [](std::uint64_t i) { return i * 3571 % 10'001; };
  const auto send = [&](const Peer& peer) {
    for (std::uint64_t i = 0; i < count; ++i)
      if (!peer.send(i, pattern(size_of(i), i), soon())) return;
  };
  std::jthread there([&] { send(pair.to_b); });
  std::jthread back([&] { send(pair.to_a); });
  const Pair piece[] = {{0, 0, 100'000}};
  for (std::uint64_t i = 0; i < count; ++i) {
    const Message at_b = must(pair.to_a.recv(0, 0, soon()));
    const Message at_a = must(pair.to_b.recv(0, 0, soon()));
    ASSERT_EQ(at_b.tag, i);
    ASSERT_EQ(at_a.tag, i);
    ASSERT_TRUE(at_b.bytes.size() == size_of(i) && holds(at_b.bytes, i));
    ASSERT_TRUE(at_a.bytes.size() == size_of(i) && holds(at_a.bytes, i));
    if (i % 50 == 0) board.expect_moved(Direction::write, piece);
  }
}

TEST_P(Messages, TheSmallerLimitOfTheTwoCounts) {
  Config small = config;
  small.max_message = 100;
  Couple pair = couple(config, small);
  const Blob fits(100), over(101);
  EXPECT_TRUE(succeeds(pair.to_b.send(1, fits, soon())));
  EXPECT_TRUE(fails_with(pair.to_b.send(1, over, soon()), Code::invalid_argument));
  EXPECT_EQ(must(pair.to_a.recv(1, exactly, soon())).bytes.size(), 100U);
}

TEST_P(Messages, AreMatchedByTagAndMask) {
  Couple pair = couple(config);
  const auto send = [&](std::uint64_t tag, std::uint64_t seed) {
    must(pair.to_b.send(tag, pattern(16, seed), soon()));
  };
  const auto next = [&](std::uint64_t tag, std::uint64_t mask) {
    return must(pair.to_a.recv(tag, mask, soon())).tag;
  };
  for (const std::uint64_t tag : {0x101, 0x202, 0x102, 0x201, 0x101}) send(tag, tag);
  EXPECT_EQ(next(0x200, 0xf00), 0x202U);
  EXPECT_EQ(next(0x001, 0x00f), 0x101U);
  EXPECT_EQ(next(0x201, exactly), 0x201U);
  EXPECT_EQ(next(0, 0), 0x102U);
  EXPECT_EQ(next(0, 0), 0x101U);
  EXPECT_TRUE(fails_with(pair.to_a.recv(0, 0, Deadline::in(50ms)), Code::timed_out));

  // Those who wait are served in their order, each by the first that suits it.
  Receive odd = must(pair.to_a.receive(1, 1));
  Receive any = must(pair.to_a.receive(0, 0));
  send(4, 4);
  EXPECT_EQ(must(any.wait(soon())).tag, 4U);
  EXPECT_FALSE(odd.ready());
  send(5, 5);
  EXPECT_EQ(must(odd.wait(soon())).tag, 5U);

  // What is given up takes no message.
  std::optional<Receive> given_up = must(pair.to_a.receive(0, 0));
  given_up.reset();
  send(6, 6);
  EXPECT_EQ(next(0, 0), 6U);
}

TEST_P(Messages, TenThousandEachWayAtOnce) {
  constexpr std::uint64_t count = 10'000, tags = 5;
  Couple pair = couple(config);
  const auto size_of = [](std::uint64_t i) { return 8 + i * 37 % 900; };
  const auto send = [&](const Peer& peer, std::uint64_t salt) {
    for (std::uint64_t i = 0; i < count; ++i)
      if (!peer.send(i % tags, pattern(size_of(i), salt + i), soon())) return;
  };
  const auto receive = [&](const Peer& peer, std::uint64_t salt, int& wrong) {
    // The messages of each tag in their order, the tags in turn.
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto got = peer.recv(i % tags, exactly, soon());
      if (!got || got->bytes.size() != size_of(i) || !holds(got->bytes, salt + i)) {
        ++wrong;
        return;
      }
    }
  };
  int wrong_at_a = 0, wrong_at_b = 0;
  {
    std::vector<std::jthread> threads;
    threads.emplace_back([&] { send(pair.to_b, 1'000'000); });
    threads.emplace_back([&] { send(pair.to_a, 2'000'000); });
    threads.emplace_back([&] { receive(pair.to_b, 2'000'000, wrong_at_a); });
    threads.emplace_back([&] { receive(pair.to_a, 1'000'000, wrong_at_b); });
  }
  EXPECT_EQ(wrong_at_a, 0);
  EXPECT_EQ(wrong_at_b, 0);
}

TEST_P(Messages, FromManyThreadsStayInOrderPerThread) {
  constexpr std::uint64_t threads = 8, count = 500;
  config.message_credits = 2;
  config.send_queue = 3;
  Couple pair = couple(config);
  {
    std::vector<std::jthread> senders;
    for (std::uint64_t thread = 0; thread < threads; ++thread)
      senders.emplace_back([&, thread] {
        for (std::uint64_t i = 0; i < count; ++i)
          must(pair.to_b.send(thread, pattern(8, thread * count + i), soon()));
      });
    for (std::uint64_t i = 0; i < count; ++i)
      for (std::uint64_t thread = 0; thread < threads; ++thread)
        ASSERT_TRUE(holds(must(pair.to_a.recv(thread, exactly, soon())).bytes, thread * count + i));
  }
}

TEST_P(Messages, NobodyAsksForHoldTheSenderBackWithoutLoss) {
  constexpr std::size_t size = 1000, unclaimed = 100'000;
  config.unclaimed_bytes = unclaimed;
  config.send_queue = 16;
  Couple pair = couple(config);
  std::uint64_t sent = 0;
  const Deadline patience = soon();
  while (true) {
    const auto result = pair.to_b.send(sent, pattern(size, sent), Deadline::in(500ms));
    if (result) {
      ++sent;
      ASSERT_LT(sent * size, 10 * unclaimed) << "the sender is not held back";
      continue;
    }
    EXPECT_EQ(result.error().code(), Code::queue_full);
    // On a loaded machine 500 ms may pass before there is room.
    if (sent * size > unclaimed / 2 || patience.passed()) break;
  }
  EXPECT_GT(sent * size, unclaimed / 2);
  // Data and the other way are not held back.
  Board board(pair, 10'000, 10'000);
  const Pair piece[] = {{0, 0, 10'000}};
  board.expect_moved(Direction::write, piece);
  must(pair.to_a.send(1, {}, soon()));
  must(pair.to_b.recv(1, exactly, soon()));

  std::jthread more([&] {
    for (std::uint64_t i = sent; i < sent + 300; ++i)
      must(pair.to_b.send(i, pattern(size, i), soon()));
  });
  for (std::uint64_t i = 0; i < sent + 300; ++i) {
    const Message got = must(pair.to_a.recv(0, 0, soon()));
    ASSERT_EQ(got.tag, i);
    ASSERT_TRUE(holds(got.bytes, i));
  }
}

TEST_P(Messages, SignalsNobodyAsksForHoldTheSenderBackToo) {
  config.unclaimed_bytes = 10'000;
  config.send_queue = 16;
  Couple pair = couple(config);
  const Blob note(100);
  std::uint64_t sent = 0;
  while (pair.to_b.signal({1, note}, Deadline::in(500ms))) ASSERT_LT(++sent, 2'000U);
  EXPECT_TRUE(succeeds(must(pair.to_a.expect(1, sent)).wait(soon())));
  must(pair.to_b.signal({2}, soon()));
  EXPECT_TRUE(succeeds(must(pair.to_a.expect(2, 1)).wait(soon())));
}

TEST_P(Messages, AreSentBeforeTheEngineCloses) {
  constexpr std::uint64_t count = 200;
  auto pair = std::make_optional(couple(config));
  for (std::uint64_t i = 0; i < count; ++i) must(pair->to_b.send(i, pattern(50, i), soon()));
  must(pair->a.close(soon()));
  for (std::uint64_t i = 0; i < count; ++i)
    ASSERT_TRUE(holds(must(pair->to_a.recv(i, exactly, soon())).bytes, i));
  EXPECT_TRUE(fails_with(pair->to_a.recv(0, 0, soon()), Code::peer_down));
}

TEST_P(Messages, ReceiveCallsBack) {
  Couple pair = couple(config);
  std::atomic<std::uint64_t> cookie{0};
  NotifyOptions options;
  options.cookie = 42;
  options.on_end = [&](std::uint64_t given, const Error* error) {
    cookie = error == nullptr ? given : 1;
  };
  Receive receive = must(pair.to_a.receive(1, exactly, options));
  must(pair.to_b.send(1, pattern(5, 5), soon()));
  EXPECT_TRUE(holds(must(receive.wait(soon())).bytes, 5));
  EXPECT_EQ(cookie, 42U);
}

INSTANTIATE_TEST_SUITE_P(All, Messages, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
