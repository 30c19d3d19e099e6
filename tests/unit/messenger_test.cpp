// Two messengers over endpoints that carry, lose, repeat and refuse what the test says.
#include "message/messenger.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <thread>

#include "parts.hpp"
#include "scripted_endpoint.hpp"

namespace weft::core::test {
namespace {

using providers::PostStatus;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t credits = 8;
constexpr std::size_t max_message = 1024, most_packet = std::numeric_limits<std::size_t>::max();

std::shared_ptr<PeerState> make_known(std::uint64_t token, std::size_t ways,
                                      std::size_t their_credits = credits,
                                      std::size_t their_packet = most_packet) {
  Introduction introduction;
  introduction.name = "peer";
  introduction.token = token;
  introduction.message_credits = static_cast<std::uint32_t>(their_credits);
  auto peer = std::make_shared<PeerState>(nullptr, 1, introduction, true,
                                          PeerState::Limits{std::size_t{1} << 20, 100});
  for (std::size_t i = 0; i < ways; ++i) {
    auto route = std::make_unique<Route>();
    route->rail_name = "nic";
    route->packet = their_packet;
    route->targets.add({0, &route->addresses.try_emplace(0, 0U).first->second});
    peer->routes.push_back(std::move(route));
  }
  peer->set_up();
  return peer;
}

/// One of the two: its messenger, and the other as it sees it.
struct Side {
  Side(const Capability& record, std::uint64_t own_token, std::uint64_t their_token,
       std::size_t ways, std::size_t their_credits = credits, std::size_t packet = most_packet,
       std::size_t their_packet = most_packet, std::size_t first_credits = credits,
       std::size_t receives = 1000)
      : other(make_known(their_token, ways, their_credits, their_packet)),
        messenger(
            endpoint, "nic", {max_message, credits, packet, first_credits, receives},
            [this](PeerState&, const Error& error) { broken.push_back(error.message()); },
            [this](const PeerState&, Notice notice) { told.push_back(std::move(notice)); },
            [this] { return flush(); }) {
    endpoint.record = record;
    EXPECT_TRUE(messenger.add_peer(other, own_token));
  }
  void send(std::uint64_t tag, Blob bytes = Blob(100)) {
    ASSERT_TRUE(other->outbox.push({MessageKind::tagged, tag, std::move(bytes), nullptr}, soon()));
    messenger.attend(*other);
    messenger.pump();
  }
  void signal(std::uint64_t id) {
    ASSERT_TRUE(other->outbox.push({MessageKind::signal, id, {}, nullptr}, soon()));
    messenger.attend(*other);
    messenger.pump();
  }
  Result<void> flush() {
    ++flushes;
    if (cant_flush) return fail(*cant_flush);
    return {};
  }
  /// How the wait for one signal has ended; empty: it has not.
  std::optional<Code> expected(std::uint64_t id) {
    const auto next = std::make_shared<ExpectState>(std::weak_ptr<EngineState>(), other, id, 1);
    other->mailbox.await(next);
    if (!next->done()) {
      other->mailbox.give_up(*next);
      return std::nullopt;
    }
    return next->error() ? next->error()->code() : Code{};
  }
  /// Until it has something for the control connection.
  void pump_until_it_tells() {
    const auto until = soon();
    while (told.empty() && !until.passed()) {
      messenger.pump();
      std::this_thread::yield();
    }
  }
  /// The messages that have arrived.
  std::vector<Message> messages() {
    std::vector<Message> all;
    for (;;) {
      const auto next = std::make_shared<ReceiveState>(std::weak_ptr<EngineState>(), other, 0, 0);
      other->mailbox.await(next);
      if (!next->done()) {
        other->mailbox.give_up(*next);
        return all;
      }
      all.push_back(std::move(next->message));
    }
  }
  /// Their tags.
  std::vector<std::uint64_t> received() {
    std::vector<std::uint64_t> tags;
    for (const Message& each : messages()) tags.push_back(each.tag);
    return tags;
  }

