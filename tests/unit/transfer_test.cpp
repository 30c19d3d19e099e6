// One transfer under a scripted engine and scripted rails: it ends once, says so once, and lets go
// when nothing is out any more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "parts.hpp"

namespace weft::core::test {
namespace {

bool holds_memory(const TransferState& transfer) {
  const PreparedState& prepared = transfer.prepared();
  const bool holds = !prepared.local->users().idle();
  EXPECT_EQ(holds, !prepared.remote->users().idle());
  return holds;
}

class Host final : public TransferHost {
 public:
  void verify(const std::shared_ptr<TransferState>&) override { ++checks; }
  void raise_signal(const std::shared_ptr<TransferState>& transfer) override {
    signals.push_back(transfer);
    if (refuse_signals) transfer->signal_ended(Error(Code::peer_down, "gone"));
  }
  void offer_again(const std::shared_ptr<TransferState>&) override { ++offers; }
  void transfer_ends(TransferState& transfer) override {
    EXPECT_FALSE(transfer.ended()) << "it would look as if it still took room";
    ++ending;
  }
  void transfer_ended(TransferState& transfer) override {
    EXPECT_TRUE(transfer.ended());
    ++ended;
    EXPECT_EQ(ending, ended);
    EXPECT_TRUE(!signals.empty() || holds_memory(transfer)) << "let go before its end was told";
  }
  std::vector<std::shared_ptr<TransferState>> signals;
  bool refuse_signals = false;
  int checks = 0, offers = 0, ending = 0, ended = 0;
};

class TransferTest : public testing::Test {
 protected:
  void begin(PieceList pieces, bool signal = false, std::vector<std::size_t> rails = {0},
             Direction direction = Direction::write, bool verify = false) {
    TransferOptions options;
    options.verify = verify;
    options.cookie = 77;
    if (signal) options.signal = Signal{5, {}};
    options.on_end = [this](const Ended& ended) {
      ++callbacks;
      EXPECT_EQ(ended.cookie, 77U);
      EXPECT_EQ(ended.error == nullptr, ended.state == State::done);
      final_state = ended.state;
    };
    const auto prepared = make_prepared(peer, std::move(pieces), direction, 4);
    prepared->mapped = true;  // for what its caller copies
    prepared->contact = contact;
    std::vector<std::size_t> may_carry = rails;
    for (const std::size_t rail : spare)
      if (std::find(rails.begin(), rails.end(), rail) == rails.end()) may_carry.push_back(rail);
    prepared->path = make_rail_set(*peer, may_carry);
    for (std::size_t rail = 0; rail < proofs.size(); ++rail)
      prepared->path->of(rail)->proofs = proofs[rail];
    prepared->reach = std::move(reach);
    transfer = std::make_shared<TransferState>(make_submission(prepared, std::move(options)), host);
    alive = transfer;
    transfer->start(std::move(rails));
  }
  std::vector<Chunk> take(std::size_t count, std::uint64_t limit = 100, std::size_t rail = 0) {
    std::vector<Chunk> chunks(count);
    chunks.resize(transfer->take(rail, chunks, limit));
    return chunks;
  }
  Error broken() { return Error(Code::fabric_failed, "broken"); }

  /// It has ended as `state`, told so once, and kept nothing.
  void expect_over(State state) {
    EXPECT_EQ(transfer->state(), state);
    EXPECT_EQ(final_state, state);
    EXPECT_EQ(callbacks, 1);
    EXPECT_EQ(host.ended, 1);
    EXPECT_FALSE(holds_memory(*transfer));
    EXPECT_TRUE(transfer->quiescent());
    EXPECT_TRUE(transfer->wait_ended(Deadline::now()));
    EXPECT_TRUE(transfer->wait_quiescent(Deadline::now()));
    if (state == State::done) {
      EXPECT_THAT(transfer->placed(), testing::Each(Placed::all));
    }
    EXPECT_EQ(transfer->error().has_value(), state != State::done);
    host.signals.clear();
    transfer.reset();
    EXPECT_TRUE(alive.expired()) << "somebody still holds the transfer";
  }

