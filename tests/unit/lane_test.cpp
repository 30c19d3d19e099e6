// A lane over a transport whose every answer the test decides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>

#include "parts.hpp"
#include "rail/rail_scheduler.hpp"

namespace weft::core::test {
namespace {

using providers::Post;
using providers::PostStatus;
using testing::ElementsAre;

class Scripted final : public Transport {
 public:
  std::uint64_t chunk_limit(const Route&) const override { return limit; }
  std::size_t most_chunks(const Route&) const override { return together; }
  std::size_t room(const Route&) const override { return room_left; }
  Post post(Op& op) override {
    ++attempts;
    const Post post = answer ? answer(op) : Post{};
    if (post.status != PostStatus::posted) return post;
    posted.push_back(&op);
    bytes += op.bytes();
    most_operations = std::max(most_operations, posted.size());
    most_bytes = std::max(most_bytes, bytes);
    return post;
  }
  providers::BatchPost post_all(std::span<Op* const> ops) override {
    batches.push_back(ops.size());
    return Transport::post_all(ops);
  }
  void give_up(Op& op) override { given_up.push_back(&op); }
  void end(std::size_t index, bool ok = true) {
    Op& op = *posted[index];
    posted.erase(posted.begin() + static_cast<std::ptrdiff_t>(index));
    bytes -= op.bytes();
    providers::Completion completion;
    completion.ok = ok;
    completion.unsent = !ok && unsent;
    completion.cut = !ok && cut;
    completion.fabric_code = ok ? 0 : 5;
    completion.text = ok ? "" : "in other words";
    sink().chunk_ended(op, completion);
  }
  void end_all() {
    while (!posted.empty()) end(0);
  }
  ChunkSink& sink_of_lane() { return sink(); }

  std::uint64_t limit = 100;
  std::size_t room_left = 1000, together = 1;
  bool unsent = false, cut = false;  // what fails
  std::function<Post(const Op&)> answer;
  std::vector<Op*> posted;
  std::vector<const Op*> given_up;
  std::vector<std::size_t> batches;  // how many posts were handed over at once
  std::uint64_t bytes = 0, most_bytes = 0;
  std::size_t attempts = 0, most_operations = 0;
};

class LaneHost final : public TransferHost {
 public:
  void raise_signal(const std::shared_ptr<TransferState>& transfer) override {
    transfer->signal_ended(std::nullopt);
  }
  void offer_again(const std::shared_ptr<TransferState>& transfer) override {
    for (const std::size_t rail : transfer->lanes())
      if (lanes.contains(rail)) lanes[rail]->add(transfer);
  }
  std::size_t proofs_of(const TransferState&, std::size_t) const override { return proofs; }
  void transfer_ended(TransferState&) override {}
  void transfer_quiescent(TransferState&) override { ++quiescent; }
  std::optional<std::size_t> another_rail(const TransferState&,
                                          const std::vector<std::size_t>& left) const override {
    for (const std::size_t rail : spare)
      if (std::find(left.begin(), left.end(), rail) == left.end()) return rail;
    return std::nullopt;
  }
  std::size_t proofs = 0;
  std::vector<std::size_t> spare;  // rails that may take over
  std::map<std::size_t, Lane*> lanes;
  int quiescent = 0;
};

/// A rail: two transports, of which the tests use the one-sided one unless they say otherwise.
struct Line {
  Line(LaneHost& host, std::size_t rail, Lane::Window window)
      : lane(rail, "rail:" + std::to_string(rail), window, one_sided, relay, copies) {
    host.lanes[rail] = &lane;
  }
  Scripted one_sided, relay, copies;
  Lane lane;
};

/// Of one transfer's pieces.
bool in_order(const std::vector<Op*>& posted) {
  return std::is_sorted(posted.begin(), posted.end(),
                        [](const Op* a, const Op* b) { return a->chunk.local < b->chunk.local; });
}

class LaneTest : public testing::Test {
 protected:
  std::shared_ptr<TransferState> submit(PieceList pieces, const std::vector<std::size_t>& rails,
                                        std::shared_ptr<PeerState> to = nullptr,
                                        TransportKind kind = TransportKind::one_sided,
                                        TransferState::Parts parts = {}) {
    if (!to) to = peer;
    Submission submission =
        make_submission(make_prepared(to, std::move(pieces), Direction::write, 3));
    submission.transport = kind;
    submission.deadline = deadline.when();
    auto transfer = std::make_shared<TransferState>(std::move(submission), host);
    transfer->start(rails, parts);
    for (const std::size_t rail : rails) host.lanes[rail]->add(transfer);
    return transfer;
  }

  static Lane::Window patient() {
    Lane::Window window{4, 100000};
    window.patience = 2s;
    return window;
  }