  ScriptedEndpoint endpoint;
  std::shared_ptr<PeerState> other;
  std::deque<Notice> told;
  std::vector<std::string> broken;
  std::size_t flushes = 0;
  std::optional<Error> cant_flush;
  Messenger messenger;
};

class MessengerTest : public testing::Test {
 protected:
  static Capability with_path_failures() {
    Capability record;
    record.path_failures = true;
    return record;
  }
  void open(const Capability& record, std::size_t ways = 2) {
    a = std::make_unique<Side>(record, 11, 22, ways);
    b = std::make_unique<Side>(record, 22, 11, ways);
  }
  void SetUp() override { open(with_path_failures()); }

  /// Takes one that `a` has sent to `b`, leaving its end open.
  ScriptedEndpoint::Sent carry(std::size_t index = 0) {
    ScriptedEndpoint::Sent sent = std::move(a->endpoint.sent.at(index));
    a->endpoint.sent.erase(a->endpoint.sent.begin() + static_cast<std::ptrdiff_t>(index));
    b->endpoint.arrive(sent.message);
    return sent;
  }
  static void end(const ScriptedEndpoint::Sent& sent, bool ok = true, bool path_failed = true) {
    providers::Completion completion;
    completion.ok = ok;
    completion.fabric_code = ok ? 0 : 5;
    completion.path_failed = !ok && path_failed;
    sent.posted->handler->completed(*sent.posted, completion);
  }
  void lose_first(bool path_failed = true) {
    const ScriptedEndpoint::Sent sent = std::move(a->endpoint.sent.front());
    a->endpoint.sent.pop_front();
    end(sent, false, path_failed);
  }
  /// What can't be delivered is told a round later: a goodbye that took it comes first.
  void tell_failed() {
    for (int round = 0; round < 2; ++round) a->messenger.pump();
  }
  /// What they told each other, both ways, until both are silent.
  void exchange_notices() {
    while (!a->told.empty() || !b->told.empty()) {
      pass_on(*a, *b);
      pass_on(*b, *a);
    }
  }
  static void pass_on(Side& from, Side& to) {
    for (const Notice& notice : std::exchange(from.told, {})) {
      if (const auto* fallback = std::get_if<FallbackMessage>(&notice))
        to.messenger.arrived_by_control(*to.other, fallback->bytes);
      else
        to.messenger.taken_by_control(*to.other);
    }
  }
  bool all_settled() { return a->other->outbox.wait_idle(Deadline::in(0s)); }