  const std::shared_ptr<PeerState> peer = make_peer(4);
  std::vector<std::size_t> proofs;  // by rail: how many its chunks need
  std::vector<std::size_t> spare;   // rails that may take over
  Reach reach;
  bool contact = false;
  Host host;
  int callbacks = 0;
  State final_state = State::active;
  std::shared_ptr<TransferState> transfer;
  std::weak_ptr<TransferState> alive;
};

TEST_F(TransferTest, IsDoneWhenAllChunksHaveCompleted) {
  begin(scattered(3, 10));
  const auto chunks = take(8);
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_FALSE(transfer->quiescent());
  for (const Chunk& chunk : chunks) {
    EXPECT_EQ(transfer->state(), State::active);
    transfer->completed(0, chunk);
  }
  expect_over(State::done);
}

/// All that the rail owes of a contact, answered.
class ContactTest : public TransferTest {
 protected:
  ContactTest() { contact = true; }
  std::vector<Chunk> take_all(std::size_t rail) {
    std::vector<Chunk> owed;
    while (const auto kind = transfer->owed_proof(rail)) {
      Chunk& proof = owed.emplace_back();
      EXPECT_TRUE(transfer->take_proof(rail, *kind, proof));
      EXPECT_EQ(proof.local, rail);
    }
    return owed;
  }
  void answer(std::size_t rail) {
    const auto owed = take_all(rail);
    EXPECT_FALSE(owed.empty());
    for (const Chunk& each : owed) EXPECT_FALSE(transfer->completed(rail, each)) << "of another";
  }
};

TEST_F(ContactTest, EndsWhenEachRailHasItsAnswers) {
  begin(scattered(1, 0), false, {0, 2});
  EXPECT_EQ(transfer->state(), State::active);
  EXPECT_TRUE(take(1).empty()) << "it has no bytes";
  EXPECT_FALSE(transfer->owed_proof(1));
  answer(2);
  EXPECT_EQ(transfer->state(), State::active);
  answer(0);
  expect_over(State::done);
}

TEST_F(ContactTest, LeavesOutARailThatGetsNone) {
  begin(scattered(1, 0), false, {0, 1, 2});
  answer(2);
  transfer->rail_leaves(0, broken());
  EXPECT_FALSE(transfer->owed_proof(0));
  const auto owed = take_all(1);
  EXPECT_TRUE(transfer->rail_steps_back(1)) << "it has had no room";
  EXPECT_EQ(transfer->state(), State::active) << "what is held may be out";
  transfer->give_back(owed);
  EXPECT_FALSE(transfer->owed_proof(1));
  expect_over(State::done);
}

TEST_F(ContactTest, FailsWhenNoRailGetsAnAnswer) {
  begin(scattered(1, 0), false, {0, 1});
  const auto owed = take_all(1);
  transfer->rail_leaves(0, broken());
  for (const Chunk& each : owed) transfer->failed(each, broken());
  EXPECT_EQ(transfer->error()->code(), Code::fabric_failed);
  expect_over(State::failed);
}

TEST_F(TransferTest, KeepsItselfAliveWhileChunksAreOut) {
  begin(scattered(1, 10));
  const auto chunks = take(1);
  TransferState& state = *transfer;
  const auto local = transfer->prepared().local;
  transfer.reset();
  ASSERT_FALSE(alive.expired());
  state.completed(0, chunks[0]);
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(callbacks, 1);
  EXPECT_TRUE(local->users().idle());
}

TEST_F(TransferTest, IsDoneWhenItWasCopiedAtOnce) {
  begin(scattered(3, 10), false, {0, 2});
  transfer->copied_inline(2, {.bytes = 30, .operations = 3, .runs = 3});
  const Report report = transfer->report();
  EXPECT_EQ(report.bytes_done, 30U);
  EXPECT_EQ(report.runs, 3U);
  EXPECT_EQ(report.operations, 3U);
  ASSERT_EQ(report.rails.size(), 1U);
  EXPECT_EQ(report.rails.front().bytes, 30U);
  EXPECT_THAT(transfer->placed(), testing::Each(Placed::all));
  EXPECT_TRUE(take(1).empty());
  EXPECT_EQ(transfer->copied(), 30U);
  expect_over(State::done);
}

/// A read that was proven when it was copied owes no proof any more.
TEST_F(TransferTest, ASignalFollowsWhatWasCopiedAtOnce) {
  for (const Direction direction : {Direction::write, Direction::read}) {
    host = {};
    callbacks = 0;
    begin(scattered(3, 10), true, {0}, direction);
    transfer->copied_inline(0, {.bytes = 30, .operations = 3, .runs = 3, .proven = true});
    EXPECT_EQ(transfer->state(), State::active);
    ASSERT_EQ(host.signals.size(), 1U);
    transfer->signal_ended(std::nullopt);
    expect_over(State::done);
  }
}

TEST_F(TransferTest, WhatWasCopiedAtOnceIsNotCarriedAgain) {
  begin(scattered(4, 10), false, {0, 1});
  transfer->copied_inline(1, {.bytes = 20, .operations = 2, .runs = 2});
  EXPECT_EQ(host.offers, 0) << "whoever submits it offers it";
  EXPECT_EQ(transfer->state(), State::active);
  const auto chunks = take(8);
  ASSERT_EQ(chunks.size(), 2U);
  EXPECT_EQ(chunks.front().at, 20U);
  transfer->completed(0, chunks[0]);
  transfer->failed(chunks[1], broken());
  EXPECT_THAT(transfer->placed(),
              testing::ElementsAre(Placed::all, Placed::all, Placed::all, Placed::unknown));
  const Report report = transfer->report();
  EXPECT_EQ(report.bytes_done, 30U);
  EXPECT_EQ(report.operations, 4U);
  EXPECT_EQ(report.runs, 4U);
  EXPECT_EQ(transfer->copied(), 20U);
  expect_over(State::failed);
}

/// The word of the lease could not be read, or told of its end.
TEST_F(TransferTest, AReadThatWasCopiedAtOnceOwesItsProof) {
  begin(scattered(3, 10), true, {0}, Direction::read);
  transfer->copied_inline(0, {.bytes = 30, .operations = 3, .runs = 3});
  EXPECT_EQ(host.offers, 0) << "whoever submits it offers it";
  EXPECT_TRUE(host.signals.empty());
  EXPECT_TRUE(take(1).empty());
  ASSERT_EQ(transfer->owed_proof(0), Chunk::Kind::epoch);
  Chunk proof;
  ASSERT_TRUE(transfer->take_proof(0, Chunk::Kind::epoch, proof));
  transfer->failed(proof, Error(Code::stale, "the owner ended the grant"));
  EXPECT_EQ(transfer->error()->code(), Code::stale);
  EXPECT_THAT(transfer->placed(), testing::Each(Placed::unknown));
  expect_over(State::failed);
}

/// The other side may not see it yet.
TEST_F(TransferTest, AWriteThatWasCopiedAtOnceOwesWhatOthersOwe) {
  proofs = {1};
  begin(scattered(3, 10));
  transfer->copied_inline(0, {.bytes = 30, .operations = 3, .runs = 3});
  EXPECT_EQ(transfer->owed_proof(0), Chunk::Kind::arrival);
  Chunk proof;
  ASSERT_TRUE(transfer->take_proof(0, Chunk::Kind::arrival, proof));
  transfer->completed(0, proof);
  expect_over(State::done);
}

TEST_F(TransferTest, WhatWasNotCopiedAtOnceIsUntouched) {
  begin(scattered(2, 10));
  transfer->copied_inline(0, {});
  transfer->end_early(State::failed, broken());
  EXPECT_THAT(transfer->placed(), testing::Each(Placed::none));
  expect_over(State::failed);
}

TEST_F(TransferTest, WithoutPiecesIsDoneAtOnce) {
  begin(scattered(0, 0));
  expect_over(State::done);
}

TEST_F(TransferTest, OfEmptyPiecesIsDoneAtOnce) {
  begin(scattered(5, 0));
  expect_over(State::done);
}

TEST_F(TransferTest, AReadCountsOnlyOnceItsLeaseIsProven) {
  begin(scattered(2, 10), true, {0, 1}, Direction::read);
  const auto chunks = take(2);
  EXPECT_FALSE(transfer->completed(0, chunks[0])) << "a chunk is out still";
  EXPECT_FALSE(transfer->owed_proof(0));
  // The rail with the last chunk carries it next; if it can't, any may, and only one does.
  std::optional<Chunk> proof = transfer->completed(0, chunks[1]);
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->kind, Chunk::Kind::epoch);
  EXPECT_EQ(transfer->state(), State::active);
  EXPECT_FALSE(transfer->owed_proof(1));
  transfer->give_back(*proof);
  EXPECT_EQ(transfer->owed_proof(0), Chunk::Kind::epoch);
  ASSERT_TRUE(transfer->take_proof(1, Chunk::Kind::epoch, *proof));
  EXPECT_FALSE(transfer->owed_proof(0));
  EXPECT_TRUE(host.signals.empty());
  EXPECT_FALSE(transfer->completed(1, *proof));
  ASSERT_EQ(host.signals.size(), 1U);
  transfer->signal_ended(std::nullopt);
  EXPECT_EQ(transfer->placed(), (std::vector{Placed::all, Placed::all}));
  expect_over(State::done);
}

TEST_F(TransferTest, AReadWhoseLeaseHasEndedIsWorthNothing) {
  begin(scattered(2, 10), false, {0}, Direction::read);
  const auto chunks = take(2);
  transfer->completed(0, chunks[0]);
  const auto proof = transfer->completed(0, chunks[1]);
  ASSERT_TRUE(proof);
  transfer->failed(*proof, Error(Code::stale, "over"));
  EXPECT_EQ(transfer->placed(), (std::vector{Placed::unknown, Placed::unknown}));
  expect_over(State::failed);
}

TEST_F(TransferTest, TellsWhatBecameOfItsPieces) {
  begin(scattered(5, 10));
  const auto chunks = take(4);
  transfer->completed(0, chunks[0]);
  transfer->failed(chunks[1], broken());
  EXPECT_EQ(transfer->placed(), (std::vector{Placed::all, Placed::unknown, Placed::unknown,
                                             Placed::unknown, Placed::none}));
  transfer->completed(0, chunks[2]);
  transfer->give_back(chunks[3]);
  EXPECT_EQ(transfer->placed(),
            (std::vector{Placed::all, Placed::unknown, Placed::all, Placed::none, Placed::none}));
  expect_over(State::failed);
}

TEST_F(TransferTest, WhatAnotherAttemptMayHaveTouchedIsUnknown) {
  begin(scattered(2, 10));
  auto chunks = take(2);
  chunks[0].touched = true;
  for (const Chunk& chunk : chunks) transfer->give_back(chunk);
  transfer->cancel();
  EXPECT_EQ(transfer->placed(), (std::vector{Placed::unknown, Placed::none}));
  expect_over(State::cancelled);
}

TEST_F(TransferTest, BytesThatArrivedAreNotKnownToBePlacedWithoutTheirProof) {
  proofs = {1};
  begin(scattered(2, 10));
  for (const Chunk& chunk : take(2)) transfer->completed(0, chunk);
  transfer->end_early(State::timed_out, Error(Code::timed_out, "late"));
  EXPECT_EQ(transfer->placed(), (std::vector{Placed::unknown, Placed::unknown}));
  expect_over(State::timed_out);
}

TEST_F(TransferTest, RaisesItsSignalAfterTheLastChunkAndEndsWhenItIsOut) {
  begin(scattered(2, 10), true);
  const auto chunks = take(2);
  transfer->completed(0, chunks[0]);
  EXPECT_TRUE(host.signals.empty());
  transfer->completed(0, chunks[1]);
  ASSERT_EQ(host.signals.size(), 1U);
  EXPECT_EQ(transfer->state(), State::active);
  transfer->signal_ended(std::nullopt);
  EXPECT_FALSE(transfer->signal_withheld());
  expect_over(State::done);
}

TEST_F(TransferTest, WithoutBytesStillRaisesItsSignal) {
  begin(scattered(0, 0), true);
  ASSERT_EQ(host.signals.size(), 1U);
  transfer->signal_ended(std::nullopt);
  expect_over(State::done);
}

TEST_F(TransferTest, FailsWhenItsSignalDoes) {
  begin(scattered(1, 10), true);
  transfer->completed(0, take(1)[0]);
  transfer->signal_ended(broken());
  expect_over(State::failed);
}

TEST_F(TransferTest, FailsWhenItsSignalIsRefusedAtOnce) {
  host.refuse_signals = true;
  begin(scattered(0, 0), true);
  expect_over(State::failed);
}

TEST_F(TransferTest, AFailedChunkEndsItAndTheOthersDrain) {
  begin(scattered(5, 10), true);
  const auto chunks = take(3);
  transfer->failed(chunks[0], broken());
  EXPECT_EQ(transfer->state(), State::failed);
  EXPECT_EQ(callbacks, 1);
  EXPECT_FALSE(transfer->quiescent());
  EXPECT_TRUE(transfer->wait_ended(Deadline::now()));
  EXPECT_FALSE(transfer->wait_quiescent(Deadline::now()));
  EXPECT_TRUE(transfer->signal_withheld());
  EXPECT_TRUE(take(8).empty()) << "nothing new after the end";
  transfer->completed(0, chunks[1]);
  EXPECT_TRUE(holds_memory(*transfer));
  transfer->failed(chunks[2], Error(Code::internal, "later"));
  EXPECT_EQ(transfer->error()->code(), Code::fabric_failed) << "the first error counts";
  EXPECT_TRUE(host.signals.empty());
  expect_over(State::failed);
}

TEST_F(TransferTest, ReturnedChunksAreOfferedAndTakenAgain) {
  begin(scattered(2, 10), false, {0, 1});
  const auto chunks = take(2);
  transfer->give_back(chunks[0]);
  EXPECT_EQ(host.offers, 1);
  transfer->completed(0, chunks[1]);
  EXPECT_EQ(transfer->state(), State::active);
  const auto again = take(8);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].local, chunks[0].local);
  transfer->completed(1, again[0]);
  const Report report = transfer->report();
  EXPECT_EQ(report.operations, 2U);
  EXPECT_EQ(report.bytes_done, 20U);
  ASSERT_EQ(report.rails.size(), 2U);
  EXPECT_EQ(report.rails[0].rail, "rail:0");
  EXPECT_EQ(report.rails[1].bytes, 10U);
  expect_over(State::done);
}

