// Signals and messages against those who wait for them.
#include "peer/mailbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>

#include "parts.hpp"

namespace weft::core::test {
namespace {

constexpr std::size_t ample = std::size_t{1} << 20;

Blob blob(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return Blob(begin, begin + text.size());
}
std::string text(const Blob& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}
std::vector<std::string> texts(const Signals& signals) {
  std::vector<std::string> all;
  for (const Blob& payload : signals.payloads) all.push_back(text(payload));
  return all;
}

std::shared_ptr<ExpectState> expectation(std::uint64_t id, std::uint64_t count,
                                         Late late = Late::keep) {
  return std::make_shared<ExpectState>(std::weak_ptr<EngineState>(), nullptr, id, count, late);
}
std::shared_ptr<ReceiveState> request(std::uint64_t tag, std::uint64_t mask = ~std::uint64_t{0}) {
  return std::make_shared<ReceiveState>(std::weak_ptr<EngineState>(), nullptr, tag, mask);
}
std::shared_ptr<ExpectState> expected(Mailbox& mailbox, std::uint64_t id, std::uint64_t count,
                                      Late late = Late::keep) {
  auto made = expectation(id, count, late);
  mailbox.await(made);
  return made;
}
std::string complaint(const Mailbox& mailbox) {
  return mailbox.overdue(*expectation(7, 1)).message();
}
void give_up(Mailbox& mailbox, std::uint64_t id, Late late = Late::keep) {
  EXPECT_TRUE(mailbox.give_up(*expected(mailbox, id, 1, late)));
}
Error not_sent(std::string why = "no") {
  return Error(Code::remote_failed, std::move(why));
}
std::shared_ptr<ReceiveState> requested(Mailbox& mailbox, std::uint64_t tag,
                                        std::uint64_t mask = ~std::uint64_t{0}) {
  auto made = request(tag, mask);
  mailbox.await(made);
  return made;
}
testing::AssertionResult ended_well(const CompletionSlot& slot) {
  if (!slot.done()) return testing::AssertionFailure() << "still waits";
  if (slot.error()) return testing::AssertionFailure() << slot.error()->to_string();
  return testing::AssertionSuccess();
}
testing::AssertionResult ended_with(const CompletionSlot& slot, Code code) {
  if (!slot.done()) return testing::AssertionFailure() << "still waits";
  if (!slot.error()) return testing::AssertionFailure() << "ended well";
  if (slot.error()->code() == code) return testing::AssertionSuccess();
  return testing::AssertionFailure() << slot.error()->to_string();
}

const Error gone(Code::peer_down, "gone");

TEST(MailboxSignals, CountWhetherTheyComeBeforeOrAfter) {
  Mailbox mailbox("peer", ample);
  mailbox.signal_arrived(7, {});
  mailbox.signal_arrived(7, {});
  const auto waiting = expected(mailbox, 7, 3);
  EXPECT_FALSE(waiting->done());
  mailbox.signal_arrived(8, {});
  EXPECT_FALSE(waiting->done()) << "another id";
  mailbox.signal_arrived(7, {});
  EXPECT_TRUE(ended_well(*waiting));
  EXPECT_EQ(waiting->arrived.count, 3U);
}

TEST(MailboxSignals, GoToTheOldestExpectationFirst) {
  Mailbox mailbox("peer", ample);
  const auto first = expected(mailbox, 1, 2);
  const auto second = expected(mailbox, 1, 1);
  mailbox.signal_arrived(1, blob("a"));
  EXPECT_FALSE(first->done());
  EXPECT_FALSE(second->done());
  mailbox.signal_arrived(1, blob("b"));
  EXPECT_TRUE(ended_well(*first));
  EXPECT_FALSE(second->done());
  mailbox.signal_arrived(1, blob("c"));
  EXPECT_TRUE(ended_well(*second));
  EXPECT_THAT(texts(first->arrived), testing::ElementsAre("a", "b"));
  EXPECT_THAT(texts(second->arrived), testing::ElementsAre("c"));
}

TEST(MailboxSignals, PayloadsStayWithTheirSignals) {
  Mailbox mailbox("peer", ample);
  mailbox.signal_arrived(1, {});
  mailbox.signal_arrived(1, blob("second"));
  mailbox.signal_arrived(1, {});
  mailbox.signal_arrived(1, blob("fourth"));
  const auto first = expected(mailbox, 1, 1);
  const auto rest = expected(mailbox, 1, 2);
  const auto last = expected(mailbox, 1, 1);
  EXPECT_THAT(texts(first->arrived), testing::IsEmpty());
  EXPECT_THAT(texts(rest->arrived), testing::ElementsAre("second"));
  EXPECT_THAT(texts(last->arrived), testing::ElementsAre("fourth"));
}

TEST(MailboxSignals, MillionsOfOneIdAreOnlyCounted) {
  Mailbox mailbox("peer", 1000);
  for (int i = 0; i < 100000; ++i) mailbox.signal_arrived(1, {});
  EXPECT_FALSE(mailbox.full());
  const auto all = expected(mailbox, 1, 100000);
  EXPECT_TRUE(ended_well(*all));
}

TEST(MailboxSignals, AFailureEndsTheOldestExpectationOrTheNextOne) {
  Mailbox mailbox("peer", ample);
  const auto first = expected(mailbox, 1, 1);
  const auto second = expected(mailbox, 1, 1);
  mailbox.signal_failed(1, Error(Code::remote_failed, "no"));
  EXPECT_TRUE(ended_with(*first, Code::remote_failed));
  EXPECT_FALSE(second->done());
  mailbox.signal_arrived(1, {});
  EXPECT_TRUE(ended_well(*second));

  mailbox.signal_failed(2, Error(Code::remote_failed, "no"));
  EXPECT_TRUE(ended_with(*expected(mailbox, 2, 1), Code::remote_failed));
  const auto later = expected(mailbox, 2, 1);
  EXPECT_FALSE(later->done()) << "one failure ends one expectation";
}

TEST(MailboxSignals, WhatHasArrivedIsServedBeforeAFailure) {
  Mailbox mailbox("peer", ample);
  mailbox.signal_arrived(1, {});
  mailbox.signal_failed(1, Error(Code::remote_failed, "no"));
  EXPECT_TRUE(ended_well(*expected(mailbox, 1, 1)));
  EXPECT_TRUE(ended_with(*expected(mailbox, 1, 1), Code::remote_failed));
}

TEST(MailboxSignals, ClosingEndsThoseWhoWaitAndServesWhatIsThere) {
  Mailbox mailbox("peer", ample);
  const auto waiting = expected(mailbox, 1, 2);
  mailbox.signal_arrived(1, {});
  mailbox.signal_arrived(2, blob("kept"));
  mailbox.close(gone);
  mailbox.close(Error(Code::internal, "again"));
  EXPECT_TRUE(ended_with(*waiting, Code::peer_down));
  const auto served = expected(mailbox, 2, 1);
  EXPECT_TRUE(ended_well(*served));
  EXPECT_THAT(texts(served->arrived), testing::ElementsAre("kept"));
  EXPECT_TRUE(ended_with(*expected(mailbox, 2, 1), Code::peer_down));
}

TEST(MailboxSignals, AnExpectationGivenUpTakesNothingMore) {
  Mailbox mailbox("peer", ample);
  const auto first = expected(mailbox, 1, 2);
  const auto second = expected(mailbox, 1, 1);
  mailbox.signal_arrived(1, {});
  mailbox.give_up(*first);
  mailbox.signal_arrived(1, {});
  EXPECT_TRUE(ended_well(*second));
  EXPECT_FALSE(first->done());
  mailbox.give_up(*second);
}

TEST(MailboxMessages, MatchTagsUnderMasksInOrder) {
  Mailbox mailbox("peer", ample);
  mailbox.message_arrived(0x11, blob("a"));
  mailbox.message_arrived(0x21, blob("b"));
  mailbox.message_arrived(0x12, blob("c"));
  const auto low = requested(mailbox, 0x02, 0x0f);
  EXPECT_TRUE(ended_well(*low));
  EXPECT_EQ(text(low->message.bytes), "c");
  EXPECT_EQ(low->message.tag, 0x12U);
  EXPECT_EQ(low->message.peer, "peer");
  EXPECT_EQ(text(requested(mailbox, 0, 0)->message.bytes), "a") << "the oldest";
  const auto exact = requested(mailbox, 0x31);
  EXPECT_FALSE(exact->done());
  EXPECT_EQ(text(requested(mailbox, 0x20, 0xf0)->message.bytes), "b");
}

TEST(MailboxMessages, GoToTheOldestRequestThatMatches) {
  Mailbox mailbox("peer", ample);
  const auto five = requested(mailbox, 5);
  const auto any = requested(mailbox, 0, 0);
  const auto also_five = requested(mailbox, 5);
  mailbox.message_arrived(6, blob("six"));
  mailbox.message_arrived(5, blob("five"));
  EXPECT_EQ(text(any->message.bytes), "six");
  EXPECT_EQ(text(five->message.bytes), "five");
  EXPECT_FALSE(also_five->done());
  EXPECT_TRUE(mailbox.give_up(*also_five));
  EXPECT_FALSE(mailbox.give_up(*five)) << "it has its message";
  mailbox.message_arrived(5, blob("later"));
  EXPECT_FALSE(also_five->done());
  EXPECT_EQ(text(requested(mailbox, 5)->message.bytes), "later");
}

TEST(MailboxMessages, ClosingEndsRequestsAndServesWhatIsThere) {
  Mailbox mailbox("peer", ample);
  const auto waiting = requested(mailbox, 1);
  mailbox.message_arrived(2, blob("kept"));
  mailbox.close(gone);
  EXPECT_TRUE(ended_with(*waiting, Code::peer_down));
  EXPECT_TRUE(ended_well(*requested(mailbox, 2)));
  EXPECT_TRUE(ended_with(*requested(mailbox, 2), Code::peer_down));
}

TEST(MailboxLimit, CountsWhatNobodyAskedForAndTellsWhenThereIsRoom) {
  Mailbox mailbox("peer", 1000);
  int told = 0;
  mailbox.when_room = [&] { ++told; };
  for (int i = 0; i < 5; ++i) mailbox.message_arrived(1, Blob(300));
  EXPECT_TRUE(mailbox.full());
  requested(mailbox, 1);
  EXPECT_TRUE(mailbox.full());
  EXPECT_EQ(told, 0);
  requested(mailbox, 1);
  requested(mailbox, 1);
  EXPECT_FALSE(mailbox.full());
  EXPECT_EQ(told, 1);
  requested(mailbox, 1);
  EXPECT_EQ(told, 1) << "only when it turns";
}

TEST(MailboxLimit, CountsPayloadsOfSignals) {
  Mailbox mailbox("peer", 1000);
  int told = 0;
  mailbox.when_room = [&] { ++told; };
  for (int i = 0; i < 4; ++i) mailbox.signal_arrived(1, Blob(300));
  EXPECT_TRUE(mailbox.full());
  expected(mailbox, 1, 2);
  EXPECT_FALSE(mailbox.full());
  EXPECT_EQ(told, 1);
}

TEST(MailboxLimit, CountsEmptySignalsOfManyIds) {
  Mailbox mailbox("peer", 1000);
  for (std::uint64_t id = 0; id < 100; ++id) mailbox.signal_arrived(id, {});
  EXPECT_TRUE(mailbox.full());
  for (std::uint64_t id = 0; id < 100; ++id) expected(mailbox, id, 1);
  EXPECT_FALSE(mailbox.full());
}

TEST(MailboxOverdue, SaysWhatIsMissingAndFromWhom) {
  Mailbox mailbox("decode-1", ample);
  const auto three = expected(mailbox, 9, 3);
  mailbox.signal_arrived(9, {});
  EXPECT_EQ(mailbox.overdue(*three).to_string(),
            "timed_out: 1 of 3 signals 9 have arrived in time (peer decode-1)");
  EXPECT_EQ(mailbox.overdue(*request(5)).message(),
            "no message with the tag 5 has arrived in time");
  EXPECT_EQ(mailbox.overdue(*request(0xab, 0xf0)).message(),
            "no message with the tag 0xa0 in the bits 0xf0 has arrived in time");
  EXPECT_EQ(mailbox.overdue(*request(5, 0)).message(),
            "no message with any tag has arrived in time");
}

// A peer that were held back for these could never send what is waited for.
TEST(MailboxLimit, DoesNotCountThoseWhoWait) {
  Mailbox mailbox("peer", 1000);
  std::vector<std::shared_ptr<ExpectState>> waiting;
  for (std::uint64_t id = 0; id < 100; ++id) waiting.push_back(expected(mailbox, id, 2));
  EXPECT_FALSE(mailbox.full());
  for (std::uint64_t id = 0; id < 100; ++id) mailbox.signal_arrived(id, Blob(300));
  EXPECT_FALSE(mailbox.full());
  for (const auto& each : waiting) mailbox.give_up(*each);
  EXPECT_FALSE(mailbox.full());
}

// Field fault: signals that came late used up the limit, and the peer was held back for ever.
TEST(MailboxOrphans, LateSignalsNeverHoldThePeerBack) {
  Mailbox mailbox("peer", 10'000);
  for (std::uint64_t id = 0; id < 2000; ++id) {
    give_up(mailbox, 3 * id);
    mailbox.signal_arrived(3 * id, Blob(100));
    ASSERT_FALSE(mailbox.full()) << id;
  }
  EXPECT_LE(mailbox.unclaimed().bytes, 10'000U);
  // What was kept is there; what was not is told of.
  EXPECT_TRUE(ended_well(*expected(mailbox, 3 * 1999, 1)));
  EXPECT_TRUE(ended_with(*expected(mailbox, 0, 1), Code::queue_full));
  EXPECT_FALSE(expected(mailbox, 0, 1)->done()) << "told of once";
  EXPECT_EQ(complaint(mailbox), "signal 7 has not arrived in time");
}

TEST(MailboxOrphans, AWaitMayBeRepeated) {
  Mailbox mailbox("peer", 1000);
  give_up(mailbox, 1);
  mailbox.signal_arrived(1, blob("late"));
  const auto again = expected(mailbox, 1, 1);
  EXPECT_TRUE(ended_well(*again));
  EXPECT_THAT(texts(again->arrived), testing::ElementsAre("late"));
}

TEST(MailboxOrphans, AreDroppedAtOnceIfTheExpectationSaysSo) {
  const auto dropped = std::make_shared<Mailbox::DropCounter>();
  Mailbox mailbox("peer", 1000, dropped);
  give_up(mailbox, 1, Late::drop);
  mailbox.signal_arrived(1, blob("late"));
  mailbox.signal_failed(1, not_sent());
  EXPECT_EQ(mailbox.unclaimed().bytes, 0U);
  EXPECT_EQ(*dropped, 2U);
  const auto again = expected(mailbox, 1, 1);
  EXPECT_FALSE(again->done());
  mailbox.signal_arrived(1, {});
  EXPECT_TRUE(ended_well(*again)) << "it is expected again";
}

TEST(MailboxOrphans, AreNoneIfTheExpectationHolds) {
  Mailbox mailbox("peer", 1000);
  give_up(mailbox, 1, Late::hold);
  for (int i = 0; i < 10; ++i) mailbox.signal_arrived(1, Blob(100));
  EXPECT_TRUE(mailbox.full());
  EXPECT_TRUE(ended_well(*expected(mailbox, 1, 10)));
}

TEST(MailboxOrphans, ComeFromAnExpectationThatFailedToo) {
  Mailbox mailbox("peer", 1000);
  for (std::uint64_t id = 0; id < 100; ++id) {
    const auto three = expected(mailbox, id, 3);
    mailbox.signal_failed(id, not_sent());
    EXPECT_TRUE(ended_with(*three, Code::remote_failed));
    mailbox.signal_arrived(id, {});
    mailbox.signal_arrived(id, {});
    EXPECT_FALSE(mailbox.full());
  }
}

TEST(MailboxOrphans, AnExpectationThatIsLeftGetsAllThatComes) {
  Mailbox mailbox("peer", 1000);
  const auto stays = expected(mailbox, 1, 2);
  const auto leaves = expected(mailbox, 1, 1, Late::drop);
  EXPECT_TRUE(mailbox.give_up(*leaves));
  mailbox.signal_arrived(1, {});
  mailbox.signal_arrived(1, {});
  EXPECT_TRUE(ended_well(*stays));
}

TEST(MailboxOrphans, GoOldestFirst) {
  Mailbox mailbox("peer", 1000);
  for (std::uint64_t id : {1, 2, 3}) give_up(mailbox, id);
  for (std::uint64_t id : {2, 1, 3}) mailbox.signal_arrived(id, Blob(100));
  EXPECT_TRUE(ended_with(*expected(mailbox, 2, 1), Code::queue_full));
  EXPECT_TRUE(ended_well(*expected(mailbox, 1, 1)));
  EXPECT_TRUE(ended_well(*expected(mailbox, 3, 1)));
}

// They come by the control connection, which can't be held back.
TEST(MailboxOrphans, FailuresThatNobodyExpectsLoseTheirReasons) {
  const auto dropped = std::make_shared<Mailbox::DropCounter>();
  Mailbox mailbox("peer", 10'000, dropped);
  for (std::uint64_t id = 0; id < 100'000; ++id) mailbox.signal_failed(id, not_sent("reason"));
  EXPECT_FALSE(mailbox.full());
  EXPECT_LE(mailbox.unclaimed().bytes, 10'000U);
  EXPECT_EQ(mailbox.unclaimed().ids, 100'000U);
  const auto first = expected(mailbox, 0, 1), last = expected(mailbox, 99'999, 1);
  EXPECT_TRUE(ended_with(*first, Code::remote_failed));
  EXPECT_TRUE(ended_with(*last, Code::remote_failed));
  EXPECT_EQ(first->error()->message().find("reason"), std::string::npos);
  EXPECT_EQ(last->error()->message(), "reason");
  EXPECT_FALSE(expected(mailbox, 0, 1)->done()) << "one failure ends one expectation";
  EXPECT_EQ(*dropped, 0U);
}

TEST(MailboxOrphans, FailuresWithoutNeighboursAreBoundedToo) {
  const auto dropped = std::make_shared<Mailbox::DropCounter>();
  Mailbox mailbox("peer", 10'000, dropped);
  constexpr std::uint64_t count = 2 * SignalCounters::most_ranges;
  for (std::uint64_t id = 0; id < count; ++id) mailbox.signal_failed(2 * id, not_sent());
  EXPECT_LE(mailbox.unclaimed().bytes, 10'000U);
  EXPECT_EQ(*dropped + mailbox.unclaimed().ids, count);
  EXPECT_TRUE(ended_with(*expected(mailbox, count, 1), Code::remote_failed));
  const auto vanished = expected(mailbox, 0, 1);
  EXPECT_FALSE(vanished->done());
  EXPECT_THAT(complaint(mailbox), testing::HasSubstr("dropped"));
}

TEST(MailboxOrphans, ManyFailuresOfOneIdAreOnlyCounted) {
  Mailbox mailbox("peer", 1000);
  for (int i = 0; i < 1000; ++i) mailbox.signal_failed(1, not_sent());
  EXPECT_FALSE(mailbox.full());
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(ended_with(*expected(mailbox, 1, 1), Code::remote_failed));
  EXPECT_FALSE(expected(mailbox, 1, 1)->done());
}

TEST(MailboxOrphans, MakeRoomForWhatWasNeverExpected) {
  Mailbox mailbox("peer", 2000);
  mailbox.signal_arrived(1, Blob(300));
  give_up(mailbox, 2);
  mailbox.signal_arrived(2, Blob(300));
  EXPECT_EQ(mailbox.unclaimed().ids, 2U);
  mailbox.message_arrived(3, Blob(900));
  EXPECT_FALSE(mailbox.full()) << "the late one went";
  EXPECT_TRUE(ended_well(*expected(mailbox, 1, 1)));
  EXPECT_TRUE(ended_with(*expected(mailbox, 2, 1), Code::queue_full));
}

TEST(MailboxForget, DropsWhatIsThereAndWhatComes) {
  const auto dropped = std::make_shared<Mailbox::DropCounter>();
  Mailbox mailbox("peer", 1000, dropped);
  int told = 0;
  mailbox.when_room = [&] { ++told; };
  for (std::uint64_t id = 0; id < 100; ++id) mailbox.signal_arrived(id, Blob(10));
  mailbox.signal_failed(50, not_sent());
  EXPECT_TRUE(mailbox.full());
  EXPECT_THAT(complaint(mailbox), testing::HasSubstr("forget"));
  mailbox.forget(1, 98);
  EXPECT_FALSE(mailbox.full());
  EXPECT_EQ(complaint(mailbox), "signal 7 has not arrived in time");
  EXPECT_EQ(told, 1);
  EXPECT_EQ(*dropped, 99U);
  mailbox.signal_arrived(50, {});
  EXPECT_EQ(mailbox.unclaimed().ids, 2U);
  EXPECT_TRUE(ended_well(*expected(mailbox, 0, 1)));
  EXPECT_TRUE(ended_well(*expected(mailbox, 99, 1)));
  const auto again = expected(mailbox, 50, 1);
  EXPECT_FALSE(again->done());
  mailbox.signal_arrived(50, {});
  EXPECT_TRUE(ended_well(*again));
}

TEST(MailboxForget, LeavesThoseThatAreWaitedFor) {
  Mailbox mailbox("peer", 1000);
  const auto waiting = expected(mailbox, 5, 2);
  mailbox.signal_arrived(5, {});
  mailbox.forget(0, ~std::uint64_t{0});
  mailbox.signal_arrived(5, {});
  mailbox.signal_arrived(4, {});
  EXPECT_TRUE(ended_well(*waiting));
  EXPECT_EQ(mailbox.unclaimed().ids, 0U);
}

TEST(MailboxForget, EndsTheMemoryOfWhatWasDropped) {
  Mailbox mailbox("peer", 0);
  give_up(mailbox, 1);
  mailbox.signal_arrived(1, {});
  mailbox.signal_failed(2, not_sent());
  mailbox.forget(1, 2);
  EXPECT_FALSE(expected(mailbox, 1, 1)->done());
  EXPECT_FALSE(expected(mailbox, 2, 1)->done());
}

/// Random arrivals, failures, waits and forgetting: memory stays within its bounds, and an id that
/// is left alone keeps what it had.
TEST(MailboxOrphans, NothingElseIsLost) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    Mailbox mailbox("peer", 3000);
    mailbox.signal_arrived(1000, blob("mine"));
    for (int step = 0; step < 500; ++step) {
      const std::uint64_t id = random() % 50;
      switch (random() % 5) {
        case 0:
          mailbox.signal_failed(id, not_sent(std::to_string(random() % 3)));
          break;
        case 1:
          mailbox.forget(id, id + random() % 5);
          break;
        case 2:
          mailbox.give_up(*expected(mailbox, id, 1 + random() % 3));
          break;
        default:
          mailbox.give_up(*expected(mailbox, id, 1000));
          mailbox.signal_arrived(id, Blob(random() % 200));
      }
      ASSERT_LE(mailbox.unclaimed().bytes, 3000U) << "seed " << seed;
    }
    const auto mine = expected(mailbox, 1000, 1);
    ASSERT_TRUE(ended_well(*mine)) << "seed " << seed;
    EXPECT_THAT(texts(mine->arrived), testing::ElementsAre("mine"));
    mailbox.forget(0, 100);
    EXPECT_EQ(mailbox.unclaimed().bytes, 0U) << "seed " << seed;
    EXPECT_EQ(mailbox.unclaimed().ids, 0U) << "seed " << seed;
  }
}

/// Asks for the next signal where it is told of one.
class AskingAgain : public ExpectState {
 public:
  explicit AskingAgain(Mailbox& mailbox)
      : ExpectState(std::weak_ptr<EngineState>(), nullptr, 1, 1), mailbox_(mailbox) {}
  std::shared_ptr<ExpectState> next;

 private:
  void ended(const Error*) override { next = expected(mailbox_, 1, 1); }
  Mailbox& mailbox_;
};

TEST(Mailbox, TheCallbackMayAskAgain) {
  Mailbox mailbox("peer", ample);
  const auto first = std::make_shared<AskingAgain>(mailbox);
  mailbox.await(first);
  mailbox.signal_arrived(1, {});
  ASSERT_TRUE(first->next);
  mailbox.signal_arrived(1, {});
  EXPECT_TRUE(ended_well(*first->next));
}

/// Random arrivals and expectations against plain counting.
TEST(Mailbox, EverySignalIsGivenOnceInOrder) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    Mailbox mailbox("peer", ample);
    std::array<std::vector<std::string>, 3> sent;
    std::array<std::vector<std::shared_ptr<ExpectState>>, 3> asked;
    for (int step = 0; step < 200; ++step) {
      const std::size_t id = random() % 3;
      if (random() % 3 != 0) {
        const bool payload = random() % 2 == 0;
        sent[id].push_back(payload ? std::to_string(step) : "");
        mailbox.signal_arrived(id, payload ? blob(sent[id].back()) : Blob());
      } else {
        asked[id].push_back(expected(mailbox, id, 1 + random() % 4));
      }
    }
    for (std::size_t id = 0; id < 3; ++id) {
      std::size_t at = 0;
      for (const auto& each : asked[id]) {
        const bool enough = at + each->wanted <= sent[id].size();
        ASSERT_EQ(each->done(), enough) << "seed " << seed;
        if (!enough) break;
        std::vector<std::string> payloads;
        for (std::uint64_t i = 0; i < each->wanted; ++i, ++at)
          if (!sent[id][at].empty()) payloads.push_back(sent[id][at]);
        ASSERT_EQ(texts(each->arrived), payloads) << "seed " << seed;
      }
    }
  }
}

TEST(Mailbox, ServesManyThreads) {
  Mailbox mailbox("peer", ample);
  constexpr int count = 2000;
  std::thread sender([&] {
    for (int i = 0; i < count; ++i) {
      mailbox.signal_arrived(1, blob("x"));
      mailbox.message_arrived(2, blob("y"));
    }
  });
  std::vector<std::thread> askers;
  std::atomic<int> received{0};
  for (int i = 0; i < 2; ++i)
    askers.emplace_back([&] {
      for (int round = 0; round < count / 2; ++round) {
        const auto signal = expected(mailbox, 1, 1);
        const auto message = requested(mailbox, 2);
        ASSERT_TRUE(signal->wait(soon()));
        ASSERT_TRUE(message->wait(soon()));
        ++received;
      }
    });
  sender.join();
  for (std::thread& each : askers) each.join();
  EXPECT_EQ(received, count);
  EXPECT_FALSE(expected(mailbox, 1, 1)->done());
}

}  // namespace
}  // namespace weft::core::test