  std::unique_ptr<Side> a, b;
};

TEST_F(MessengerTest, OvertakingChangesNothing) {
  for (std::uint64_t tag : {1, 2, 3}) a->send(tag);
  end(carry(2));
  end(carry(1));
  EXPECT_THAT(b->received(), IsEmpty());
  end(carry(0));
  EXPECT_THAT(b->received(), ElementsAre(1, 2, 3));
  EXPECT_TRUE(all_settled());
}

TEST_F(MessengerTest, ASignalTellsOfItsTransferAndIsCountedOnce) {
  b->other->traffic = std::make_shared<PeerTraffic>(1);
  NoHost host;
  const auto read = std::make_shared<TransferState>(
      make_submission(make_prepared(make_peer(1), scattered(2, 100), Direction::read)), host);
  ASSERT_TRUE(a->other->outbox.push({MessageKind::signal, 7, Blob(5), read}, soon()));
  a->messenger.attend(*a->other);
  a->messenger.pump();
  a->signal(8);
  a->send(1);
  const ScriptedEndpoint::Sent first = carry();
  b->endpoint.arrive(first.message);  // once more
  end(first);
  end(carry());
  end(carry());
  const PeerTraffic::Totals totals = b->other->traffic->read();
  EXPECT_THAT(totals.begun_there, ElementsAre(0, 200));
  EXPECT_EQ(totals.signals.count, 2U);
  EXPECT_EQ(totals.signals.bytes, 5U);
  EXPECT_EQ(totals.messages.count, 1U);
  EXPECT_EQ(totals.messages.bytes, 100U);
}

TEST_F(MessengerTest, WhatArrivedBeforeIsMadeVisibleOnceForEachMessage) {
  a->signal(7);
  a->send(1);
  EXPECT_EQ(b->flushes, 0U);
  end(carry());
  EXPECT_EQ(b->flushes, 1U);
  EXPECT_EQ(b->expected(7), Code{});
  end(carry());
  EXPECT_EQ(b->flushes, 2U);
  EXPECT_THAT(b->received(), ElementsAre(1));
}

TEST_F(MessengerTest, ASignalForWhatCantBeMadeVisibleFails) {
  b->cant_flush = Error(Code::unavailable, "the device is gone");
  a->signal(7);
  end(carry());
  EXPECT_EQ(b->expected(7), Code::unavailable);
  b->cant_flush.reset();
  a->signal(7);
  end(carry());
  EXPECT_EQ(b->expected(7), Code{});
}

TEST_F(MessengerTest, WhatTheWayLosesGoesByTheControlConnection) {
  a->send(1);
  a->send(2);
  lose_first();
  EXPECT_FALSE(all_settled());
  end(carry());
  EXPECT_THAT(b->received(), IsEmpty());
  exchange_notices();
  EXPECT_THAT(b->received(), ElementsAre(1, 2));
  EXPECT_TRUE(all_settled());
  EXPECT_THAT(a->broken, IsEmpty());
}

TEST_F(MessengerTest, WhatArrivedAllTheSameIsNotTakenTwice) {
  a->send(1);
  end(carry(), false);
  exchange_notices();
  EXPECT_THAT(b->received(), ElementsAre(1));
  EXPECT_TRUE(all_settled());
}

// They were acknowledged to the sender, and lay unread in an endpoint that was closed.
TEST_F(MessengerTest, WhatIsLostWithThePeersRailGoesByTheControlConnection) {
  for (std::uint64_t tag : {1, 2, 3}) a->send(tag);
  end(carry());
  for (const auto& lost : std::exchange(a->endpoint.sent, {})) end(lost);
  EXPECT_TRUE(all_settled());
  EXPECT_THAT(b->received(), ElementsAre(1));
  a->messenger.peer_moved(*a->other);
  exchange_notices();
  EXPECT_THAT(b->received(), ElementsAre(2, 3));
  EXPECT_THAT(a->broken, IsEmpty());
  EXPECT_TRUE(all_settled()) << "each counts once";
  a->send(4);
  end(carry());
  EXPECT_THAT(b->received(), ElementsAre(4));
}

TEST_F(MessengerTest, WhatEndsAfterThePeersRailWasClosedMayBeLostToo) {
  a->send(1);
  a->messenger.peer_moved(*a->other);
  exchange_notices();
  EXPECT_THAT(b->received(), IsEmpty());
  end(std::exchange(a->endpoint.sent, {}).front());
  exchange_notices();
  EXPECT_THAT(b->received(), ElementsAre(1));
  EXPECT_TRUE(all_settled());
}

TEST_F(MessengerTest, CreditsThatAreLostWithThePeersRailAreToldAgain) {
  for (std::uint64_t tag = 0; tag < credits; ++tag) {
    a->send(tag);
    end(carry());
  }
  EXPECT_EQ(b->received().size(), credits);
  b->messenger.pump();
  for (const auto& lost : std::exchange(b->endpoint.sent, {})) end(lost);
  a->send(credits);
  EXPECT_THAT(a->endpoint.sent, IsEmpty()) << "it has no credits";
  b->messenger.peer_moved(*b->other);
  exchange_notices();
  a->messenger.pump();
  ASSERT_EQ(a->endpoint.sent.size(), 1U);
  end(carry());
  EXPECT_THAT(b->received(), ElementsAre(credits));
}

TEST_F(MessengerTest, APeerWithMoreCreditsThanThereAreBuffersIsGivenUpIfItsRailIsClosed) {
  Side lone(with_path_failures(), 11, 22, 2, 10 * credits);
  for (std::uint64_t tag = 0; tag < 5 * credits; ++tag) {
    lone.send(tag);
    ASSERT_EQ(lone.endpoint.sent.size(), 1U) << "it is sent without waiting for credits";
    end(lone.endpoint.sent.front());
    lone.endpoint.sent.clear();
  }
  EXPECT_THAT(lone.broken, IsEmpty());
  lone.messenger.peer_moved(*lone.other);
  EXPECT_EQ(lone.broken.size(), 1U);
}

// The provider tells late that a message has gone out, after the peer has acknowledged it.
TEST_F(MessengerTest, WhatIsAcknowledgedHasArrivedWhateverTheRailSays) {
  std::vector<ScriptedEndpoint::Sent> sent;
  for (std::uint64_t tag = 0; tag < credits; ++tag) {
    a->send(tag);
    sent.push_back(carry());
  }
  EXPECT_FALSE(all_settled());
  b->messenger.pump();
  for (const auto& acknowledgement : std::exchange(b->endpoint.sent, {})) {
    a->endpoint.arrive(acknowledgement.message);
    end(acknowledgement);
  }
  EXPECT_TRUE(all_settled());
  for (std::size_t i = 0; i < sent.size(); ++i) end(sent[i], i % 2 == 0);
  EXPECT_THAT(a->told, IsEmpty()) << "nothing is sent again";
  EXPECT_THAT(a->broken, IsEmpty());
  a->messenger.pump();
  EXPECT_TRUE(a->messenger.idle());
  EXPECT_EQ(b->received().size(), credits);
}

TEST_F(MessengerTest, TheWayIsLeftAloneForAWhileAndThenTriedAgain) {
  a->send(1);
  lose_first();
  Route& route = *a->other->routes.front();
  EXPECT_NE(route.aside_until, 0);
  route.aside_until = std::numeric_limits<Clock::rep>::max();  // however slow this machine is
  a->send(2);
  EXPECT_THAT(a->endpoint.sent, IsEmpty());
  exchange_notices();
  EXPECT_THAT(b->received(), ElementsAre(1, 2));
  route.works();
  a->send(3);
  end(carry());
  EXPECT_THAT(b->received(), ElementsAre(3));
}

TEST_F(MessengerTest, MoreThanOneWindowOfThemComesThrough) {
  a->send(0);
  lose_first();
  std::vector<std::uint64_t> all{0}, got;
  for (std::uint64_t tag = 1; tag < 5 * credits; ++tag) {
    a->send(tag);
    all.push_back(tag);
  }
  const auto until = soon();
  while (got.size() < all.size() && !until.passed()) {
    exchange_notices();
    for (const std::uint64_t tag : b->received()) got.push_back(tag);
    // Credits come back by b's own way, which works.
    b->messenger.pump();
    for (auto& sent : std::exchange(b->endpoint.sent, {})) {
      a->endpoint.arrive(sent.message);
      end(sent);
    }
    a->messenger.pump();
  }
  EXPECT_EQ(got, all);
  EXPECT_TRUE(all_settled());
}

TEST_F(MessengerTest, WhatIsNeitherDeliveredNorFailedIsSentAroundInTheEnd) {
  a->send(1);
  a->pump_until_it_tells();
  exchange_notices();
  EXPECT_THAT(b->received(), ElementsAre(1));
  EXPECT_TRUE(all_settled());
  // Late, and then the NIC is done with the buffer.
  end(carry());
  EXPECT_THAT(b->received(), IsEmpty());
  EXPECT_TRUE(a->messenger.idle());
}

TEST_F(MessengerTest, WhatIsRefusedForTooLongIsSentAround) {
  a->endpoint.answer.status = PostStatus::again;
  a->send(1);
  a->pump_until_it_tells();
  exchange_notices();
  EXPECT_THAT(b->received(), ElementsAre(1));
}

// A firewall that drops the port of a tcp rail: nothing is posted, and nothing is told.
TEST_F(MessengerTest, SoItIsWhereNoFailuresOfThePathAreTold) {
  Capability record;
  record.proof = CompletionProof::visible;
  open(record, 1);
  a->endpoint.answer.status = PostStatus::again;
  a->send(1);
  a->pump_until_it_tells();
  a->send(2);
  EXPECT_EQ(a->told.size(), 2U) << "the next one does not wait";
  exchange_notices();
  EXPECT_THAT(b->received(), ElementsAre(1, 2));
  EXPECT_THAT(a->broken, IsEmpty());
}

TEST_F(MessengerTest, CreditsThatAreRefusedForTooLongAreSentAround) {
  for (std::uint64_t tag = 0; tag < credits; ++tag) a->send(tag);
  while (!a->endpoint.sent.empty()) end(carry());
  b->endpoint.answer.status = PostStatus::again;
  b->pump_until_it_tells();
  exchange_notices();
  a->send(credits);
  EXPECT_EQ(a->endpoint.sent.size(), 1U);
}

TEST_F(MessengerTest, WhatCannotBePostedIsSentAround) {
  a->endpoint.answer = {PostStatus::failed, 5};
  a->send(1);
  exchange_notices();
  EXPECT_THAT(b->received(), ElementsAre(1));
  EXPECT_THAT(a->broken, IsEmpty());
}

TEST_F(MessengerTest, OtherFailuresEndThePeer) {
  a->send(1);
  lose_first(false);
  tell_failed();
  EXPECT_EQ(a->broken.size(), 1U);
  EXPECT_THAT(a->told, IsEmpty());
  EXPECT_TRUE(all_settled());
}

TEST_F(MessengerTest, AGoodbyeSettlesWhatWasTakenAndNothingThatWasNotSent) {
  a->send(1);
  a->messenger.taken_at_goodbye(*a->other, 2);
  EXPECT_FALSE(all_settled()) << "it says that it took more than was sent";
  a->messenger.taken_at_goodbye(*a->other, 0);
  EXPECT_FALSE(all_settled());
  a->messenger.taken_at_goodbye(*a->other, 1);
  EXPECT_TRUE(all_settled());
}

TEST_F(MessengerTest, NothingGoesAroundTheOnlyWayThatProvesWhatWasWritten) {
  Capability record = with_path_failures();
  record.proof = CompletionProof::received;
  open(record, 1);
  a->send(1);
  lose_first();
  tell_failed();
  EXPECT_EQ(a->broken.size(), 1U);
  EXPECT_THAT(a->told, IsEmpty());
  open(record, 2);
  a->send(1);
  lose_first();
  EXPECT_THAT(a->broken, IsEmpty());
  EXPECT_EQ(a->told.size(), 1U);
}

TEST_F(MessengerTest, APeerThatDiesEndsThoseOnTheirWay) {
  a->send(1);
  lose_first();
  a->send(2);
  a->other->set_down(Error(Code::peer_down, "gone"));
  a->messenger.peer_died(*a->other);
  EXPECT_TRUE(a->messenger.idle());
  a->messenger.taken_by_control(*a->other);  // its last word, too late
}

TEST_F(MessengerTest, NobodySpeaksForAnother) {
  a->send(1);
  lose_first();
  const auto& fallback = std::get<FallbackMessage>(a->told.front());
  b->messenger.arrived_by_control(*make_known(11, 1), fallback.bytes);
  EXPECT_THAT(b->received(), IsEmpty());
  b->messenger.arrived_by_control(*b->other, Bytes(fallback.bytes).first(10));
  b->messenger.arrived_by_control(*b->other, Bytes(fallback.bytes).first(60));
  EXPECT_THAT(b->received(), IsEmpty());
}

TEST_F(MessengerTest, ReceivesThatFailedAreThereAgainForThoseWhoCome) {
  const std::size_t all = b->endpoint.receives.size();
  // Those of a peer that died while its messages came.
  for (std::size_t i = 0; i + 1 < all; ++i) {
    const auto [posted, local] = b->endpoint.receives.front();
    b->endpoint.receives.pop_front();
    providers::Completion failed;
    failed.ok = false;
    posted->handler->completed(*posted, failed);
  }
  EXPECT_EQ(b->endpoint.receives.size(), 1U) << "not at once: it might go on for ever";
  a->send(1);
  end(carry());
  EXPECT_EQ(b->endpoint.receives.size(), all);
}

/// Rails that carry packets of 132 bytes: heads of 32, and 100 bytes of payload.
class FragmentsTest : public MessengerTest {
 protected:
  static constexpr std::size_t most = 100;
  void SetUp() override { cut(Messenger::message_bytes(most)); }
  void cut(std::size_t packet_of_a, std::size_t packet_of_b = most_packet) {
    a = std::make_unique<Side>(with_path_failures(), 11, 22, 2, credits, packet_of_a, packet_of_b);
    b = std::make_unique<Side>(with_path_failures(), 22, 11, 2, credits, packet_of_b, packet_of_a);
  }
  static Blob text(std::size_t size) {
    Blob bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 256);
    return bytes;
  }
  /// Carries all that `a` has sent, and what it sends next for the credits that come back.
  void carry_all() {
    const auto until = soon();
    do {
      while (!a->endpoint.sent.empty()) end(carry());
      b->messenger.pump();
      for (auto& sent : std::exchange(b->endpoint.sent, {})) {
        a->endpoint.arrive(sent.message);
        end(sent);
      }
      a->messenger.pump();
    } while (!a->endpoint.sent.empty() && !until.passed());
  }
  void expect_received(std::size_t size) {
    const auto got = b->messages();
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0].bytes, text(size)) << size;
  }
};