TEST_F(TransferTest, WhatIsTakenTogetherKeepsToTheSum) {
  begin(scattered(4, 60));
  std::vector<Chunk> chunks(8);
  const auto carry = [&](std::uint64_t all) {
    std::vector<std::uint64_t> lengths;
    for (const Chunk& each : std::span(chunks).first(transfer->take(0, chunks, 100, all))) {
      lengths.push_back(each.length);
      transfer->completed(0, each);
    }
    return lengths;
  };
  EXPECT_THAT(carry(150), testing::ElementsAre(60, 60, 30)) << "the third is cut";
  EXPECT_THAT(carry(30), testing::ElementsAre(30));
  EXPECT_THAT(carry(1000), testing::ElementsAre(60));
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_EQ(transfer->report().bytes_done, 240U);
}

TEST_F(TransferTest, WhatComesBackIsCutForWhoeverTakesLess) {
  begin(scattered(1, 100));
  const auto whole = take(1);
  transfer->give_back(whole[0]);
  std::vector<Chunk> parts;
  for (int i = 0; i < 3; ++i) {
    const auto part = take(1, 40);
    ASSERT_EQ(part.size(), 1U);
    parts.push_back(part[0]);
  }
  EXPECT_TRUE(take(1).empty());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(parts[i].local, whole[0].local + i * 40);
    EXPECT_EQ(parts[i].remote, whole[0].remote + i * 40);
    EXPECT_EQ(parts[i].at, i * 40);
    EXPECT_EQ(parts[i].length, i < 2 ? 40U : 20U);
    EXPECT_FALSE(transfer->ended());
    transfer->completed(0, parts[i]);
  }
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_EQ(transfer->report().bytes_done, 100U);
}

