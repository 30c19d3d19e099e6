// How transfers end and who learns of it: callbacks, events, deadlines, cancellation.
#include <poll.h>

#include <array>
#include <future>
#include <set>

#include "engines.hpp"
#include "gate.hpp"

namespace weft::test {
namespace {

class Endings : public testing::TestWithParam<Variant> {
 protected:
  Config config = config_for(GetParam());
  Gate gate;
};

bool readable(int descriptor, std::chrono::milliseconds within) {
  pollfd waited{descriptor, POLLIN, 0};
  return poll(&waited, 1, static_cast<int>(within.count())) == 1;
}

TEST_P(Endings, CallbackComesOnceBeforeWaitReturns) {
  Couple pair = couple(config);
  Board board(pair, 300'000, 300'000);
  const Pair piece[] = {{0, 0, 300'000}};
  std::atomic<int> calls{0};
  std::atomic<std::uint64_t> cookie{0};
  std::atomic<State> state{State::active};
  TransferOptions options;
  options.cookie = 77;
  options.on_end = [&](const Ended& ended) {
    ++calls;
    cookie = ended.cookie;
    state = ended.error == nullptr ? ended.state : State::failed;
  };
  board.expect_moved(Direction::write, piece, options);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(cookie, 77U);
  EXPECT_EQ(state, State::done);
}

TEST_P(Endings, CallbackMaySubmitTheNext) {
  Couple pair = couple(config);
  Board board(pair, 100 * 1000, 100 * 1000);
  std::promise<void> all;
  std::function<void(std::uint64_t)> submit = [&](std::uint64_t i) {
    const Pair piece[] = {{i * 1000, i * 1000, 1000}};
    TransferOptions options;
    options.on_end = [&, i](const Ended& ended) {
      if (ended.state != State::done || i + 1 == 100) return all.set_value();
      submit(i + 1);
    };
    if (!pair.a.write(board.local, board.there, piece, options)) all.set_value();
  };
  submit(0);
  ASSERT_EQ(all.get_future().wait_for(60s), std::future_status::ready);
  const Pair everything[] = {{0, 0, 100 * 1000}};
  board.expect_pieces(Direction::write, everything);
}

TEST_P(Endings, EventsAndTheirDescriptor) {
  constexpr std::uint64_t count = 50;
  config.peer_events = true;
  Couple pair = couple(config);
  Event event;
  ASSERT_TRUE(readable(pair.a.event_fd(), 10s));
  ASSERT_EQ(pair.a.poll({&event, 1}), 1U);
  EXPECT_EQ(event.kind, Event::Kind::peer_up);
  EXPECT_EQ(event.peer, pair.b.name());
  EXPECT_FALSE(readable(pair.a.event_fd(), 0ms));

  Board board(pair, count * 1000, count * 1000);
  std::set<std::uint64_t> awaited;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Pair piece[] = {{i * 1000, i * 1000, 1000}};
    TransferOptions options;
    options.cookie = i;
    options.event = true;
    must(pair.a.write(board.local, board.there, piece, options));
    awaited.insert(i);
  }
  std::vector<Event> events(7);
  while (!awaited.empty()) {
    ASSERT_TRUE(readable(pair.a.event_fd(), 60s));
    const std::size_t got = pair.a.poll(events);
    ASSERT_GT(got, 0U);
    for (std::size_t i = 0; i < got; ++i) {
      EXPECT_EQ(events[i].kind, Event::Kind::transfer_ended);
      EXPECT_EQ(events[i].state, State::done);
      EXPECT_EQ(events[i].peer, pair.b.name());
      EXPECT_FALSE(events[i].error);
      EXPECT_EQ(awaited.erase(events[i].cookie), 1U);
    }
  }
  EXPECT_FALSE(readable(pair.a.event_fd(), 0ms));
  EXPECT_EQ(pair.a.poll(events), 0U);

  NotifyOptions notify;
  notify.event = true;
  notify.cookie = 5;
  Expectation expectation = must(pair.to_b.expect(1, 1, notify));
  must(pair.to_a.signal({1}, soon()));
  ASSERT_TRUE(readable(pair.a.event_fd(), 60s));
  ASSERT_EQ(pair.a.poll({&event, 1}), 1U);
  EXPECT_EQ(event.kind, Event::Kind::signals_arrived);
  EXPECT_EQ(event.cookie, 5U);
  Receive receive = must(pair.to_b.receive(1, ~0ULL, notify));
  must(pair.to_a.send(1, {}, soon()));
  ASSERT_TRUE(readable(pair.a.event_fd(), 60s));
  ASSERT_EQ(pair.a.poll({&event, 1}), 1U);
  EXPECT_EQ(event.kind, Event::Kind::message_arrived);

  must(pair.b.close(soon()));
  ASSERT_TRUE(readable(pair.a.event_fd(), 60s));
  ASSERT_EQ(pair.a.poll({&event, 1}), 1U);
  EXPECT_EQ(event.kind, Event::Kind::peer_down);
  EXPECT_TRUE(event.error.has_value());
}

TEST_P(Endings, FailedTransfersMakeEventsToo) {
  Couple pair = couple(config, config, gate.hooks());
  Board board(pair, 1000, 1000);
  const Pair piece[] = {{0, 0, 1000}};
  TransferOptions options;
  options.event = true;
  options.deadline = Deadline::in(a_while);
  must(pair.a.write(board.local, board.there, piece, options));
  ASSERT_TRUE(readable(pair.a.event_fd(), 60s));
  Event event;
  ASSERT_EQ(pair.a.poll({&event, 1}), 1U);
  EXPECT_EQ(event.state, State::timed_out);
  ASSERT_TRUE(event.error.has_value());
  EXPECT_EQ(event.error->code(), Code::timed_out);
}

TEST_P(Endings, DefaultDeadline) {
  config.default_timeout = a_while;
  Couple pair = couple(config, config, gate.hooks());
  Board board(pair, 1000, 1000);
  const Pair piece[] = {{0, 0, 1000}};
  Transfer transfer = must(pair.a.write(board.local, board.there, piece));
  const auto ended = transfer.wait(soon());
  ASSERT_TRUE(fails_with(ended, Code::timed_out));
  EXPECT_EQ(ended.error().peer(), pair.b.name());
  EXPECT_EQ(transfer.state(), State::timed_out);
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::timed_out));
  EXPECT_TRUE(transfer.quiescent());
  gate.open();
  board.expect_untouched();
}

TEST_P(Endings, ADeadlineOfItsOwnCountsInstead) {
  config.default_timeout = a_while;
  Couple pair = couple(config, config, gate.hooks());
  Board board(pair, 1000, 1000);
  const Pair piece[] = {{0, 0, 1000}};
  TransferOptions options;
  options.deadline = soon();
  Transfer patient = must(pair.a.write(board.local, board.there, piece, options));
  Transfer hasty = must(pair.a.write(board.local, board.there, piece));
  EXPECT_TRUE(fails_with(hasty.wait(soon()), Code::timed_out));
  EXPECT_EQ(patient.state(), State::active);
  EXPECT_TRUE(fails_with(patient.wait(Deadline::in(a_while)), Code::timed_out));
  EXPECT_EQ(patient.state(), State::active) << "the wait ended, not the transfer";
  gate.open();
  EXPECT_TRUE(succeeds(patient.wait(soon())));
  board.expect_pieces(Direction::write, piece);
}

TEST_P(Endings, ADeadlineThatHasPassed) {
  Couple pair = couple(config, config, gate.hooks());
  Board board(pair, 1000, 1000);
  const Pair piece[] = {{0, 0, 1000}};
  TransferOptions options;
  options.deadline = Deadline::now();
  Transfer transfer = must(pair.a.write(board.local, board.there, piece, options));
  EXPECT_TRUE(fails_with(transfer.wait(soon()), Code::timed_out));
}

/// Each of two with the same deadline holds up whoever ends it until the other has ended.
TEST_P(Endings, WhoIsHeldUpByAnEndLeavesTheOthersToTheThreadThatStandsIn) {
  config.threads = 1;
  Couple pair = couple(config, config, gate.hooks());
  Board board(pair, 1000, 1000);
  const Pair piece[] = {{0, 0, 1000}};
  const Deadline deadline = Deadline::in(a_while);
  std::array<std::promise<void>, 2> ended;
  std::array<std::future<void>, 2> ends{ended[0].get_future(), ended[1].get_future()};
  std::array<std::atomic<bool>, 2> in_time{};
  std::vector<Transfer> transfers;
  for (std::size_t i = 0; i < 2; ++i) {
    TransferOptions options;
    options.deadline = deadline;
    options.on_end = [&, i](const Ended&) {
      ended[i].set_value();
      in_time[i] = ends[1 - i].wait_for(20s) == std::future_status::ready;
    };
    transfers.push_back(must(pair.a.write(board.local, board.there, piece, options)));
  }
  for (Transfer& transfer : transfers)
    EXPECT_TRUE(fails_with(transfer.wait_quiescent(Deadline::in(40s)), Code::timed_out));
  must(pair.a.close(soon()));  // whose threads have left the callbacks
  EXPECT_TRUE(in_time[0]);
  EXPECT_TRUE(in_time[1]);
}

TEST_P(Endings, CancelBeforeAnythingWentOut) {
  Couple pair = couple(config, config, gate.hooks());
  Board board(pair, 5 << 20, 5 << 20);
  const Pair piece[] = {{0, 0, 5 << 20}};
  Transfer transfer = must(pair.a.write(board.local, board.there, piece));
  EXPECT_FALSE(transfer.quiescent());
  transfer.cancel();
  transfer.cancel();
  gate.open();
  const auto ended = transfer.wait_quiescent(soon());
  EXPECT_TRUE(fails_with(ended, Code::cancelled));
  EXPECT_EQ(transfer.state(), State::cancelled);
  EXPECT_TRUE(transfer.quiescent());
  EXPECT_LT(transfer.report().bytes_done, transfer.report().bytes);
}

TEST_P(Endings, CancelInTheMiddleLeavesOnlyRightBytes) {
  config.chunk_bytes = 4096;
  config.bounce_buffer_bytes = 4096;
  Couple pair = couple(config);
  constexpr std::size_t bytes = 16 << 20;
  Board board(pair, bytes, bytes);
  const Pair piece[] = {{0, 0, bytes}};
  const Blob before(bytes_of(board.remote).begin(), bytes_of(board.remote).end());
  Transfer transfer = must(pair.a.write(board.local, board.there, piece));
  const Deadline deadline = soon();
  while (transfer.report().bytes_done == 0 && !deadline.passed()) std::this_thread::yield();
  transfer.cancel();
  const auto ended = transfer.wait_quiescent(soon());
  // A fast machine may have been done.
  if (!ended) {
    EXPECT_TRUE(fails_with(ended, Code::cancelled));
  }
  EXPECT_EQ(transfer.state(), ended ? State::done : State::cancelled);
  // Each byte is the old one or the new one, and as many are new as the report says.
  std::uint64_t fresh = 0, wrong = 0;
  for (std::size_t i = 0; i < bytes; i += 4096) {
    const Bytes now = Bytes(board.remote.data() + i, 4096);
    if (std::equal(now.begin(), now.end(), board.local.data() + i))
      fresh += now.size();
    else if (!std::equal(now.begin(), now.end(), before.data() + i))
      ++wrong;
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(fresh, transfer.report().bytes_done);
}

TEST_P(Endings, CancelAfterTheEndChangesNothing) {
  Couple pair = couple(config);
  Board board(pair, 1000, 1000);
  const Pair piece[] = {{0, 0, 1000}};
  Transfer transfer = must(pair.a.write(board.local, board.there, piece));
  must(transfer.wait(soon()));
  transfer.cancel();
  EXPECT_EQ(transfer.state(), State::done);
  EXPECT_TRUE(succeeds(transfer.wait(Deadline::now())));
}

TEST_P(Endings, TooManyTransfersAreRefused) {
  config.max_transfers = 10;
  Couple pair = couple(config, config, gate.hooks());
  Board board(pair, 1000, 1000);
  const Pair piece[] = {{0, 0, 1000}};
  std::vector<Transfer> transfers;
  for (std::size_t i = 0; i < 10; ++i) {
    const Pair part[] = {{i * 100, i * 100, 100}};
    transfers.push_back(must(pair.a.write(board.local, board.there, part)));
  }
  EXPECT_TRUE(fails_with(pair.a.write(board.local, board.there, piece), Code::queue_full));
  gate.open();
  for (Transfer& transfer : transfers) EXPECT_TRUE(succeeds(transfer.wait(soon())));
  EXPECT_TRUE(succeeds(pair.a.write(board.local, board.there, piece).and_then([](Transfer&& t) {
    return t.wait(soon());
  })));
}

TEST_P(Endings, TheHandleNeedNotBeKept) {
  Couple pair = couple(config);
  Board board(pair, 3'000'000, 3'000'000);
  const Pair piece[] = {{0, 0, 3'000'000}};
  TransferOptions options;
  options.signal = Signal{1};
  must(pair.a.write(board.local, board.there, piece, options));
  must(must(pair.to_a.expect(1, 1)).wait(soon()));
  board.expect_pieces(Direction::write, piece);
}

TEST_P(Endings, ADescriptorTellsOfPeersToAccept) {
  Engine one = must(Engine::open(config)), two = must(Engine::open(config)),
         engine = must(Engine::open(config));
  EXPECT_FALSE(readable(engine.accept_fd(), 0ms));
  for (Engine* each : {&one, &two}) must(each->connect(engine.address(), soon()));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(readable(engine.accept_fd(), 10s));
    must(engine.accept(soon()));
  }
  EXPECT_FALSE(readable(engine.accept_fd(), 0ms));
  must(engine.close(soon()));
  EXPECT_TRUE(readable(engine.accept_fd(), 0ms)) << "accept() fails at once";
  EXPECT_TRUE(fails_with(engine.accept(soon()), Code::closed));
}

TEST_P(Endings, AcceptAndConnectTimeOut) {
  Engine engine = must(Engine::open(config));
  EXPECT_TRUE(fails_with(engine.accept(Deadline::in(a_while)), Code::timed_out));
  // A port that is bound but answers nothing.
  Engine gone = must(Engine::open(config));
  const std::string address = gone.address();
  must(gone.close(soon()));
  const auto refused = engine.connect(address, soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::unavailable) << refused.error().to_string();
  EXPECT_TRUE(fails_with(engine.connect("no address at all", soon()), Code::invalid_argument));
  EXPECT_TRUE(fails_with(engine.connect(engine.address(), soon()), Code::invalid_argument));
}

INSTANTIATE_TEST_SUITE_P(All, Endings, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