  const Deadline deadline = soon();  // one for all: they take turns
  const std::shared_ptr<PeerState> peer = make_peer(3);
  LaneHost host;
};

TEST_F(LaneTest, CarriesATransferToItsEnd) {
  Line line(host, 0, {4, 1000});
  const auto transfer = submit(scattered(10, 50), {0});
  while (!transfer->ended()) {
    ASSERT_GT(line.lane.pump(), 0U);
    line.one_sided.end_all();
  }
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_EQ(transfer->report().bytes_done, 500U);
  EXPECT_EQ(line.lane.operations_done(), 10U);
  EXPECT_EQ(line.lane.bytes_done(), 500U);
  EXPECT_EQ(line.lane.in_flight(), 0U);
  EXPECT_EQ(line.one_sided.attempts, 10U);
}

TEST_F(LaneTest, KeepsToItsWindowOfOperations) {
  Line line(host, 0, {5, 1000000});
  const auto transfer = submit(scattered(100, 10), {0});
  EXPECT_EQ(line.lane.pump(), 5U);
  EXPECT_EQ(line.lane.pump(), 0U);
  line.one_sided.end(2);
  EXPECT_EQ(line.lane.pump(), 1U);
  while (!transfer->ended()) {
    line.one_sided.end(0);
    line.lane.pump();
  }
  EXPECT_EQ(line.one_sided.most_operations, 5U);
}

TEST_F(LaneTest, KeepsToItsWindowOfBytes) {
  Line line(host, 0, {1000, 400});
  const auto transfer = submit(scattered(50, 100), {0});
  EXPECT_EQ(line.lane.pump(), 4U);
  while (!transfer->ended()) {
    line.one_sided.end(0);
    line.lane.pump();
  }
  EXPECT_EQ(line.one_sided.most_bytes, 400U);
}

/// As it is over tcp on few cores; peers elsewhere, whose answers take longer, have the usual one.
TEST_F(LaneTest, KeepsToAnotherWindowOfBytesToPeersOfThisMachine) {
  Lane::Window window{1000, 400};
  window.bytes_on_host = 100;
  Line line(host, 0, window);
  for (const bool same_host : {true, false}) {
    peer->routes.front()->same_host = same_host;
    line.one_sided.most_bytes = 0;
    const auto transfer = submit(scattered(50, 100), {0});
    EXPECT_EQ(line.lane.pump(), same_host ? 1U : 4U);
    while (!transfer->ended()) {
      line.one_sided.end(0);
      line.lane.pump();
    }
    EXPECT_EQ(line.one_sided.most_bytes, same_host ? 100U : 400U);
  }
}

TEST_F(LaneTest, SmallChunksOverrunTheWindowOfBytesByLessThanOneLargeOne) {
  Line line(host, 0, {1000, 400});
  const auto small = submit(scattered(30, 9), {0});
  const auto large = submit(scattered(30, 100), {0});
  for (int step = 0; step < 10000 && !(small->ended() && large->ended()); ++step) {
    line.lane.pump();
    line.one_sided.end(static_cast<std::size_t>(step) % line.one_sided.posted.size());
  }
  EXPECT_TRUE(small->ended() && large->ended());
  EXPECT_LT(line.one_sided.most_bytes, 400U + 100U);
}

TEST_F(LaneTest, KeepsToTheTransportsRoom) {
  Line line(host, 0, {100, 100000});
  line.one_sided.room_left = 0;
  const auto transfer = submit(scattered(10, 10), {0});
  EXPECT_EQ(line.lane.pump(), 0U);
  EXPECT_TRUE(line.lane.has_work());
  line.one_sided.room_left = 3;
  line.one_sided.answer = [&](const Op&) {
    --line.one_sided.room_left;
    return Post{};
  };
  EXPECT_EQ(line.lane.pump(), 3U);
  EXPECT_EQ(line.lane.pump(), 0U);
  line.one_sided.room_left = 100;
  line.lane.pump();
  line.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(LaneTest, ATransferWithoutRoomDoesNotHoldBackOthers) {
  Line line(host, 0, {100, 100000});
  line.relay.room_left = 0;
  const auto held = submit(scattered(3, 10), {0}, nullptr, TransportKind::relay);
  const auto free = submit(scattered(3, 10), {0});
  EXPECT_EQ(line.lane.pump(), 3U);
  line.one_sided.end_all();
  EXPECT_EQ(free->state(), State::done);
  line.relay.room_left = 10;
  EXPECT_EQ(line.lane.pump(), 3U);
  line.relay.end_all();
  EXPECT_EQ(held->state(), State::done);
}

TEST_F(LaneTest, AProofWithoutRoomWaitsAndHoldsUpNobody) {
  Line line(host, 0, {100, 100000});
  host.proofs = 1;
  line.relay.room_left = 0;
  const auto proven = submit(scattered(3, 10), {0});
  line.lane.pump();
  line.one_sided.end_all();
  EXPECT_EQ(proven->state(), State::active) << "its proof is owed";
  EXPECT_EQ(line.lane.pump(), 0U);
  EXPECT_TRUE(line.lane.has_work());
  const auto other = submit(scattered(3, 10), {0});
  EXPECT_EQ(line.lane.pump(), 3U);
  line.relay.room_left = 10;
  line.one_sided.end_all();
  EXPECT_EQ(line.lane.pump(), 2U) << "both proofs";
  line.relay.end_all();
  EXPECT_EQ(proven->state(), State::done);
  EXPECT_EQ(other->state(), State::done);
  line.lane.pump();
  EXPECT_FALSE(line.lane.has_work());
}

/// Lanes over transports that take several chunks in one post.
class LaneOfLists : public LaneTest {
 protected:
  static void prepare(Line& line) {
    line.relay.limit = 1000;
    line.relay.together = 8;
  }
  std::shared_ptr<TransferState> submit(PieceList pieces, const std::vector<std::size_t>& rails) {
    return LaneTest::submit(std::move(pieces), rails, nullptr, TransportKind::relay);
  }
  std::vector<std::size_t> posted(const Line& line) {
    std::vector<std::size_t> chunks;
    for (const Op* op : line.relay.posted) chunks.push_back(op->chunks());
    return chunks;
  }
};

TEST_F(LaneOfLists, ChunksOfATransferGoTogether) {
  Line line(host, 0, {3, 100000});
  prepare(line);
  const auto small = submit(scattered(28, 10), {0});
  line.lane.pump();
  EXPECT_THAT(posted(line), ElementsAre(8, 8, 8)) << "a post is one operation of the window";
  EXPECT_EQ(line.lane.in_flight(), 3U);
  line.relay.end(1);
  EXPECT_EQ(small->report().bytes_done, 80U);
  line.lane.pump();
  EXPECT_THAT(posted(line), ElementsAre(8, 8, 4)) << "it does not wait for more";
  line.relay.end_all();
  EXPECT_EQ(small->state(), State::done);
  EXPECT_EQ(small->report().operations, 28U);
  EXPECT_EQ(line.lane.operations_done(), 28U);
  EXPECT_EQ(line.lane.bytes_done(), 280U);
  EXPECT_EQ(line.lane.in_flight(), 0U);
}

TEST_F(LaneOfLists, APostIsFullWhenItsBytesAre) {
  Line line(host, 0, {10, 100000});
  prepare(line);
  const auto transfer = submit(scattered(4, 700), {0});
  line.lane.pump();
  EXPECT_THAT(posted(line), ElementsAre(2, 2, 2)) << "700 + 300, 400 + 600, 100 + 700";
  EXPECT_EQ(line.relay.bytes, 2800U);
  line.relay.end_all();
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_EQ(transfer->report().bytes_done, 2800U);
}

TEST_F(LaneOfLists, AFailureIsEveryChunks) {
  Line line(host, 0, {10, 100000});
  prepare(line);
  const auto transfer = submit(scattered(16, 10), {0});
  line.lane.pump();
  line.relay.end(0, false);
  EXPECT_EQ(transfer->state(), State::failed);
  EXPECT_THAT(transfer->error()->message(), testing::HasSubstr("a write of 80 bytes"));
  EXPECT_FALSE(transfer->quiescent());
  line.relay.end(0);
  EXPECT_TRUE(transfer->quiescent());
  const auto placed = transfer->placed();
  EXPECT_EQ(std::count(placed.begin(), placed.end(), Placed::unknown), 8);
  EXPECT_EQ(std::count(placed.begin(), placed.end(), Placed::all), 8);
}

TEST_F(LaneOfLists, WhatIsRefusedOrWasNotSentIsLeftToOthers) {
  for (const bool at_once : {true, false}) {
    Line first(host, 0, {10, 100000}), second(host, 1, {10, 100000});
    prepare(first);
    prepare(second);
    if (at_once) first.relay.answer = [](const Op&) { return Post{PostStatus::failed, 5}; };
    first.relay.unsent = true;
    const auto transfer = submit(scattered(16, 10), {0, 1});
    first.lane.pump();
    while (!first.relay.posted.empty()) first.relay.end(0, false);
    EXPECT_EQ(transfer->state(), State::active);
    EXPECT_THAT(transfer->lanes(), ElementsAre(1));
    second.lane.pump();
    EXPECT_THAT(posted(second), ElementsAre(8, 8));
    second.relay.end_all();
    EXPECT_EQ(transfer->state(), State::done);
    EXPECT_EQ(transfer->report().bytes_done, 160U);
  }
}

TEST_F(LaneOfLists, WhatWasNotSentOfACancelledTransferComesHome) {
  Line line(host, 0, {10, 100000});
  prepare(line);
  line.relay.unsent = true;
  const auto transfer = submit(scattered(16, 10), {0});
  line.lane.pump();
  transfer->cancel();
  line.relay.end(0, false);
  line.relay.end(0, false);
  EXPECT_EQ(transfer->state(), State::cancelled);
  EXPECT_TRUE(transfer->quiescent());
  EXPECT_THAT(transfer->placed(), testing::Each(Placed::none));
}

TEST_F(LaneOfLists, WhatIsHeldOfACancelledTransferComesHome) {
  Line line(host, 0, {10, 100000});
  prepare(line);
  line.relay.answer = [](const Op&) { return Post{PostStatus::again, 0}; };
  const auto transfer = submit(scattered(16, 10), {0});
  line.lane.pump();
  EXPECT_FALSE(transfer->quiescent());
  transfer->cancel();
  line.lane.pump();
  EXPECT_EQ(transfer->state(), State::cancelled);
  EXPECT_TRUE(transfer->quiescent());
  EXPECT_EQ(line.lane.in_flight(), 0U);
}

TEST_F(LaneOfLists, OrphansAreAllChunks) {
  Line line(host, 0, {10, 100000});
  prepare(line);
  const auto transfer = submit(scattered(12, 10), {0});
  line.lane.pump();
  const auto orphans = line.lane.take_orphans();
  EXPECT_EQ(orphans.size(), 12U);
  transfer->cancel();
  for (const auto& [owner, chunk] : orphans) owner->give_back(chunk);
  EXPECT_TRUE(transfer->quiescent());
}

TEST_F(LaneTest, RefusedChunksAreHeldAndRetriedInOrder) {
  Line line(host, 0, {16, 100000});
  int refusals = 0;
  line.one_sided.answer = [&](const Op&) {
    return refusals-- > 0 ? Post{PostStatus::again, 0} : Post{};
  };
  const auto transfer = submit(scattered(12, 10), {0});
  refusals = 1;
  EXPECT_EQ(line.lane.pump(), 8U) << "the batch that was taken; refused counts as in flight";
  EXPECT_EQ(line.one_sided.attempts, 1U) << "nothing is tried behind a refusal";
  refusals = 3;
  EXPECT_EQ(line.lane.pump(), 0U);
  EXPECT_EQ(line.one_sided.attempts, 2U);
  refusals = 0;
  line.lane.pump();
  ASSERT_EQ(line.one_sided.posted.size(), 12U);
  EXPECT_TRUE(in_order(line.one_sided.posted));
  line.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_EQ(transfer->report().operations, 12U);
  EXPECT_TRUE(line.one_sided.given_up.empty());
}

TEST_F(LaneTest, WhatATurnTakesIsHandedOverTogether) {
  Line line(host, 0, {16, 100000});
  const auto transfer = submit(scattered(12, 10), {0});
  EXPECT_EQ(line.lane.pump(), 12U);
  EXPECT_THAT(line.one_sided.batches, ElementsAre(8, 4));
  line.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(LaneTest, BehindARefusalInTheMiddleOfABatchAllAreHeldInOrder) {
  Line line(host, 0, {16, 100000});
  line.one_sided.answer = [&](const Op&) {
    return line.one_sided.attempts == 3 ? Post{PostStatus::again, 0} : Post{};
  };
  const auto transfer = submit(scattered(8, 10), {0});
  EXPECT_EQ(line.lane.pump(), 8U) << "refused counts as in flight";
  EXPECT_THAT(line.one_sided.batches, ElementsAre(8));
  EXPECT_EQ(line.one_sided.posted.size(), 2U);
  EXPECT_EQ(line.one_sided.attempts, 3U);
  EXPECT_TRUE(line.lane.holds_posts());
  EXPECT_EQ(line.lane.pump(), 6U);
  EXPECT_FALSE(line.lane.holds_posts());
  ASSERT_EQ(line.one_sided.posted.size(), 8U);
  EXPECT_TRUE(in_order(line.one_sided.posted));
  line.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_EQ(transfer->report().operations, 8U);
}

TEST_F(LaneTest, BehindAFailureInTheMiddleOfABatchTheOthersGo) {
  Line bad(host, 0, {16, 100000}), good(host, 1, {16, 100000});
  bad.one_sided.limit = 10;  // half of the transfer is a batch
  bad.one_sided.answer = [&](const Op&) {
    return bad.one_sided.attempts == 3 ? Post{PostStatus::failed, 5} : Post{};
  };
  const auto transfer = submit(scattered(16, 10), {0, 1});
  bad.lane.pump();
  EXPECT_THAT(bad.one_sided.batches, ElementsAre(8, 5)) << "the second without the one that failed";
  EXPECT_EQ(bad.one_sided.posted.size(), 7U);
  EXPECT_FALSE(bad.lane.holds_posts());
  good.lane.pump();
  EXPECT_EQ(good.one_sided.posted.size(), 9U) << "its own half, and what failed";
  bad.one_sided.end_all();
  good.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_EQ(transfer->report().bytes_done, 160U);
}

TEST_F(LaneTest, HeldChunksOfATransferThatEndedAreGivenBack) {
  Line line(host, 0, {16, 100000});
  line.one_sided.answer = [](const Op&) { return Post{PostStatus::again, 0}; };
  const auto transfer = submit(scattered(4, 10), {0});
  line.lane.pump();
  transfer->end_early(State::timed_out, Error(Code::timed_out, "late"));
  EXPECT_FALSE(transfer->quiescent());
  line.lane.pump();
  EXPECT_TRUE(transfer->quiescent());
  EXPECT_EQ(host.quiescent, 1);
  EXPECT_EQ(line.lane.in_flight(), 0U);
  EXPECT_EQ(line.one_sided.given_up.size(), 4U) << "the transport may keep something for each";
}

TEST_F(LaneTest, AfterARefusalOtherTransfersStillEnd) {
  Line line(host, 0, {16, 100000});
  bool refuse = true;
  line.one_sided.answer = [&](const Op&) {
    return Post{refuse ? PostStatus::again : PostStatus::posted, 0};
  };
  const auto first = submit(scattered(4, 10), {0});
  const auto second = submit(scattered(4, 10), {0});
  line.lane.pump();
  refuse = false;
  line.lane.pump();
  line.one_sided.end_all();
  EXPECT_EQ(first->state(), State::done);
  EXPECT_EQ(second->state(), State::done);
}

TEST_F(LaneTest, WhatThereIsNoRoomForInAllItsPatienceIsCarriedByTheOthers) {
  const Lane::Window window = patient();
  Line full(host, 0, window), free(host, 1, window);
  full.one_sided.answer = [](const Op&) { return Post{PostStatus::again, 0}; };
  const auto transfer = submit(scattered(8, 100), {0, 1});
  const auto start = Clock::now();
  full.lane.pump(start);
  free.lane.pump(start);
  free.one_sided.end_all();
  for (auto at = start; at < start + 1900ms; at += 400ms) {
    full.lane.pump(at);
    free.lane.pump(at);
  }
  EXPECT_TRUE(free.one_sided.posted.empty()) << "not before its time";
  EXPECT_FALSE(peer->route_by_rail[0]->is_aside(Clock::now()));
  full.lane.pump(start + 2s);
  EXPECT_EQ(full.lane.in_flight(), 0U);
  EXPECT_EQ(full.one_sided.given_up.size(), 4U);
  EXPECT_TRUE(peer->route_by_rail[0]->is_aside(Clock::now()));
  free.lane.pump(start + 2s);
  free.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_EQ(free.lane.bytes_done(), 800U);
}

TEST_F(LaneTest, WhereThereIsNoOtherLaneRoomIsWaitedFor) {
  const Lane::Window window = patient();
  Line line(host, 0, window);
  bool full = true;
  line.one_sided.answer = [&](const Op&) {
    return Post{full ? PostStatus::again : PostStatus::posted, 0};
  };
  const auto transfer = submit(scattered(4, 10), {0});
  const auto start = Clock::now();
  for (auto at = start; at < start + 4s; at += 400ms) line.lane.pump(at);
  EXPECT_FALSE(transfer->ended());
  EXPECT_EQ(line.lane.in_flight(), 4U);
  full = false;
  line.lane.pump(start + 4s);
  line.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(LaneTest, ARailThatIsSlowButMovesKeepsWhatItHolds) {
  const Lane::Window window = patient();
  Line slow(host, 0, window), other(host, 1, window);
  int room = 2;
  slow.one_sided.answer = [&](const Op&) {
    return Post{room-- > 0 ? PostStatus::posted : PostStatus::again, 0};
  };
  const auto transfer = submit(scattered(4, 100), {0, 1});
  const auto start = Clock::now();
  for (auto at = start; at < start + 1600ms; at += 400ms) slow.lane.pump(at);
  slow.one_sided.end(0);
  for (auto at = start + 1600ms; at < start + 3200ms; at += 400ms) slow.lane.pump(at);
  EXPECT_EQ(slow.lane.in_flight(), 3U);
  EXPECT_TRUE(slow.one_sided.given_up.empty());
  slow.lane.pump(start + 3200ms);
  slow.lane.pump(start + 3600ms);
  EXPECT_EQ(slow.lane.in_flight(), 1U) << "what is out";
  slow.one_sided.end_all();
  other.lane.pump();
  other.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(LaneTest, TimeInWhichNobodyPumpedIsNotTheProviders) {
  const Lane::Window window = patient();
  Line full(host, 0, window), other(host, 1, window);
  full.one_sided.answer = [](const Op&) { return Post{PostStatus::again, 0}; };
  const auto transfer = submit(scattered(4, 10), {0, 1});
  const auto start = Clock::now();
  full.lane.pump(start);
  full.lane.pump(start + 10s);
  full.lane.pump(start + 10400ms);
  EXPECT_EQ(full.lane.in_flight(), 1U);
  EXPECT_TRUE(full.one_sided.given_up.empty());
  full.one_sided.answer = nullptr;
  while (!transfer->ended()) {
    full.lane.pump();
    full.one_sided.end_all();
  }
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(LaneTest, WhatComesToARailInDoubtThatHasNoRoomDoesNotWaitAsLong) {
  const Lane::Window window = patient();
  Line full(host, 0, window), free(host, 1, window);
  full.one_sided.answer = [](const Op&) { return Post{PostStatus::again, 0}; };
  std::vector<std::shared_ptr<TransferState>> transfers;
  for (int i = 0; i < 20; ++i) transfers.push_back(submit(scattered(1, 10), {0}));
  host.spare = {1};
  const auto start = Clock::now();
  for (auto at = start; at < start + 2s; at += 400ms) full.lane.pump(at);
  for (auto at = start + 2s; at < start + 2s + 25ms; at += 1ms) full.lane.pump(at);
  EXPECT_EQ(full.lane.in_flight(), 0U);
  for (const auto& each : transfers) EXPECT_THAT(each->lanes(), ElementsAre(1U));
  while (free.lane.pump() > 0) free.one_sided.end_all();
  for (const auto& each : transfers) EXPECT_EQ(each->state(), State::done);
}

TEST_F(LaneTest, WhatARailHasCarriedItProvesThoughOthersCarryTheRest) {
  host.proofs = 1;
  Line silent(host, 0, {8, 100000}), other(host, 1, {8, 100000});
  silent.one_sided.cut = true;
  const auto transfer = submit(scattered(4, 10), {0, 1});
  silent.lane.pump();
  silent.one_sided.end(0);
  silent.lane.went_silent();
  while (!silent.one_sided.posted.empty()) silent.one_sided.end(0, false);
  EXPECT_THAT(transfer->lanes(), ElementsAre(1U));
  other.lane.pump();
  other.one_sided.end_all();
  EXPECT_THAT(transfer->lanes(), testing::UnorderedElementsAre(0U, 1U));
  for (Line* line : {&silent, &other}) {
    line->lane.pump();
    line->relay.end_all();
  }
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(LaneTest, WhatWasCutFromARailInDoubtIsCarriedByTheOthers) {
  Line silent(host, 0, {8, 100000}), other(host, 1, {8, 100000});
  silent.one_sided.cut = true;
  const auto transfer = submit(scattered(4, 10), {0, 1});
  silent.lane.pump();
  silent.lane.went_silent();
  silent.one_sided.end(0, false);
  EXPECT_THAT(transfer->lanes(), ElementsAre(1U));
  while (!silent.one_sided.posted.empty()) silent.one_sided.end(0, false);
  silent.lane.pump();
  EXPECT_TRUE(silent.one_sided.posted.empty());
  other.lane.pump();
  other.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(LaneTest, WhatWasCutFromTheOnlyRailIsCarriedByItOnceMore) {
  Line silent(host, 0, {8, 100000});
  silent.one_sided.cut = true;
  const auto transfer = submit(scattered(4, 10), {0});
  silent.lane.pump();
  silent.lane.went_silent();
  for (int each = 0; each < 4; ++each) silent.one_sided.end(0, false);
  silent.lane.pump();
  silent.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(LaneTest, APostThatFailsMovesTheTransferToTheOtherLane) {
  Line broken(host, 0, {16, 100000}), whole(host, 1, {16, 100000});
  int good = 3;
  broken.one_sided.answer = [&](const Op&) {
    return good-- > 0 ? Post{} : Post{PostStatus::failed, 5};
  };
  const auto transfer = submit(scattered(30, 10), {0, 1});
  broken.lane.pump();
  EXPECT_LE(broken.one_sided.attempts, 3U + 8U) << "a lane that left pulls no more";
  broken.one_sided.end_all();
  while (!transfer->ended()) {
    whole.lane.pump();
    broken.lane.pump();
    ASSERT_FALSE(whole.one_sided.posted.empty());
    whole.one_sided.end_all();
  }
  EXPECT_EQ(transfer->state(), State::done);
  const Report report = transfer->report();
  EXPECT_EQ(report.bytes_done, 300U);
  ASSERT_EQ(report.rails.size(), 2U);
  EXPECT_EQ(report.rails[0].operations, 3U);
  EXPECT_EQ(report.rails[1].operations, 27U);
  EXPECT_FALSE(broken.lane.has_work());
}

TEST_F(LaneTest, WhenEveryLanesPostFailsTheErrorNamesTheLastRail) {
  Line first(host, 0, {16, 100000}), second(host, 1, {16, 100000});
  const auto fails = [](const Op&) { return Post{PostStatus::failed, 5}; };
  first.one_sided.answer = second.one_sided.answer = fails;
  const auto transfer = submit(scattered(30, 10), {0, 1});
  first.lane.pump();
  EXPECT_EQ(transfer->state(), State::active);
  second.lane.pump();
  EXPECT_EQ(transfer->state(), State::failed);
  EXPECT_TRUE(transfer->quiescent());
  const Error error = *transfer->error();
  EXPECT_EQ(error.code(), Code::fabric_failed);
  EXPECT_EQ(error.fabric_code(), 5);
  EXPECT_EQ(error.rail(), "rail:1");
  EXPECT_EQ(error.peer(), "peer");
  EXPECT_EQ(error.operation(), "write");
  EXPECT_EQ(host.quiescent, 1);
}

TEST_F(LaneTest, AFailedChunkFailsTheTransferWithItsContext) {
  Line line(host, 0, {16, 100000});
  const auto transfer = submit(scattered(3, 10), {0});
  line.lane.pump();
  line.one_sided.end(1, false);
  EXPECT_EQ(transfer->state(), State::failed);
  EXPECT_FALSE(transfer->quiescent());
  EXPECT_THAT(transfer->error()->message(), testing::HasSubstr("a write of 10 bytes failed"));
  EXPECT_THAT(transfer->error()->message(), testing::HasSubstr("in other words"));
  EXPECT_EQ(transfer->error()->rail(), "rail:0");
  line.one_sided.end_all();
  EXPECT_TRUE(transfer->quiescent());
}

TEST_F(LaneTest, OfATransferThatTimedOutTheWayIsSetAsideOnWhichSomethingIsOut) {
  Line line(host, 0, {2, 1000}), other(host, 1, {2, 1000});
  const auto transfer = submit(scattered(2, 10), {0, 1});
  EXPECT_EQ(line.lane.pump(), 2U);
  other.lane.pump();
  transfer->end_early(State::timed_out, Error(Code::timed_out, "its deadline passed"));
  line.lane.timed_out(*transfer);
  other.lane.timed_out(*transfer);
  EXPECT_TRUE(peer->routes[0]->is_aside(Clock::time_point{}));
  EXPECT_FALSE(peer->routes[1]->is_aside(Clock::time_point{}));
  line.one_sided.end_all();
  EXPECT_FALSE(peer->routes[0]->is_aside(Clock::time_point{})) << "it works after all";
}

TEST_F(LaneTest, ALaneThatTheLastTransferHasLeftRests) {
  Line line(host, 0, {4, 1000}), other(host, 1, {4, 1000});
  const auto transfer = submit(scattered(10, 10), {0, 1});
  EXPECT_EQ(line.lane.pump(), 4U);
  Op& broken = *line.one_sided.posted.front();
  line.one_sided.posted.erase(line.one_sided.posted.begin());
  providers::Completion completion;
  completion.ok = false;
  completion.fabric_code = 5;
  completion.path_failed = true;
  line.one_sided.sink_of_lane().chunk_ended(broken, completion);
  EXPECT_EQ(line.lane.pump(), 0U) << "it pulls no more";
  line.one_sided.end_all();
  EXPECT_FALSE(line.lane.has_work());
  while (!transfer->ended()) {
    ASSERT_GT(other.lane.pump(), 0U);
    other.one_sided.end_all();
  }
  EXPECT_EQ(transfer->state(), State::done);
}

/// Three chunks of the greatest size would be two for one lane and one for the other.
TEST_F(LaneTest, LanesCarryPartsOfOneSize) {
  constexpr std::uint64_t limit = 512 << 10, bytes = 3 * limit;
  Line line(host, 0, {1, bytes}), other(host, 1, {1, bytes});
  for (Line* each : {&line, &other}) each->one_sided.limit = limit;
  const auto transfer = submit(PieceList(std::vector<Pair>{{0, 0, bytes}}), {0, 1}, nullptr,
                               TransportKind::one_sided, {bytes / 2, true});
  std::array<std::uint64_t, 2> carried{};
  while (!transfer->ended()) {
    for (Line* each : {&line, &other}) {
      ASSERT_EQ(each->lane.pump(), 1U);
      carried[each == &other] += each->one_sided.bytes;
    }
    for (Line* each : {&line, &other}) each->one_sided.end_all();
  }
  EXPECT_EQ(carried[0], bytes / 2);
  EXPECT_EQ(carried[1], bytes / 2);
}

TEST_F(LaneTest, TransfersShareTheLane) {
  Line line(host, 0, {16, 100000});
  constexpr std::size_t count = 4;
  std::vector<std::shared_ptr<TransferState>> transfers;
  for (std::size_t i = 0; i < count; ++i) transfers.push_back(submit(scattered(200, 10), {0}));
  std::vector<std::size_t> posted(count);
  for (int step = 0; step < 20; ++step) {
    line.lane.pump();
    for (const Op* op : line.one_sided.posted)
      for (std::size_t i = 0; i < count; ++i)
        if (op->transfer == transfers[i].get()) ++posted[i];
    line.one_sided.end_all();
  }
  const auto [least, most] = std::minmax_element(posted.begin(), posted.end());
  EXPECT_LE(*most - *least, 8U) << "no more than a batch apart";
  for (const auto& transfer : transfers) transfer->cancel();
  line.lane.pump();
  line.one_sided.end_all();
}

TEST_F(LaneTest, APeerThatTakesNothingHoldsUpNobodyElse) {
  for (const bool refused : {false, true}) {
    SCOPED_TRACE(refused ? "its posts are refused" : "they never end");
    Line line(host, 0, {8, 100000});
    const Route* stuck_route = peer->route_by_rail[0];
    if (refused)
      line.one_sided.answer = [&](const Op& op) {
        return Post{op.route == stuck_route ? PostStatus::again : PostStatus::posted, 0};
      };
    const auto other = make_peer(1, "other");
    const auto stuck = submit(scattered(100, 10), {0});
    const auto going = submit(scattered(100, 10), {0}, other);
    for (int step = 0; step < 1000 && !going->ended(); ++step) {
      line.lane.pump();
      for (std::size_t i = line.one_sided.posted.size(); i-- > 0;)
        if (line.one_sided.posted[i]->transfer == going.get()) line.one_sided.end(i);
    }
    EXPECT_EQ(going->state(), State::done);
    EXPECT_EQ(stuck->report().operations, 8U) << "no more than its window was taken";
    // And it goes on when it can.
    line.one_sided.answer = nullptr;
    for (int step = 0; step < 1000 && !stuck->ended(); ++step) {
      line.lane.pump();
      line.one_sided.end_all();
    }
    EXPECT_EQ(stuck->state(), State::done);
    EXPECT_EQ(stuck->report().operations, 100U);
  }
}

TEST_F(LaneTest, AllPeersTogetherKeepToTheProvidersQueue) {
  Line line(host, 0, {8, 100000, 12});
  const auto other = make_peer(1, "other");
  const auto one = submit(scattered(100, 10), {0}), two = submit(scattered(100, 10), {0}, other);
  while (!one->ended() || !two->ended()) {
    line.lane.pump();
    line.one_sided.end(0);
  }
  EXPECT_EQ(line.one_sided.most_operations, 12U);
}

TEST_F(LaneTest, ADeadPeersChunksAreWrittenOffAndHoldTheirMemory) {
  Line line(host, 0, {8, 100000, 8});
  const auto other = make_peer(1, "other");
  const auto dying = submit(scattered(20, 10), {0});
  line.lane.pump();
  EXPECT_EQ(line.lane.in_flight(), 8U);
  const auto waiting = submit(scattered(20, 10), {0}, other);
  EXPECT_EQ(line.lane.pump(), 0U) << "the window is full";

  peer->set_down(Error(Code::peer_down, "gone"));
  dying->end_early(State::failed, peer->down_error());
  line.lane.peer_died(*peer->route_by_rail[0]);
  EXPECT_EQ(line.lane.lost(), 8U);
  EXPECT_EQ(line.lane.in_flight(), 0U);
  EXPECT_FALSE(dying->quiescent()) << "what is posted may still be read";
  EXPECT_EQ(line.lane.pump(), 8U) << "others have the room";

  // Late completions are settled one by one.
  for (int i = 0; i < 8; ++i) line.one_sided.end(0);
  EXPECT_TRUE(dying->quiescent());
  EXPECT_EQ(line.lane.lost(), 0U);
  EXPECT_EQ(line.lane.in_flight(), 8U);
  while (!waiting->ended()) {
    line.one_sided.end_all();
    line.lane.pump();
  }
  EXPECT_EQ(waiting->state(), State::done);
}

TEST_F(LaneTest, ADeadPeersHeldChunksComeBackAtOnce) {
  Line line(host, 0, {8, 100000});
  line.one_sided.answer = [](const Op&) { return Post{PostStatus::again, 0}; };
  const auto dying = submit(scattered(20, 10), {0});
  line.lane.pump();
  peer->set_down(Error(Code::peer_down, "gone"));
  dying->end_early(State::failed, peer->down_error());
  line.lane.peer_died(*peer->route_by_rail[0]);
  EXPECT_TRUE(dying->quiescent());
  EXPECT_EQ(line.lane.in_flight(), 0U);
  EXPECT_EQ(line.lane.lost(), 0U);
  EXPECT_EQ(line.one_sided.given_up.size(), 8U);
  line.lane.pump();
  EXPECT_FALSE(line.lane.has_work());
}

TEST_F(LaneTest, ChunksOutWhenTheRailGoesAreItsOrphans) {
  Line line(host, 0, {8, 100000});
  const auto transfer = submit(scattered(3, 10), {0});
  line.lane.pump();
  transfer->end_early(State::failed, Error(Code::closed, "closed"));
  auto orphans = line.lane.take_orphans();
  ASSERT_EQ(orphans.size(), 3U);
  for (const auto& [owner, chunk] : orphans) owner->give_back(chunk);
  EXPECT_TRUE(transfer->quiescent());
  EXPECT_EQ(host.quiescent, 1);
}

TEST_F(LaneTest, TransfersThatEndedWhileTheWindowIsStuckAreLetGo) {
  Line line(host, 0, {4, 100000});
  const auto stuck = submit(scattered(4, 10), {0});
  line.lane.pump();
  std::vector<std::weak_ptr<TransferState>> ended;
  for (int i = 0; i < 1000; ++i) {
    const auto transfer = submit(scattered(1, 10), {0});
    transfer->end_early(State::timed_out, Error(Code::timed_out, "late"));
    ended.push_back(transfer);
    line.lane.pump();
  }
  const auto kept =
      std::count_if(ended.begin(), ended.end(), [](const auto& each) { return !each.expired(); });
  EXPECT_LT(kept, 200) << "a rail that does not move must not collect what has ended";
  line.one_sided.end_all();
}

TEST_F(LaneTest, ALaneThatIsAwakeFirstLeavesTheOthersTheirParts) {
  for (const std::size_t chunks : {2U, 4U, 8U}) {
    Line first(host, 0, {8, 800}), second(host, 1, {8, 800});
    const auto transfer = submit(scattered(chunks, 100), {0, 1});
    // The other one's thread comes while the first post of this one takes its time.
    first.one_sided.answer = [&](const Op&) {
      if (second.one_sided.attempts == 0) second.lane.pump();
      return Post{};
    };
    first.lane.pump();
    EXPECT_EQ(first.one_sided.posted.size(), chunks / 2);
    EXPECT_EQ(second.one_sided.posted.size(), chunks / 2);
    first.one_sided.end_all();
    second.one_sided.end_all();
    EXPECT_EQ(transfer->state(), State::done);
    EXPECT_EQ(transfer->report().bytes_done, chunks * 100);
  }
}

TEST_F(LaneTest, ALaneTakesTheWholeTransferWhileTheOthersSleep) {
  Line awake(host, 0, {8, 800}), asleep(host, 1, {8, 800});
  const auto transfer = submit(scattered(4, 100), {0, 1});
  EXPECT_EQ(awake.lane.pump(), 4U);
  awake.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(LaneTest, LanesShareATransferAndEveryByteGoesOnce) {
  Line first(host, 0, {4, 1000}), second(host, 1, {4, 1000}), third(host, 2, {4, 1000});
  const auto transfer = submit(scattered(300, 10), {0, 1, 2});
  std::map<std::uint64_t, int> seen;
  std::array<Line*, 3> lines = {&first, &second, &third};
  while (!transfer->ended())
    for (Line* line : lines) {
      line->lane.pump();
      for (const Op* op : line->one_sided.posted) ++seen[op->chunk.local];
      line->one_sided.end_all();
    }
  EXPECT_EQ(seen.size(), 300U);
  for (const auto& [offset, times] : seen) EXPECT_EQ(times, 1) << offset;
  EXPECT_EQ(transfer->report().rails.size(), 3U);
}

}  // namespace
}  // namespace weft::core::test