TEST_F(TransferTest, FailsWhenItsLastLaneLeaves) {
  begin(scattered(2, 10), false, {2, 3});
  transfer->rail_leaves(2, broken());
  EXPECT_EQ(transfer->state(), State::active);
  transfer->rail_leaves(2, broken());
  EXPECT_EQ(transfer->state(), State::active) << "the same scheduler twice";
  EXPECT_THAT(transfer->carriers(), testing::ElementsAre(3U));
  transfer->rail_leaves(3, broken());
  expect_over(State::failed);
}

TEST_F(TransferTest, CancelledBeforeAnythingIsOutEndsAtOnce) {
  begin(scattered(2, 10));
  transfer->cancel();
  transfer->cancel();
  expect_over(State::cancelled);
}

TEST_F(TransferTest, CancelledWithChunksOutEndsWhenTheyAreHome) {
  begin(scattered(3, 10));
  const auto chunks = take(2);
  transfer->cancel();
  EXPECT_EQ(transfer->state(), State::active);
  EXPECT_TRUE(take(8).empty());
  transfer->completed(0, chunks[0]);
  transfer->completed(0, chunks[1]);
  expect_over(State::cancelled);
}

TEST_F(TransferTest, CancelledWhenNothingIsLeftToStopIsDone) {
  begin(scattered(2, 10));
  const auto chunks = take(8);
  transfer->cancel();
  transfer->completed(0, chunks[0]);
  transfer->completed(0, chunks[1]);
  expect_over(State::done);
}

// The chunk never moved: "done" would be a lie.
TEST_F(TransferTest, CancelledWhenAChunkComesBackIsNotDone) {
  begin(scattered(2, 10), false, {0, 1});
  const auto chunks = take(8);
  transfer->cancel();
  transfer->completed(0, chunks[0]);
  transfer->give_back(chunks[1]);
  EXPECT_EQ(transfer->report().bytes_done, 10U);
  expect_over(State::cancelled);
}

TEST_F(TransferTest, CancelledBeforeItsSignalWentOutNeverRaisesIt) {
  begin(scattered(1, 10), true);
  const auto chunks = take(1);
  transfer->cancel();
  transfer->completed(0, chunks[0]);
  EXPECT_TRUE(host.signals.empty());
  EXPECT_TRUE(transfer->signal_withheld());
  expect_over(State::cancelled);
}

TEST_F(TransferTest, CancelledAfterItsSignalWasRaisedIsDone) {
  begin(scattered(1, 10), true);
  transfer->completed(0, take(1)[0]);
  transfer->cancel();
  transfer->signal_ended(std::nullopt);
  expect_over(State::done);
}

TEST_F(TransferTest, TimedOutWithASignalUnderWayLetsGoWhenThatIsOut) {
  begin(scattered(1, 10), true);
  transfer->completed(0, take(1)[0]);
  transfer->end_early(State::timed_out, Error(Code::timed_out, "late"));
  EXPECT_EQ(callbacks, 1);
  EXPECT_FALSE(holds_memory(*transfer));
  EXPECT_FALSE(transfer->signal_withheld()) << "it is on its way";
  transfer.reset();
  transfer = alive.lock();
  ASSERT_TRUE(transfer) << "the signal still refers to it";
  transfer->signal_ended(std::nullopt);
  expect_over(State::timed_out);
}

TEST_F(TransferTest, ChunksGivenBackAfterTheEndSettleIt) {
  begin(scattered(2, 10));
  const auto chunks = take(2);
  transfer->end_early(State::timed_out, Error(Code::timed_out, "late"));
  transfer->give_back(chunks[0]);
  EXPECT_EQ(host.offers, 0);
  EXPECT_TRUE(holds_memory(*transfer));
  transfer->give_back(chunks[1]);
  expect_over(State::timed_out);
}

TEST_F(TransferTest, TheCallbackMaySubmitAndCancel) {
  TransferOptions options;
  options.on_end = [&](const Ended&) {
    transfer->cancel();
    EXPECT_EQ(transfer->report().bytes_done, 10U);
    ++callbacks;
  };
  transfer = std::make_shared<TransferState>(
      make_submission(make_prepared(peer, scattered(1, 10)), std::move(options)), host);
  transfer->start({0});
  transfer->completed(0, take(1)[0]);
  EXPECT_EQ(callbacks, 1);
}

TEST_F(TransferTest, ReportCountsRangesRunsAndOperations) {
  const std::vector<Pair> pairs = {{0, 0, 10}, {10, 10, 10}, {50, 50, 5}};
  begin(PieceList(pairs));
  const auto chunks = take(8, 16);
  for (const Chunk& chunk : chunks) transfer->completed(0, chunk);
  const Report report = transfer->report();
  EXPECT_EQ(report.ranges, 3U);
  EXPECT_EQ(report.runs, 2U);
  EXPECT_EQ(report.operations, 3U);
  EXPECT_EQ(report.bytes, 25U);
  EXPECT_EQ(report.bytes_done, 25U);
  expect_over(State::done);
}

TEST_F(TransferTest, LanesTakeNoMoreThanTheirPartsAtATime) {
  transfer = std::make_shared<TransferState>(
      make_submission(make_prepared(peer, scattered(4, 50), Direction::write, 2)), host);
  alive = transfer;
  const std::size_t rails[] = {0, 1};
  transfer->start(rails, {.most = 70});
  std::vector<Chunk> all;
  const std::vector<std::uint64_t> wanted[] = {{50, 20}, {30, 40}, {10, 50}};
  for (const auto& lengths : wanted) {
    const auto part = take(8);
    ASSERT_EQ(part.size(), lengths.size());
    for (std::size_t i = 0; i < part.size(); ++i) EXPECT_EQ(part[i].length, lengths[i]);
    all.insert(all.end(), part.begin(), part.end());
  }
  EXPECT_TRUE(take(8).empty());
  for (const Chunk& chunk : all) transfer->completed(0, chunk);
  EXPECT_EQ(transfer->report().bytes_done, 200U);
  EXPECT_EQ(transfer->state(), State::done);
}

