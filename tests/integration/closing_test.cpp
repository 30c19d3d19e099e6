// Engines that end while things are going on, and handles that outlive them.
#include "engines.hpp"
#include "gate.hpp"
#include "process.hpp"

namespace weft::test {
namespace {

constexpr int rounds = 50;

/// Opens an engine again and again, and closes it as soon as it got what it waits for: first the
/// signal of a transfer, then a message of that many bytes.
WEFT_ROLE(polite_leaver) {
  Config config =
      config_for(Variant{arguments.at(0), arguments.at(1) == "bounce" ? TransportKind::bounce
                                                                      : TransportKind::one_sided});
  for (int i = 0; i < rounds; ++i) {
    Engine engine = must(Engine::open(config));
    Segment segment = must(engine.add(Memory::own(100'000)));
    Grant grant = must(segment.grant({}, Rights::write));
    must(engine.publish("memory", grant));
    parent.say(engine.address());
    const Peer peer = must(engine.accept(soon()));
    must(must(peer.receive(1, ~std::uint64_t{0})).wait(soon()));
    must(must(peer.expect(7, 2)).wait(soon()));
    must(engine.close(soon()));
    parent.say(holds(bytes_of(segment), 5) ? "all there" : "bytes are missing");
  }
  return 0;
}

class Closing : public testing::TestWithParam<Variant> {
 protected:
  Config config = config_for(GetParam());
};

TEST_P(Closing, HandlesOutliveTheEngine) {
  std::optional<Segment> local, remote;
  std::optional<Grant> grant;
  std::optional<Remote> there;
  std::optional<Prepared> prepared;
  std::optional<Transfer> transfer;
  std::optional<Expectation> expectation;
  std::optional<Receive> receive;
  std::optional<Peer> peer;
  const Pair all[] = {{0, 0, 1000}};
  {
    Couple pair = couple(config);
    local = must(pair.a.add(Memory::own(1000)));
    remote = must(pair.b.add(Memory::own(1000)));
    fill(bytes_of(*local), 1);
    grant = must(remote->grant({}, Rights::read_write));
    there = must(pair.a.import(grant->blob()));
    prepared = must(pair.a.prepare(*local, *there, Direction::write, all));
    transfer = must(pair.a.submit(*prepared));
    must(transfer->wait(soon()));
    expectation = must(pair.to_b.expect(1, 1));
    receive = must(pair.to_b.receive(1, 1));
    peer = pair.to_b;
  }
  EXPECT_TRUE(holds(bytes_of(*local), 1));
  EXPECT_TRUE(holds(bytes_of(*remote), 1));
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_TRUE(succeeds(transfer->wait(soon())));
  EXPECT_EQ(transfer->report().bytes_done, 1000U);
  EXPECT_FALSE(expectation->wait(soon()));
  EXPECT_FALSE(receive->wait(soon()));
  EXPECT_FALSE(peer->up());
  EXPECT_EQ(prepared->size(), 1U);
  EXPECT_FALSE(grant->blob().empty());
  EXPECT_TRUE(fails_with(grant->revoke(soon()), Code::closed));
  EXPECT_TRUE(fails_with(local->grant({}, Rights::read), Code::closed));
  EXPECT_TRUE(succeeds(local->release(soon()))) << "no rail is left that could touch it";
  Engine another = must(Engine::open(config));
  EXPECT_FALSE(another.submit(*prepared));
}

TEST_P(Closing, PeerThatHasWhatItWaitedForEndsTransfersAsDone) {
  Child leaver("polite_leaver",
               {GetParam().provider,
                GetParam().transport == TransportKind::bounce ? "bounce" : "one_sided"});
  Engine engine = must(Engine::open(config));
  Segment segment = must(engine.add(Memory::own(100'000)));
  fill(bytes_of(segment), 5);
  const Pair halves[] = {{0, 0, 50'000}, {50'000, 50'000, 50'000}};
  const Blob message(3000);
  for (int i = 0; i < rounds; ++i) {
    const Peer peer = must(engine.connect(leaver.hear(), soon()));
    const Remote remote = must(peer.lookup("memory", soon()));
    must(peer.send(1, message, soon()));
    std::vector<Transfer> transfers;
    for (const Pair& half : halves)
      transfers.push_back(
          must(engine.write(segment, remote, std::span(&half, 1), {.signal = Signal{.id = 7}})));
    for (Transfer& transfer : transfers)
      ASSERT_TRUE(succeeds(transfer.wait(soon()))) << "round " << i;
    ASSERT_EQ(leaver.hear(), "all there");
  }
  EXPECT_EQ(leaver.join(), 0);
}

TEST_P(Closing, PeerThatHasNotTakenTheSignalFailsTheTransfer) {
  Config sleeper = config;
  sleeper.progress = Progress::manual;  // it takes nothing, since nobody calls
  config.inline_copy_bytes = 0;
  Couple pair = couple(config, sleeper);
  Segment local = must(pair.a.add(Memory::own(1000)));
  Segment remote = must(pair.b.add(Memory::own(1000)));
  const Grant grant = must(remote.grant({}, Rights::write));
  const Remote there = must(pair.a.import(grant.blob()));
  const Pair all[] = {{0, 0, 1000}};
  Transfer transfer = must(pair.a.write(local, there, all, {.signal = Signal{1}}));
  std::this_thread::sleep_for(a_while);
  if (transfer.state() == State::done) GTEST_SKIP() << "its provider takes messages by itself";
  must(pair.to_b.disconnect());
  EXPECT_FALSE(transfer.wait(soon()));
}

TEST_P(Closing, EndsTransfersInFlight) {
  Gate gate;
  auto pair = std::make_optional(couple(config, config, gate.hooks()));
  auto board = std::make_optional<Board>(*pair, 100'000, 100'000);
  const Pair all[] = {{0, 0, 100'000}};
  std::atomic<int> called{0};
  std::vector<Transfer> transfers;
  for (int i = 0; i < 10; ++i) {
    TransferOptions options;
    options.on_end = [&](const Ended& ended) { called += ended.error != nullptr ? 1 : 100; };
    if (i % 2 == 0) options.signal = Signal{1};
    transfers.push_back(must(pair->a.write(board->local, board->there, all, options)));
  }
  Expectation expectation = must(pair->to_a.expect(1, 1));
  must(pair->a.close(soon()));
  for (Transfer& transfer : transfers) {
    EXPECT_FALSE(transfer.wait(soon()));
    EXPECT_FALSE(transfer.wait_quiescent(soon()));
    EXPECT_TRUE(transfer.quiescent());
    EXPECT_EQ(transfer.state(), State::failed);
  }
  EXPECT_EQ(called, 10);
  EXPECT_FALSE(expectation.wait(soon()));
  board->expect_untouched();
  EXPECT_TRUE(fails_with(pair->a.write(board->local, board->there, all), Code::closed));
  EXPECT_TRUE(succeeds(pair->a.close(soon()))) << "twice is once";
}

TEST_P(Closing, DestroyedInTheMiddleOfTraffic) {
  constexpr std::size_t bytes = 8 << 20;
  for (const bool initiator : {true, false}) {
    SCOPED_TRACE(initiator);
    std::optional<Couple> pair = couple(config);
    const bool emulated = pair->a.info().rails.front().capability.write == Origin::emulated;
    Board board(*pair, bytes, bytes);
    constexpr std::size_t count = 8, slice = bytes / count;
    std::vector<Transfer> transfers;
    for (std::size_t i = 0; i < count; ++i) {
      const Pair piece[] = {{i * slice, i * slice, slice}};
      transfers.push_back(must(i % 2 == 0 ? pair->a.write(board.local, board.there, piece)
                                          : pair->a.read(board.local, board.there, piece)));
    }
    if (initiator) {
      const Engine gone = std::move(pair->a);
    } else {
      const Engine gone = std::move(pair->b);
    }
    for (Transfer& transfer : transfers)
      EXPECT_NE(transfer.wait(soon()).has_value(), transfer.state() != State::done);
    // What libfabric makes of messages it may forget with the peer; closing ends that too.
    if (emulated && !initiator) must(pair->a.close(soon()));
    for (Transfer& transfer : transfers) {
      (void)transfer.wait_quiescent(soon());
      EXPECT_TRUE(transfer.quiescent());
    }
    // The memory is still there, and nobody else's.
    fill(bytes_of(board.local), 1);
    fill(bytes_of(board.remote), 2);
    EXPECT_TRUE(holds(bytes_of(board.local), 1));
    EXPECT_TRUE(holds(bytes_of(board.remote), 2));
  }
}

TEST_P(Closing, WhileOtherThreadsSubmit) {
  config.send_queue = 8;  // else the sender's messages are ahead of all signals
  Couple pair = couple(config);
  constexpr std::size_t threads = 4;
  Board board(pair, threads * 5000, threads * 5000);
  std::atomic<int> started{0};
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < threads; ++i)
    workers.emplace_back([&, i] {
      const Pair piece[] = {{i * 5000, i * 5000, 5000}};
      while (true) {
        TransferOptions options;
        options.signal = Signal{1};
        auto transfer = pair.a.write(board.local, board.there, piece, options);
        if (!transfer) {
          EXPECT_TRUE(transfer.error().code() == Code::closed ||
                      transfer.error().code() == Code::peer_down)
              << transfer.error().to_string();
          return;
        }
        ++started;
        const auto ended = transfer->wait(soon());
        if (!ended) {
          EXPECT_TRUE(ended.error().code() == Code::closed ||
                      ended.error().code() == Code::peer_down)
              << ended.error().to_string();
        }
        EXPECT_NE(transfer->state(), State::active);
      }
    });
  std::jthread sender([&] {
    while (pair.to_b.send(1, {}, soon())) {
    }
  });
  std::jthread asker([&] {
    const auto answer = pair.to_b.lookup("never", soon());
    EXPECT_FALSE(answer);
  });
  std::jthread acceptor([&] { EXPECT_FALSE(pair.a.accept(soon())); });
  const Deadline deadline = soon();
  while (started < 100 && !deadline.passed()) std::this_thread::yield();
  EXPECT_TRUE(succeeds(pair.a.close(soon())));
  workers.clear();
  sender.join();
  asker.join();
  acceptor.join();
  EXPECT_EQ(pair.a.info().transfers_active, 0U);
}

TEST_P(Closing, ReturnsEverything) {
  const std::size_t threads = count_threads(), descriptors = count_descriptors();
  {
    Couple pair = couple(config);
    Board board(pair, 1000, 1000);
    const Pair all[] = {{0, 0, 1000}};
    board.expect_moved(Direction::write, all);
  }
  const auto left = threads_down_to(threads);
  EXPECT_EQ(left.size(), threads) << testing::PrintToString(left);
  // libfabric keeps some of its own from the first use on.
  const std::size_t kept = count_descriptors();
  EXPECT_LE(kept, descriptors + 16);
  { Couple pair = couple(config); }
  EXPECT_EQ(count_descriptors(), kept);
}

TEST_P(Closing, ManualEngines) {
  config.progress = Progress::manual;
  config.inline_copy_bytes = 0;  // or it would be over before that
  auto pair = std::make_optional(couple(config));
  auto board = std::make_optional<Board>(*pair, 100'000, 100'000);
  const Pair all[] = {{0, 0, 100'000}};
  Transfer transfer = must(pair->a.write(board->local, board->there, all));
  Expectation expectation = must(pair->to_a.expect(1, 1));
  must(pair->a.close(Deadline::in(20s)));
  EXPECT_FALSE(transfer.wait(soon()));
  EXPECT_FALSE(expectation.wait(soon()));
  board.reset();
  pair.reset();
  EXPECT_TRUE(transfer.quiescent());
}

INSTANTIATE_TEST_SUITE_P(All, Closing, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