TEST_F(FragmentsTest, LongMessagesArePutTogether) {
  for (const std::size_t size : {0UL, 1UL, 99UL, 100UL, 101UL, 200UL, 201UL, 1023UL, 1024UL}) {
    a->send(size, text(size));
    for (const auto& sent : a->endpoint.sent)
      EXPECT_LE(sent.message.size(), Messenger::message_bytes(most));
    carry_all();
    expect_received(size);
    EXPECT_TRUE(all_settled());
  }
}

TEST_F(FragmentsTest, OvertakingChangesNothing) {
  a->send(1, text(350));
  a->send(2, text(10));
  ASSERT_EQ(a->endpoint.sent.size(), 5U);
  for (std::size_t left = 5; left > 1; --left) {
    end(carry(left - 1));
    EXPECT_THAT(b->received(), IsEmpty());
  }
  EXPECT_FALSE(all_settled());
  end(carry());
  EXPECT_TRUE(all_settled());
  EXPECT_THAT(b->received(), ElementsAre(1, 2));
}

TEST_F(FragmentsTest, MoreThanThereAreCreditsFor) {
  cut(Messenger::message_bytes(10));
  a->send(1, text(1000));
  EXPECT_EQ(a->endpoint.sent.size(), credits);
  a->send(2, text(15));
  carry_all();
  const auto got = b->messages();
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].bytes, text(1000));
  EXPECT_EQ(got[1].bytes, text(15));
  EXPECT_TRUE(all_settled());
}