/// All that can happen to a transfer, in random order, against what must hold at every step.
TEST_F(TransferTest, EndsOnceInEveryInterleaving) {
  for (std::uint32_t seed = 0; seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto pick = [&](std::size_t below) { return random() % below; };
    host.~Host();
    new (&host) Host;
    host.refuse_signals = pick(8) == 0;
    callbacks = 0;
    final_state = State::active;
    const bool signal = pick(2) == 0;
    begin(scattered(pick(6), pick(4) == 0 ? 0 : 10), signal, {0, 1});
    std::vector<Chunk> out;
    bool signal_answered = false, lost_chunk = false;
    for (int step = 0; step < 40; ++step) {
      switch (pick(10)) {
        case 0:
        case 1:
        case 2: {
          const bool over = transfer->ended();
          const auto taken = take(1 + pick(3), 1 + pick(12));
          EXPECT_TRUE(!over || taken.empty());
          out.insert(out.end(), taken.begin(), taken.end());
          break;
        }
        case 3:
        case 4:
        case 5:
        case 6: {
          if (out.empty()) break;
          const auto at = out.begin() + static_cast<std::ptrdiff_t>(pick(out.size()));
          const Chunk chunk = *at;
          out.erase(at);
          const std::size_t fate = pick(16);
          if (fate == 0) {
            transfer->failed(chunk, broken());
            lost_chunk = true;
          } else if (fate < 4) {
            transfer->give_back(chunk);
          } else {
            transfer->completed(pick(2), chunk);
          }
          break;
        }
        case 7:
          if (pick(6) == 0) transfer->cancel();
          break;
        case 8:
          if (pick(10) == 0)
            transfer->end_early(State::timed_out, Error(Code::timed_out, "late"));
          else if (pick(10) == 0)
            transfer->rail_leaves(pick(2), broken());
          break;
        case 9:
          if (!host.signals.empty() && !signal_answered && !host.refuse_signals) {
            signal_answered = true;
            transfer->signal_ended(pick(8) == 0 ? std::optional(broken()) : std::nullopt);
          }
          break;
      }
      ASSERT_EQ(callbacks, transfer->ended() ? 1 : 0);
      ASSERT_EQ(host.ended, callbacks);
      if (!out.empty()) {
        ASSERT_FALSE(transfer->quiescent());
        ASSERT_TRUE(holds_memory(*transfer));
      }
      ASSERT_EQ(transfer->wait_quiescent(Deadline::now()), transfer->ended() && out.empty());
      ASSERT_LE(host.signals.size(), signal ? 1U : 0U);
    }
    // Bring everything home, as rails do in the end.
    while (true) {
      for (const Chunk& chunk : std::exchange(out, {})) transfer->completed(0, chunk);
      out = take(8);
      if (out.empty()) break;
    }
    if (!host.signals.empty() && !signal_answered && !host.refuse_signals)
      transfer->signal_ended(std::nullopt);
    const State state = transfer->state();
    ASSERT_NE(state, State::active);
    const Report report = transfer->report();
    ASSERT_LE(report.bytes_done, report.bytes);
    if (state == State::done) {
      ASSERT_EQ(report.bytes_done, report.bytes);
      ASSERT_FALSE(lost_chunk);
      ASSERT_EQ(host.signals.size(), signal ? 1U : 0U);
    }
    expect_over(state);
    if (HasFailure()) return;
  }
}

TEST_F(TransferTest, WhatItsRailsDoNotProveIsProvenBeforeItsEnd) {
  proofs = {1, 2, 1};
  begin(scattered(2, 100), true, {0, 1, 2});
  const auto chunks = take(2);
  ASSERT_EQ(chunks.size(), 2U);
  Chunk proof;
  EXPECT_FALSE(transfer->take_proof(0, Chunk::Kind::arrival, proof)) << "chunks are out still";
  transfer->completed(0, chunks[0]);
  EXPECT_EQ(host.offers, 0);
  transfer->completed(1, chunks[1]);
  EXPECT_EQ(host.offers, 1);
  EXPECT_TRUE(host.signals.empty());
  EXPECT_FALSE(transfer->take_proof(2, Chunk::Kind::arrival, proof)) << "this rail carried nothing";
  ASSERT_TRUE(transfer->take_proof(0, Chunk::Kind::arrival, proof));
  EXPECT_TRUE(proof.proof());
  EXPECT_FALSE(transfer->quiescent());
  transfer->completed(0, proof);
  std::vector<std::uint64_t> targets;
  while (transfer->take_proof(1, Chunk::Kind::arrival, proof)) targets.push_back(proof.remote);
  EXPECT_EQ(targets, (std::vector<std::uint64_t>{0, 1})) << "one for each of the peer's rails";
  transfer->give_back(proof);
  EXPECT_EQ(host.offers, 3);
  transfer->completed(1, Chunk{.remote = 0, .kind = Chunk::Kind::arrival});
  EXPECT_TRUE(host.signals.empty());
  ASSERT_TRUE(transfer->take_proof(1, Chunk::Kind::arrival, proof));
  transfer->completed(1, proof);
  ASSERT_EQ(host.signals.size(), 1U);
  transfer->signal_ended(std::nullopt);
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_EQ(transfer->report().operations, 2U);
}

TEST_F(TransferTest, CancelledWhileItIsProven) {
  proofs = {1};
  begin(scattered(1, 100));
  const auto chunks = take(1);
  transfer->completed(0, chunks[0]);
  Chunk proof;
  ASSERT_TRUE(transfer->take_proof(0, Chunk::Kind::arrival, proof));
  transfer->cancel();
  EXPECT_EQ(transfer->state(), State::active);
  transfer->give_back(proof);
  EXPECT_EQ(transfer->state(), State::cancelled);
  EXPECT_FALSE(transfer->take_proof(0, Chunk::Kind::arrival, proof));
}

TEST_F(TransferTest, FailsIfItCannotBeProven) {
  proofs = {1};
  begin(scattered(1, 100), true);
  const auto chunks = take(1);
  transfer->completed(0, chunks[0]);
  Chunk proof;
  ASSERT_TRUE(transfer->take_proof(0, Chunk::Kind::arrival, proof));
  transfer->failed(proof, broken());
  EXPECT_EQ(transfer->state(), State::failed);
  EXPECT_TRUE(transfer->signal_withheld());
}