TEST_F(FragmentsTest, WaitForRoom) {
  a->send(1, text(150));
  a->endpoint.answer.status = PostStatus::again;
  a->send(2, text(250));
  EXPECT_EQ(a->endpoint.sent.size(), 2U);
  a->endpoint.answer.status = PostStatus::posted;
  carry_all();
  EXPECT_THAT(b->received(), ElementsAre(1, 2));
}

TEST_F(FragmentsTest, WhatTheWayLosesGoesByTheControlConnection) {
  a->send(1, text(350));
  end(carry(3));
  lose_first();
  lose_first();
  end(carry());
  exchange_notices();
  expect_received(350);
  EXPECT_TRUE(all_settled());
  // The way is left alone now: all of it goes around, however slow this machine is.
  a->other->routes.front()->aside_until = std::numeric_limits<Clock::rep>::max();
  a->send(2, text(1024));
  EXPECT_THAT(a->endpoint.sent, IsEmpty());
  const auto until = soon();
  while (!all_settled() && !until.passed()) {
    exchange_notices();
    b->messenger.pump();
    for (auto& sent : std::exchange(b->endpoint.sent, {})) {
      a->endpoint.arrive(sent.message);
      end(sent);
    }
    a->messenger.pump();
  }
  expect_received(1024);
}

TEST_F(FragmentsTest, TheSmallerPacketOfTheTwoCounts) {
  cut(most_packet, Messenger::message_bytes(most));
  a->send(1, text(350));
  EXPECT_EQ(a->endpoint.sent.size(), 4U);
  carry_all();
  expect_received(350);
}

TEST_F(FragmentsTest, ATransferEndsWhenAllOfItsSignalIsDelivered) {
  NoHost host;
  TransferOptions options;
  options.signal = Signal{7, {}};
  const auto transfer = std::make_shared<TransferState>(
      make_submission(make_prepared(make_peer(1), scattered(0, 1)), std::move(options)), host);
  transfer->start({0});
  ASSERT_TRUE(a->other->outbox.push({MessageKind::signal, 7, text(350), transfer}, soon()));
  a->messenger.attend(*a->other);
  a->messenger.pump();
  for (const std::size_t index : {3, 1, 0}) {
    end(carry(index));
    EXPECT_FALSE(transfer->ended());
  }
  end(carry());
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(FragmentsTest, FlushOnceForEachMessage) {
  ASSERT_TRUE(a->other->outbox.push({MessageKind::signal, 7, text(350), nullptr}, soon()));
  a->messenger.attend(*a->other);
  a->messenger.pump();
  carry_all();
  EXPECT_EQ(b->flushes, 1U);
  EXPECT_EQ(b->expected(7), Code{});
}

TEST_F(FragmentsTest, APeerThatDiesEndsWhatIsHalfSent) {
  cut(Messenger::message_bytes(10));
  a->send(1, text(1000));
  a->other->set_down(Error(Code::peer_down, "gone"));
  a->messenger.peer_died(*a->other);
  EXPECT_TRUE(a->other->outbox.wait_idle(Deadline::now()));
  for (auto& sent : std::exchange(a->endpoint.sent, {})) end(sent, false);
  EXPECT_TRUE(a->messenger.idle());
}

// A sender that does not keep to what it was told.
TEST_F(FragmentsTest, WhatIsTooLongIsDroppedAndCostsNoMore) {
  a->send(1, text(max_message + 1));
  carry_all();
  a->send(2, text(5 * max_message));
  carry_all();
  a->send(3, text(max_message));
  carry_all();
  EXPECT_THAT(b->received(), ElementsAre(3));
  EXPECT_TRUE(all_settled());
}

TEST_F(MessengerTest, CreditsThatAreToldTwiceCountOnce) {
  for (std::uint64_t tag = 0; tag < credits; ++tag) a->send(tag);
  while (!a->endpoint.sent.empty()) end(carry());
  b->messenger.pump();
  ASSERT_FALSE(b->endpoint.sent.empty());
  for (const auto& sent : b->endpoint.sent) {
    a->endpoint.arrive(sent.message);
    a->endpoint.arrive(sent.message);
  }
  std::size_t went = 0;
  for (std::uint64_t tag = 0; tag < 2 * credits; ++tag) a->send(tag);
  went = a->endpoint.sent.size();
  EXPECT_EQ(went, credits);
}

/// `b` promises few at first, and has receives for so many.
class CreditsTest : public MessengerTest {
 protected:
  static constexpr std::size_t first = 2, reserve = 4;
  struct Promising : Side {
    Promising(std::uint64_t own_token, std::uint64_t their_token, std::size_t receives)
        : Side(with_path_failures(), own_token, their_token, 2, first, most_packet, most_packet,
               first, receives) {}
  };
  void open(std::size_t receives) {
    a = std::make_unique<Promising>(11, 22, receives);
    b = std::make_unique<Promising>(22, 11, receives);
  }
  void SetUp() override { open(100); }
  void send(std::size_t count) {
    for (std::uint64_t tag = 0; tag < count; ++tag) a->send(tag);
  }
  /// What `a` has sent, and the credits that come back for it; returns how many packets.
  std::size_t carry_round() {
    const std::size_t count = a->endpoint.sent.size();
    for (std::size_t left = count; left > 0; --left) end(carry());
    EXPECT_LE(b->messenger.promised(), b->messenger.posted());
    b->messenger.pump();
    for (auto& back : std::exchange(b->endpoint.sent, {})) {
      a->endpoint.arrive(back.message);
      end(back);
    }
    a->messenger.pump();
    return count;
  }
  /// All that waits to be sent. Returns the most that were under way at a time.
  std::size_t carry_all() {
    std::size_t most = 0, idle = 0;
    for (int rounds = 0; idle < 2 && rounds < 1000; ++rounds) {
      const std::size_t count = carry_round();
      idle = count == 0 ? idle + 1 : 0;
      most = std::max(most, count);
    }
    return most;
  }
  /// What `a` has to say to `b`.
  void pass_on() {
    for (const Notice& notice : std::exchange(a->told, {}))
      b->messenger.credits_given_back(*b->other, std::get<CreditsGivenBack>(notice).count);
  }
  void tidy() {
    a->messenger.tidy();
    pass_on();
    carry_round();
    b->messenger.tidy();
  }
};

TEST_F(CreditsTest, ABusyPeerGetsMoreAndAnIdleOneGivesThemBack) {
  EXPECT_EQ(b->messenger.promised(), first + reserve);
  for (const std::size_t count : {90, 91, 92, 93}) {
    send(count);
    EXPECT_EQ(carry_all(), credits);
    EXPECT_EQ(b->received().size(), count);
    EXPECT_EQ(b->messenger.promised(), credits + reserve);
    tidy();
    EXPECT_EQ(b->messenger.promised(), credits + reserve) << "it has just sent";
    for (int i = 0; i < 2; ++i) tidy();  // first what is spare, then what comes back
    EXPECT_EQ(b->messenger.promised(), first + reserve);
  }
}

TEST_F(CreditsTest, APeerThatIsHeldBackGetsAllThatItMayHave) {
  b->other->mailbox.message_arrived(99, Blob(std::size_t{1} << 20));
  ASSERT_TRUE(b->other->mailbox.full());
  send(3 * credits);
  for (int i = 0; i < 10; ++i) carry_round();
  EXPECT_EQ(b->messenger.promised(), credits + reserve);
  EXPECT_EQ(b->received().size(), 1 + credits);
  b->messenger.attend(*b->other);  // there is room now
  carry_all();
  EXPECT_EQ(b->received().size(), 2 * credits);
}

TEST_F(CreditsTest, CreditsThatCrossTheirReturnAreTheReceivers) {
  for (std::size_t count = 80; count < 90; ++count) {
    open(100);
    send(count);
    EXPECT_EQ(carry_all(), credits);
    for (int i = 0; i < 2; ++i) a->messenger.tidy();
    ASSERT_EQ(a->told.size(), 1U);
    // `b` does not know it yet, and returns credits as before.
    send(credits);
    std::size_t under_way = 0;
    for (int i = 0; i < 5; ++i) under_way = std::max(under_way, carry_round());
    EXPECT_LT(under_way, credits);
    pass_on();
    send(count);
    EXPECT_EQ(carry_all(), credits);
    EXPECT_EQ(b->messenger.promised(), credits + reserve);
    EXPECT_EQ(b->received().size(), 2 * count + credits);
  }
}

TEST_F(CreditsTest, ReceivesAreKeptForPeersThatCome) {
  open(first + reserve + 3);
  send(90);
  EXPECT_EQ(carry_all(), first + 1) << "a quarter of nine receives is kept";
  EXPECT_LE(b->messenger.posted(), first + reserve + 3);
  const auto another = make_known(33, 2);
  const auto refused = b->messenger.add_peer(another, 44);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::unavailable);
}

TEST_F(CreditsTest, MoreThanAPeerHasIsNotGivenBack) {
  b->messenger.credits_given_back(*b->other, 1'000'000);
  EXPECT_EQ(b->messenger.promised(), first + reserve);
}

}  // namespace
}  // namespace weft::core::test