/// With a signal, all bytes placed, and the check begun.
class CheckedTransfer : public TransferTest {
 protected:
  void SetUp() override {
    proofs = {1};
    begin(scattered(1, 100), true, {0}, Direction::write, true);
    transfer->completed(0, take(1)[0]);
    EXPECT_EQ(host.checks, 0) << "not before it is proven that the bytes are there";
    Chunk proof;
    ASSERT_TRUE(transfer->take_proof(0, Chunk::Kind::arrival, proof));
    transfer->completed(0, proof);
    ASSERT_EQ(host.checks, 1);
    ASSERT_TRUE(transfer->hold());
  }
};

TEST_F(CheckedTransfer, RaisesItsSignalWhenTheBytesAreRight) {
  transfer->verified(std::nullopt);
  EXPECT_TRUE(host.signals.empty()) << "somebody looks at the memory still";
  transfer->let_go();
  ASSERT_EQ(host.signals.size(), 1U);
  transfer->signal_ended(std::nullopt);
  EXPECT_EQ(host.checks, 1);
  expect_over(State::done);
}

TEST_F(CheckedTransfer, FailsWithoutItsSignalWhenTheyAreNot) {
  transfer->verified(Error(Code::corrupt, "they differ"));
  EXPECT_EQ(transfer->state(), State::failed);
  EXPECT_TRUE(transfer->signal_withheld());
  EXPECT_FALSE(transfer->quiescent());
  transfer->let_go();
  EXPECT_TRUE(host.signals.empty());
  expect_over(State::failed);
}

TEST_F(CheckedTransfer, IsNotQuiescentWhileItsMemoryIsLookedAt) {
  transfer->end_early(State::timed_out, Error(Code::timed_out, "late"));
  EXPECT_FALSE(transfer->quiescent());
  EXPECT_FALSE(transfer->hold()) << "nobody begins to look any more";
  transfer->verified(std::nullopt);
  EXPECT_TRUE(holds_memory(*transfer));
  transfer->let_go();
  expect_over(State::timed_out);
}

TEST_F(CheckedTransfer, CancelledWhileItIsCheckedIsCancelled) {
  transfer->cancel();
  EXPECT_EQ(transfer->state(), State::active);
  transfer->let_go();
  transfer->verified(std::nullopt);
  EXPECT_TRUE(host.signals.empty());
  expect_over(State::cancelled);
}

TEST_F(TransferTest, WithoutBytesThereIsNothingToCheck) {
  begin(scattered(0, 0), false, {0}, Direction::write, true);
  EXPECT_EQ(host.checks, 0);
  expect_over(State::done);
}

TEST_F(TransferTest, AnotherRailTakesOverWhenTheLastHasLeft) {
  spare = {2, 0, 3};
  begin(scattered(2, 100), false, {0});
  const auto chunks = take(2);
  transfer->rail_leaves(0, broken());
  EXPECT_EQ(transfer->carriers(), std::vector<std::size_t>{2});
  transfer->give_back(chunks[0]);
  transfer->rail_leaves(2, broken());
  EXPECT_EQ(transfer->carriers(), std::vector<std::size_t>{3});
  EXPECT_EQ(transfer->state(), State::active);
  transfer->rail_leaves(3, broken());
  EXPECT_EQ(transfer->state(), State::failed) << "each rail gets one chance";
  transfer->give_back(chunks[1]);
  EXPECT_TRUE(transfer->quiescent());
}

/// Of four extents that rails 0 and 1 share as these bits say, a piece in each.
class PartedTransfer : public TransferTest {
 protected:
  void begin(std::vector<RailBits> by_extent, Direction direction = Direction::write) {
    const std::vector<Pair> pairs = {{0, 0, 10}, {16, 20, 10}, {32, 36, 10}, {48, 60, 4}};
    reach = make_reach(PieceList(pairs), 16, std::move(by_extent), {3, 3, 3, 3}, 2);
    EXPECT_TRUE(reach.parted());
    TransferTest::begin(PieceList(pairs), false, {0, 1}, direction);
  }
  std::vector<std::uint64_t> offsets(const std::vector<Chunk>& chunks) {
    std::vector<std::uint64_t> all;
    for (const Chunk& chunk : chunks) all.push_back(chunk.local);
    return all;
  }
};

TEST_F(PartedTransfer, EachRailCarriesWhatItReaches) {
  begin({1, 2, 3, 2});
  EXPECT_TRUE(transfer->has_more(0));
  const auto first = take(1, 100, 0);
  EXPECT_THAT(offsets(first), testing::ElementsAre(0));
  const auto second = take(8, 100, 1);
  EXPECT_THAT(offsets(second), testing::ElementsAre(16, 48, 32));
  EXPECT_TRUE(take(8, 100, 0).empty());
  EXPECT_FALSE(transfer->has_more(0));
  transfer->completed(0, first[0]);
  for (const Chunk& chunk : second) transfer->completed(1, chunk);
  const Report report = transfer->report();
  EXPECT_EQ(report.bytes_done, 34U);
  ASSERT_EQ(report.rails.size(), 2U);
  EXPECT_EQ(report.rails[1].bytes, 24U);
  EXPECT_EQ(report.ranges, 4U);
  EXPECT_EQ(report.runs, 4U);
  expect_over(State::done);
}

TEST_F(PartedTransfer, WhatComesBackIsForThoseThatReachIt) {
  begin({1, 2, 2, 2});
  const auto second = take(1, 100, 1);
  transfer->give_back(second[0]);
  EXPECT_EQ(host.offers, 1);
  const auto first = take(8, 100, 0), again = take(1, 100, 1);
  EXPECT_THAT(offsets(first), testing::ElementsAre(0));
  EXPECT_THAT(offsets(again), testing::ElementsAre(16));
  EXPECT_FALSE(transfer->rail_steps_back(0)) << "the other can't carry all of it";
  EXPECT_EQ(transfer->carriers().size(), 2U);
  transfer->cancel();
  transfer->give_back(first[0]);
  transfer->give_back(again[0]);
  expect_over(State::cancelled);
}

TEST_F(PartedTransfer, TellsWhatBecameOfItsPieces) {
  begin({1, 2, 1, 2});
  const auto first = take(1, 100, 0), second = take(1, 100, 1);
  transfer->completed(0, first[0]);
  transfer->failed(second[0], broken());
  EXPECT_EQ(transfer->placed(),
            (std::vector{Placed::all, Placed::unknown, Placed::none, Placed::none}));
  expect_over(State::failed);
}

TEST_F(PartedTransfer, GoesOnWithoutARailWhoseBytesTheOthersMayCarry) {
  begin({3, 2, 3, 2});
  const auto first = take(1, 100, 0);
  transfer->rail_leaves(0, broken());
  transfer->give_back(first[0]);
  EXPECT_EQ(transfer->state(), State::active);
  EXPECT_THAT(transfer->carriers(), testing::ElementsAre(1U));
  transfer->rail_leaves(0, broken());
  EXPECT_EQ(transfer->state(), State::active) << "the same scheduler twice";
  const auto rest = take(8, 100, 1);
  EXPECT_EQ(rest.size(), 4U);
  for (const Chunk& chunk : rest) transfer->completed(1, chunk);
  expect_over(State::done);
}

TEST_F(PartedTransfer, FailsWhenARailLeavesThatAloneReachesWhatIsLeft) {
  begin({3, 2, 3, 1});
  const auto second = take(1, 100, 1);
  transfer->rail_leaves(0, broken());
  EXPECT_EQ(transfer->state(), State::failed) << "nobody has come to the last piece";
  EXPECT_EQ(transfer->error()->code(), Code::fabric_failed);
  transfer->completed(1, second[0]);
  expect_over(State::failed);
}

TEST_F(PartedTransfer, FailsWhenWhatOnlyALeftRailReachesComesBack) {
  begin({1, 2, 2, 2});
  const auto first = take(1, 100, 0);
  transfer->rail_leaves(0, broken());
  EXPECT_EQ(transfer->state(), State::active) << "it is out still, and may come to its place";
  transfer->give_back(first[0]);
  EXPECT_EQ(transfer->error()->code(), Code::fabric_failed);
  EXPECT_EQ(host.offers, 0);
  EXPECT_THAT(transfer->placed(), testing::Each(Placed::none));
  expect_over(State::failed);
}

TEST_F(PartedTransfer, GoesOnWithoutARailThatHasCarriedAllItHadTo) {
  begin({1, 2, 2, 2});
  const auto first = take(1, 100, 0);
  transfer->rail_leaves(0, broken());
  transfer->completed(0, first[0]);
  for (const Chunk& chunk : take(8, 100, 1)) transfer->completed(1, chunk);
  expect_over(State::done);
}

/// A proof that comes back would find none to carry it.
TEST_F(PartedTransfer, FailsWhenItsLastRailLeaves) {
  begin({1, 2, 2, 2}, Direction::read);
  const auto first = take(8, 100, 0), second = take(8, 100, 1);
  transfer->completed(0, first[0]);
  transfer->rail_leaves(0, broken());
  EXPECT_EQ(transfer->state(), State::active);
  std::optional<Chunk> proof;
  for (const Chunk& chunk : second) proof = transfer->completed(1, chunk);
  ASSERT_TRUE(proof);
  EXPECT_EQ(transfer->state(), State::active) << "its proof is out";
  transfer->rail_leaves(1, broken());
  EXPECT_EQ(transfer->state(), State::failed);
  transfer->give_back(*proof);
  expect_over(State::failed);
}

TEST_F(PartedTransfer, CancelledWhenWhatNoRailReachesComesBackIsCancelled) {
  begin({1, 2, 2, 2});
  const auto first = take(1, 100, 0);
  transfer->rail_leaves(0, broken());
  transfer->cancel();
  transfer->give_back(first[0]);
  expect_over(State::cancelled);
}

/// By bounce buffers, and by copies of GPUs, any rail carries any byte.
TEST_F(PartedTransfer, WhereNoKeysAreNeededNothingIsParted) {
  const std::vector<Pair> pairs = {{0, 0, 64}};
  for (const TransportKind kind : {TransportKind::bounce, TransportKind::device_copy}) {
    const auto prepared = make_prepared(peer, PieceList(pairs), Direction::write, 4);
    prepared->reach = make_reach(prepared->pieces, 16, {1, 2, 1, 2}, {3, 3, 3, 3}, 2);
    Submission submission = make_submission(prepared);
    submission.transport = kind;
    transfer = std::make_shared<TransferState>(std::move(submission), host);
    transfer->start({0, 1});
    const auto chunks = take(8, 100, 1);
    ASSERT_EQ(chunks.size(), 1U);
    EXPECT_EQ(chunks[0].length, 64U);
    transfer->completed(1, chunks[0]);
    EXPECT_EQ(transfer->state(), State::done);
  }
}

/// Rails that take, give back, leave and fail in random order: it ends, and rightly.
TEST_F(PartedTransfer, EndsInEveryInterleaving) {
  int done = 0, failed = 0;
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto pick = [&](std::size_t below) { return random() % below; };
    host.~Host();
    new (&host) Host;
    callbacks = 0;
    std::vector<RailBits> by_extent{1 + pick(2)};
    while (by_extent.size() < 4) by_extent.push_back(1 + pick(3));
    begin(by_extent, pick(2) == 0 ? Direction::write : Direction::read);
    struct Out {
      std::size_t rail;
      Chunk chunk;
    };
    std::vector<Out> out;
    RailBits staying = 3;
    const auto home = [&](bool well) {
      std::swap(out[pick(out.size())], out.back());
      const Out each = out.back();
      out.pop_back();
      if (well || pick(2) == 0) {
        if (const auto proof = transfer->completed(each.rail, each.chunk))
          out.push_back({each.rail, *proof});
        return;
      }
      if (pick(3) == 0) {
        staying &= ~(RailBits{1} << each.rail);
        transfer->rail_leaves(each.rail, broken());
      }
      transfer->give_back(each.chunk);
    };
    const auto turn = [&](std::size_t rail) {
      if ((staying >> rail & 1) == 0) return;
      for (const Chunk& chunk : take(1 + pick(3), 1 + pick(8), rail)) out.push_back({rail, chunk});
      Chunk proof;
      if (transfer->owed_proof(rail) == Chunk::Kind::epoch &&
          transfer->take_proof(rail, Chunk::Kind::epoch, proof))
        out.push_back({rail, proof});
    };
    for (int step = 0; step < 12 && !transfer->ended(); ++step) {
      turn(pick(2));
      if (!out.empty()) home(false);
    }
    // Then all goes well.
    for (int step = 0; step < 200 && !(transfer->ended() && out.empty()); ++step) {
      turn(0);
      turn(1);
      while (!out.empty()) home(true);
    }
    ASSERT_TRUE(transfer->ended()) << "it hangs";
    bool none_may = false;
    for (const RailBits bits : by_extent) none_may = none_may || (bits & staying) == 0;
    if (transfer->state() == State::failed) {
      EXPECT_TRUE(none_may || staying == 0) << "others could have gone on";
    }
    (transfer->state() == State::done ? done : failed) += 1;
    if (transfer->state() == State::done) {
      EXPECT_EQ(transfer->report().bytes_done, 34U);
    }
    expect_over(transfer->state());
    if (HasFailure()) return;
  }
  EXPECT_GT(done, 300);
  EXPECT_GT(failed, 300);
}

TEST(EvenChunk, IsOfAPartOfOnePieceAndOfWholePages) {
  const auto peer = make_peer(2);
  NoHost host;
  const auto even = [&](std::vector<Pair> pieces, std::uint64_t part, std::uint64_t limit,
                        bool alone = true) {
    const auto transfer = std::make_shared<TransferState>(
        make_submission(make_prepared(peer, PieceList(pieces), Direction::write, 2)), host);
    const std::size_t rails[] = {0, 1};
    transfer->start(rails, {part, alone});
    const std::uint64_t chunk = transfer->even_chunk(limit);
    transfer->cancel();
    return chunk;
  };
  constexpr std::uint64_t kib = 1024;
  const std::vector<Pair> one{{0, 0, 1536 * kib}};
  EXPECT_EQ(even(one, 768 * kib, 512 * kib), 384 * kib);
  EXPECT_EQ(even(one, 1024 * kib, 512 * kib), 512 * kib);
  EXPECT_EQ(even(one, 768 * kib, 300 * kib), 300 * kib) << "three for each scheduler";
  EXPECT_EQ(even(one, 768 * kib, 768 * kib), 768 * kib) << "one chunk for each scheduler";
  EXPECT_EQ(even(one, 500'000, 300'000), 62U * 4096) << "250,000 in whole pages";
  EXPECT_EQ(even(one, 5000, 3000), 3000U) << "no more than there may be";
  EXPECT_EQ(even(one, 768 * kib, 512 * kib, false), 512 * kib) << "others fill the schedulers";
  EXPECT_EQ(even({{0, 0, 768 * kib}, {1000 * kib, 1000 * kib, 768 * kib}}, 768 * kib, 512 * kib),
            512 * kib)
      << "pieces are cut where they end";
}

/// Takes all of it over two rails, some of it twice: in posts of as many chunks as `together` says.
void expect_whole_blocks(const std::vector<Pair>& pieces, std::uint64_t block, std::uint64_t part,
                         std::uint64_t limit, bool together) {
  NoHost host;
  auto prepared = make_prepared(make_peer(2), PieceList(pieces), Direction::write, 2);
  prepared->block = block;
  const std::uint64_t all = prepared->bytes;
  const auto transfer = std::make_shared<TransferState>(make_submission(std::move(prepared)), host);
  const std::size_t rails[] = {0, 1};
  transfer->start(rails, {part, true});
  const std::uint64_t chunk = transfer->even_chunk(limit);
  constexpr std::uint64_t unlimited = ~std::uint64_t{0};
  std::uint64_t bytes = 0;
  std::array<Chunk, 8> chunks;
  for (std::size_t round = 0; transfer->has_chunks(); ++round) {
    const std::size_t rail = round % 2;
    const std::size_t count =
        transfer->take(rail, chunks, chunk, together ? chunk : unlimited, Clock::now());
    ASSERT_GT(count, 0U);
    std::uint64_t at_once = 0;
    for (const Chunk& each : std::span(chunks).first(count)) {
      ASSERT_EQ((each.length | each.local | each.remote) % block, 0U)
          << each.length << " at " << each.remote << ", limit " << limit << ", part " << part;
      ASSERT_LE(each.length, limit);
      at_once += each.length;
      if (round == 2) {
        transfer->give_back(each);
      } else {
        bytes += each.length;
        transfer->completed(rail, each);
      }
    }
    if (together) {
      EXPECT_LE(at_once, limit);
    }
  }
  EXPECT_EQ(bytes, all);
  transfer->cancel();
}

TEST(WholeBlocks, AreNotCut) {
  constexpr std::uint64_t block = 64 << 10;
  const std::vector<Pair> one = {{0, 0, 13 * block}};
  const std::vector<Pair> three = {
      {0, 0, 3 * block}, {3 * block, 5 * block, block}, {4 * block, 6 * block, 9 * block}};
  for (const auto& pieces : {one, three})
    for (const std::uint64_t part : {block / 2, 3 * block / 2, 5 * block})
      for (const std::uint64_t limit : {block, block + 5000, 3 * block - 1, 4 * block})
        for (const bool together : {false, true})
          expect_whole_blocks(pieces, block, part, limit, together);
}

/// Lanes, cancel, deadline and waiters in threads of their own.
TEST(TransferThreads, EndsOnceWithLanesAndWaitersInThreads) {
  const auto peer = make_peer(2);
  class CountingHost final : public TransferHost {
   public:
    void raise_signal(const std::shared_ptr<TransferState>& transfer) override {
      transfer->signal_ended(std::nullopt);
    }
    void offer_again(const std::shared_ptr<TransferState>&) override {}
    void transfer_ended(TransferState&) override { ++ended; }
    std::atomic<int> ended{0};
  };
  for (std::uint32_t round = 0; round < 200; ++round) {
    CountingHost host;
    std::atomic<int> callbacks{0};
    TransferOptions options;
    if (round % 2 == 0) options.signal = Signal{1, {}};
    options.on_end = [&](const Ended&) { ++callbacks; };
    auto transfer = std::make_shared<TransferState>(
        make_submission(make_prepared(peer, scattered(50, 10), Direction::write, 2),
                        std::move(options)),
        host);
    transfer->start({0, 1});
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
      while (const auto chunk = transfer->take_one(0, 7)) transfer->completed(0, *chunk);
    });
    for (std::size_t scheduler = 0; scheduler < 2; ++scheduler)
      threads.emplace_back([&, scheduler] {
        std::mt19937 random(round * 2 + static_cast<std::uint32_t>(scheduler));
        std::array<Chunk, 4> chunks;
        while (!transfer->ended()) {
          const std::size_t count = transfer->take(0, chunks, 7);
          for (std::size_t i = 0; i < count; ++i) {
            if (random() % 10 == 0)
              transfer->give_back(chunks[i]);
            else
              transfer->completed(scheduler, chunks[i]);
          }
        }
      });
    threads.emplace_back([&] {
      if (round % 3 == 0) transfer->cancel();
      if (round % 3 == 1) transfer->end_early(State::timed_out, Error(Code::timed_out, "late"));
    });
    EXPECT_TRUE(transfer->wait_quiescent(soon()));
    EXPECT_EQ(callbacks, 1);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(host.ended, 1);
    EXPECT_FALSE(holds_memory(*transfer));
    EXPECT_EQ(transfer.use_count(), 1);
  }
}

}  // namespace
}  // namespace weft::core::test
