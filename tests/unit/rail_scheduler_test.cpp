// A rail over a transport whose every answer the test decides.
#include "rail/rail_scheduler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>

#include "parts.hpp"

namespace weft::core::test {
namespace {

using providers::Post;
using providers::PostStatus;
using testing::Each;
using testing::ElementsAre;

class Scripted final : public Transport {
 public:
  using Transport::Transport;

  std::uint64_t chunk_limit(const Route&) const override { return limit; }
  std::size_t most_chunks(const Route&) const override { return together; }
  std::size_t room(const Route&) const override { return room_left; }
  bool went_out(const Op&) const override { return !waits; }
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
  ChunkSink& sink_of_scheduler() { return sink(); }

  std::uint64_t limit = 100;
  std::size_t room_left = 1000, together = 1;
  bool waits = false;                // for the peer's leave
  bool unsent = false, cut = false;  // what fails
  std::function<Post(const Op&)> answer;
  std::vector<Op*> posted;
  std::vector<const Op*> given_up;
  std::vector<std::size_t> batches;  // how many posts were handed over at once
  std::uint64_t bytes = 0, most_bytes = 0;
  std::size_t attempts = 0, most_operations = 0;
};

class SchedulerHost final : public TransferHost {
 public:
  void raise_signal(const std::shared_ptr<TransferState>& transfer) override {
    transfer->signal_ended(std::nullopt);
  }
  void offer_again(const std::shared_ptr<TransferState>& transfer) override {
    for (const std::size_t rail : transfer->carriers())
      if (schedulers.contains(rail)) schedulers[rail]->add(transfer);
  }
  void transfer_ended(TransferState&) override {}
  std::map<std::size_t, RailScheduler*> schedulers;
};

/// A rail: two transports, of which the tests use the one-sided one unless they say otherwise.
struct Line {
  Line(SchedulerHost& host, std::size_t rail, RailScheduler::Window window)
      : scheduler(rail, "rail:" + std::to_string(rail), window, one_sided, bounce, copies) {
    host.schedulers[rail] = &scheduler;
  }
  Scripted one_sided, bounce{{.repeats_writes = false}}, copies{{.on_rail = false}};
  RailScheduler scheduler;
};

/// Of one transfer's pieces.
bool in_order(const std::vector<Op*>& posted) {
  return std::is_sorted(posted.begin(), posted.end(),
                        [](const Op* a, const Op* b) { return a->chunk.local < b->chunk.local; });
}

class RailSchedulerTest : public testing::Test {
 protected:
  std::shared_ptr<TransferState> submit(PieceList pieces, const std::vector<std::size_t>& rails,
                                        std::shared_ptr<PeerState> to = nullptr,
                                        TransportKind kind = TransportKind::one_sided,
                                        TransferState::Parts parts = {}) {
    if (!to) to = peer;
    const auto prepared = make_prepared(to, std::move(pieces), Direction::write, 3);
    std::vector<std::size_t> may_carry = rails;
    may_carry.insert(may_carry.end(), spare.begin(), spare.end());
    prepared->path = make_rail_set(*to, may_carry);
    for (const std::size_t rail : may_carry) prepared->path->of(rail)->proofs = proofs;
    prepared->reach = reach;
    Submission submission = make_submission(prepared);
    submission.transport = kind;
    submission.deadline = deadline.when();
    auto transfer = std::make_shared<TransferState>(std::move(submission), host);
    transfer->start(rails, parts);
    for (const std::size_t rail : rails) host.schedulers[rail]->add(transfer);
    return transfer;
  }

  static RailScheduler::Window patient() {
    RailScheduler::Window window{4, 100000};
    window.patience = 2s;
    return window;
  }

  const Deadline deadline = soon();  // one for all: they take turns
  const std::shared_ptr<PeerState> peer = make_peer(3);
  std::size_t proofs = 0;          // that each rail's chunks need
  std::vector<std::size_t> spare;  // rails that may take over
  Reach reach;
  SchedulerHost host;
};

TEST_F(RailSchedulerTest, CarriesATransferToItsEnd) {
  Line line(host, 0, {4, 1000});
  const auto transfer = submit(scattered(10, 50), {0});
  while (!transfer->ended()) {
    ASSERT_GT(line.scheduler.pump(), 0U);
    line.one_sided.end_all();
  }
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_EQ(transfer->report().bytes_done, 500U);
  EXPECT_EQ(line.scheduler.operations_done(), 10U);
  EXPECT_EQ(line.scheduler.bytes_done(), 500U);
  EXPECT_EQ(line.scheduler.in_flight(), 0U);
  EXPECT_EQ(line.one_sided.attempts, 10U);
}

TEST_F(RailSchedulerTest, KeepsToItsWindowOfOperations) {
  Line line(host, 0, {5, 1000000});
  const auto transfer = submit(scattered(100, 10), {0});
  EXPECT_EQ(line.scheduler.pump(), 5U);
  EXPECT_EQ(line.scheduler.pump(), 0U);
  line.one_sided.end(2);
  EXPECT_EQ(line.scheduler.pump(), 1U);
  while (!transfer->ended()) {
    line.one_sided.end(0);
    line.scheduler.pump();
  }
  EXPECT_EQ(line.one_sided.most_operations, 5U);
}

/// Much smaller than a chunk, so that all of them would be less than one.
TEST_F(RailSchedulerTest, RailsThatShareATransferTakeSeveralSmallPiecesInATurn) {
  Line first(host, 0, {64, 1000000}), second(host, 1, {64, 1000000});
  first.one_sided.limit = second.one_sided.limit = 1000;
  const auto many = submit(scattered(64, 10), {0, 1});
  EXPECT_EQ(first.scheduler.pump(), 64U);
  EXPECT_THAT(first.one_sided.batches, Each(8U));
  first.one_sided.end_all();
  first.one_sided.batches.clear();
  const auto few = submit(scattered(8, 10), {0, 1});
  first.scheduler.pump();
  EXPECT_THAT(first.one_sided.batches, ElementsAre(4, 4)) << "a half for each rail";
  first.one_sided.end_all();
  EXPECT_TRUE(many->ended() && few->ended());
}

/// The limit of bytes is that of a chunk: pieces of half a chunk go by twos.
TEST_F(RailSchedulerTest, RailsThatShareATransferTakeNoMoreThanAChunkOfSmallPieces) {
  Line first(host, 0, {64, 1000000}), second(host, 1, {64, 1000000});
  first.one_sided.limit = second.one_sided.limit = 100;
  const auto transfer = submit(scattered(6, 50), {0, 1});
  EXPECT_EQ(first.scheduler.pump(), 6U);
  EXPECT_THAT(first.one_sided.batches, ElementsAre(2, 2, 2));
  first.one_sided.end_all();
  EXPECT_TRUE(transfer->ended());
}

TEST_F(RailSchedulerTest, KeepsToItsWindowOfBytes) {
  Line line(host, 0, {1000, 400});
  const auto transfer = submit(scattered(50, 100), {0});
  EXPECT_EQ(line.scheduler.pump(), 4U);
  while (!transfer->ended()) {
    line.one_sided.end(0);
    line.scheduler.pump();
  }
  EXPECT_EQ(line.one_sided.most_bytes, 400U);
}

/// As it is over tcp on few cores; peers elsewhere, whose answers take longer, have the usual one.
TEST_F(RailSchedulerTest, KeepsToAnotherWindowOfBytesToPeersOfThisMachine) {
  RailScheduler::Window window{1000, 400};
  window.bytes_on_host = 100;
  Line line(host, 0, window);
  for (const bool same_host : {true, false}) {
    peer->routes.front()->same_host = same_host;
    line.one_sided.most_bytes = 0;
    const auto transfer = submit(scattered(50, 100), {0});
    EXPECT_EQ(line.scheduler.pump(), same_host ? 1U : 4U);
    while (!transfer->ended()) {
      line.one_sided.end(0);
      line.scheduler.pump();
    }
    EXPECT_EQ(line.one_sided.most_bytes, same_host ? 100U : 400U);
  }
}

TEST_F(RailSchedulerTest, SmallChunksOverrunTheWindowOfBytesByLessThanOneLargeOne) {
  Line line(host, 0, {1000, 400});
  const auto small = submit(scattered(30, 9), {0});
  const auto large = submit(scattered(30, 100), {0});
  for (int step = 0; step < 10000 && !(small->ended() && large->ended()); ++step) {
    line.scheduler.pump();
    line.one_sided.end(static_cast<std::size_t>(step) % line.one_sided.posted.size());
  }
  EXPECT_TRUE(small->ended() && large->ended());
  EXPECT_LT(line.one_sided.most_bytes, 400U + 100U);
}

TEST_F(RailSchedulerTest, KeepsToTheTransportsRoom) {
  Line line(host, 0, {100, 100000});
  line.one_sided.room_left = 0;
  const auto transfer = submit(scattered(10, 10), {0});
  EXPECT_EQ(line.scheduler.pump(), 0U);
  EXPECT_TRUE(line.scheduler.has_work());
  line.one_sided.room_left = 3;
  line.one_sided.answer = [&](const Op&) {
    --line.one_sided.room_left;
    return Post{};
  };
  EXPECT_EQ(line.scheduler.pump(), 3U);
  EXPECT_EQ(line.scheduler.pump(), 0U);
  line.one_sided.room_left = 100;
  line.scheduler.pump();
  line.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(RailSchedulerTest, ATransferWithoutRoomDoesNotHoldBackOthers) {
  Line line(host, 0, {100, 100000});
  line.bounce.room_left = 0;
  const auto held = submit(scattered(3, 10), {0}, nullptr, TransportKind::bounce);
  const auto free = submit(scattered(3, 10), {0});
  EXPECT_EQ(line.scheduler.pump(), 3U);
  line.one_sided.end_all();
  EXPECT_EQ(free->state(), State::done);
  line.bounce.room_left = 10;
  EXPECT_EQ(line.scheduler.pump(), 3U);
  line.bounce.end_all();
  EXPECT_EQ(held->state(), State::done);
}

TEST_F(RailSchedulerTest, AProofWithoutRoomWaitsAndHoldsUpNobody) {
  Line line(host, 0, {100, 100000});
  proofs = 1;
  line.bounce.room_left = 0;
  const auto proven = submit(scattered(3, 10), {0});
  line.scheduler.pump();
  line.one_sided.end_all();
  EXPECT_EQ(proven->state(), State::active) << "its proof is owed";
  EXPECT_EQ(line.scheduler.pump(), 0U);
  EXPECT_TRUE(line.scheduler.has_work());
  const auto other = submit(scattered(3, 10), {0});
  EXPECT_EQ(line.scheduler.pump(), 3U);
  line.bounce.room_left = 10;
  line.one_sided.end_all();
  EXPECT_EQ(line.scheduler.pump(), 2U) << "both proofs";
  line.bounce.end_all();
  EXPECT_EQ(proven->state(), State::done);
  EXPECT_EQ(other->state(), State::done);
  line.scheduler.pump();
  EXPECT_FALSE(line.scheduler.has_work());
}

/// Two rails, which reach different extents of 128 bytes.
class SchedulersOfParts : public RailSchedulerTest {
 protected:
  std::shared_ptr<TransferState> submit(std::vector<RailBits> by_extent) {
    const std::vector<Pair> pairs = {{0, 0, 128 * by_extent.size()}};
    reach = make_reach(PieceList(pairs), 128, by_extent,
                       std::vector<RailBits>(by_extent.size(), RailBits{3}), 2);
    EXPECT_TRUE(reach.parted());
    return RailSchedulerTest::submit(PieceList(pairs), {0, 1});
  }
  static std::vector<std::uint64_t> extents(const Line& line) {
    std::vector<std::uint64_t> all;
    for (const Op* op : line.one_sided.posted) all.push_back(op->chunk.local / 128);
    return all;
  }

  Line first{host, 0, {8, 100000}}, second{host, 1, {8, 100000}};
};

TEST_F(SchedulersOfParts, EachCarriesWhatItReachesAndRestsOnceItHasNoMore) {
  first.one_sided.limit = second.one_sided.limit = 1000;
  const auto transfer = submit({1, 2, 2, 1, 2});
  for (int pump = 0; pump < 5; ++pump) first.scheduler.pump();
  EXPECT_THAT(extents(first), ElementsAre(0, 3));
  first.one_sided.end_all();
  first.scheduler.pump();
  EXPECT_FALSE(first.scheduler.has_work()) << "it is offered again and again";
  EXPECT_EQ(transfer->state(), State::active);
  for (int pump = 0; pump < 5; ++pump) second.scheduler.pump();
  EXPECT_THAT(extents(second), ElementsAre(1, 2, 4));
  second.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
  second.scheduler.pump();
  EXPECT_FALSE(second.scheduler.has_work());
}

TEST_F(SchedulersOfParts, WhatComesBackIsOfferedToThoseThatReachIt) {
  first.one_sided.limit = second.one_sided.limit = 1000;
  first.one_sided.cut = true;
  const auto transfer = submit({1, 2});
  for (int pump = 0; pump < 3; ++pump) {
    first.scheduler.pump();
    second.scheduler.pump();
  }
  second.one_sided.end_all();
  first.scheduler.went_silent();  // it would leave the rest to the other
  first.one_sided.end(0, false);
  second.scheduler.pump();
  EXPECT_TRUE(second.one_sided.posted.empty());
  EXPECT_FALSE(second.scheduler.has_work());
  first.scheduler.pump();
  EXPECT_THAT(extents(first), ElementsAre(0));
  first.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(SchedulersOfParts, WhatHasNoRoomWaitsForTheRailThatReachesIt) {
  Line full(host, 0, patient());
  full.one_sided.answer = [](const Op&) { return Post{PostStatus::again, 0}; };
  const auto transfer = submit({1, 2});
  const auto start = Clock::now();
  for (auto at = start; at < start + 5s; at += 400ms) {
    full.scheduler.pump(at);
    second.scheduler.pump(at);
  }
  second.one_sided.end_all();
  EXPECT_TRUE(full.scheduler.holds_posts());
  full.one_sided.answer = nullptr;
  while (!transfer->ended()) {
    full.scheduler.pump();
    full.one_sided.end_all();
  }
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(SchedulersOfParts, APostThatFailsEndsOnlyWhatNoOtherReaches) {
  first.one_sided.limit = second.one_sided.limit = 1000;
  first.one_sided.answer = [](const Op&) { return Post{PostStatus::failed, 5}; };
  const auto shared = submit({3, 2, 3});
  first.scheduler.pump();
  EXPECT_EQ(shared->state(), State::active);
  second.scheduler.pump();
  EXPECT_EQ(second.one_sided.posted.size(), 3U);
  second.one_sided.end_all();
  EXPECT_EQ(shared->state(), State::done);
  const auto alone = submit({3, 2, 1});
  first.scheduler.pump();
  EXPECT_EQ(alone->state(), State::failed);
  EXPECT_EQ(alone->error()->rail(), "rail:0");
  EXPECT_TRUE(alone->quiescent());
}

/// One of its targets may have no key for one of several chunks.
TEST_F(SchedulersOfParts, ChunksGoTogetherOnlyWhereEachTargetHasAllKeys) {
  first.one_sided.limit = 1000;
  first.one_sided.together = 8;
  const std::vector<Pair> pairs = {{0, 10, 10}, {20, 0, 10}, {100, 110, 10}, {120, 100, 10}};
  for (const bool every_target : {true, false}) {
    SideExtents remote = make_extents(64, {3, 3}, 2);
    remote.reached = [&](std::uint64_t) { return SideExtents::Reached{3, true, every_target}; };
    reach = *Reach::find(PieceList(pairs), {0, 1}, make_extents(128, {3}, 2), remote);
    EXPECT_FALSE(reach.parted());
    const auto transfer = RailSchedulerTest::submit(PieceList(pairs), {0});
    first.scheduler.pump();
    EXPECT_EQ(first.one_sided.posted.size(), every_target ? 1U : 4U);
    first.one_sided.end_all();
    EXPECT_EQ(transfer->state(), State::done);
  }
}

/// Lanes over transports that take several chunks in one post.
class SchedulerOfLists : public RailSchedulerTest {
 protected:
  static void prepare(Line& line) {
    line.bounce.limit = 1000;
    line.bounce.together = 8;
  }
  std::shared_ptr<TransferState> submit(PieceList pieces, const std::vector<std::size_t>& rails) {
    return RailSchedulerTest::submit(std::move(pieces), rails, nullptr, TransportKind::bounce);
  }
  std::vector<std::size_t> posted(const Line& line) {
    std::vector<std::size_t> chunks;
    for (const Op* op : line.bounce.posted) chunks.push_back(op->chunks());
    return chunks;
  }
};

TEST_F(SchedulerOfLists, ChunksOfATransferGoTogether) {
  Line line(host, 0, {3, 100000});
  prepare(line);
  const auto small = submit(scattered(28, 10), {0});
  line.scheduler.pump();
  EXPECT_THAT(posted(line), ElementsAre(8, 8, 8)) << "a post is one operation of the window";
  EXPECT_EQ(line.scheduler.in_flight(), 3U);
  line.bounce.end(1);
  EXPECT_EQ(small->report().bytes_done, 80U);
  line.scheduler.pump();
  EXPECT_THAT(posted(line), ElementsAre(8, 8, 4)) << "it does not wait for more";
  line.bounce.end_all();
  EXPECT_EQ(small->state(), State::done);
  EXPECT_EQ(small->report().operations, 28U);
  EXPECT_EQ(line.scheduler.operations_done(), 28U);
  EXPECT_EQ(line.scheduler.bytes_done(), 280U);
  EXPECT_EQ(line.scheduler.in_flight(), 0U);
}

TEST_F(SchedulerOfLists, APostIsFullWhenItsBytesAre) {
  Line line(host, 0, {10, 100000});
  prepare(line);
  const auto transfer = submit(scattered(4, 700), {0});
  line.scheduler.pump();
  EXPECT_THAT(posted(line), ElementsAre(2, 2, 2)) << "700 + 300, 400 + 600, 100 + 700";
  EXPECT_EQ(line.bounce.bytes, 2800U);
  line.bounce.end_all();
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_EQ(transfer->report().bytes_done, 2800U);
}

TEST_F(SchedulerOfLists, AFailureIsEveryChunks) {
  Line line(host, 0, {10, 100000});
  prepare(line);
  const auto transfer = submit(scattered(16, 10), {0});
  line.scheduler.pump();
  line.bounce.end(0, false);
  EXPECT_EQ(transfer->state(), State::failed);
  EXPECT_THAT(transfer->error()->message(), testing::HasSubstr("a write of 80 bytes"));
  EXPECT_FALSE(transfer->quiescent());
  line.bounce.end(0);
  EXPECT_TRUE(transfer->quiescent());
  const auto placed = transfer->placed();
  EXPECT_EQ(std::count(placed.begin(), placed.end(), Placed::unknown), 8);
  EXPECT_EQ(std::count(placed.begin(), placed.end(), Placed::all), 8);
}

TEST_F(SchedulerOfLists, WhatIsRefusedOrWasNotSentIsLeftToOthers) {
  for (const bool at_once : {true, false}) {
    Line first(host, 0, {10, 100000}), second(host, 1, {10, 100000});
    prepare(first);
    prepare(second);
    if (at_once) first.bounce.answer = [](const Op&) { return Post{PostStatus::failed, 5}; };
    first.bounce.unsent = true;
    const auto transfer = submit(scattered(16, 10), {0, 1});
    first.scheduler.pump();
    while (!first.bounce.posted.empty()) first.bounce.end(0, false);
    EXPECT_EQ(transfer->state(), State::active);
    EXPECT_THAT(transfer->carriers(), ElementsAre(1));
    second.scheduler.pump();
    EXPECT_THAT(posted(second), ElementsAre(8, 8));
    second.bounce.end_all();
    EXPECT_EQ(transfer->state(), State::done);
    EXPECT_EQ(transfer->report().bytes_done, 160U);
  }
}

TEST_F(SchedulerOfLists, WhatWasNotSentOfACancelledTransferComesHome) {
  Line line(host, 0, {10, 100000});
  prepare(line);
  line.bounce.unsent = true;
  const auto transfer = submit(scattered(16, 10), {0});
  line.scheduler.pump();
  transfer->cancel();
  line.bounce.end(0, false);
  line.bounce.end(0, false);
  EXPECT_EQ(transfer->state(), State::cancelled);
  EXPECT_TRUE(transfer->quiescent());
  EXPECT_THAT(transfer->placed(), testing::Each(Placed::none));
}

TEST_F(SchedulerOfLists, WhatIsHeldOfACancelledTransferComesHome) {
  Line line(host, 0, {10, 100000});
  prepare(line);
  line.bounce.answer = [](const Op&) { return Post{PostStatus::again, 0}; };
  const auto transfer = submit(scattered(16, 10), {0});
  line.scheduler.pump();
  EXPECT_FALSE(transfer->quiescent());
  transfer->cancel();
  line.scheduler.pump();
  EXPECT_EQ(transfer->state(), State::cancelled);
  EXPECT_TRUE(transfer->quiescent());
  EXPECT_EQ(line.scheduler.in_flight(), 0U);
}

TEST_F(SchedulerOfLists, OrphansAreAllChunks) {
  Line line(host, 0, {10, 100000});
  prepare(line);
  const auto transfer = submit(scattered(12, 10), {0});
  line.scheduler.pump();
  const auto orphans = line.scheduler.take_orphans();
  EXPECT_EQ(orphans.size(), 12U);
  transfer->cancel();
  for (const auto& [owner, chunk] : orphans) owner->give_back(chunk);
  EXPECT_TRUE(transfer->quiescent());
}

TEST_F(RailSchedulerTest, RefusedChunksAreHeldAndRetriedInOrder) {
  Line line(host, 0, {16, 100000});
  int refusals = 0;
  line.one_sided.answer = [&](const Op&) {
    return refusals-- > 0 ? Post{PostStatus::again, 0} : Post{};
  };
  const auto transfer = submit(scattered(12, 10), {0});
  refusals = 1;
  EXPECT_EQ(line.scheduler.pump(), 8U) << "the batch that was taken; refused counts as in flight";
  EXPECT_EQ(line.one_sided.attempts, 1U) << "nothing is tried behind a refusal";
  refusals = 3;
  EXPECT_EQ(line.scheduler.pump(), 0U);
  EXPECT_EQ(line.one_sided.attempts, 2U);
  refusals = 0;
  line.scheduler.pump();
  ASSERT_EQ(line.one_sided.posted.size(), 12U);
  EXPECT_TRUE(in_order(line.one_sided.posted));
  line.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_EQ(transfer->report().operations, 12U);
  EXPECT_TRUE(line.one_sided.given_up.empty());
}

TEST_F(RailSchedulerTest, WhatATurnTakesIsHandedOverTogether) {
  Line line(host, 0, {16, 100000});
  const auto transfer = submit(scattered(12, 10), {0});
  EXPECT_EQ(line.scheduler.pump(), 12U);
  EXPECT_THAT(line.one_sided.batches, ElementsAre(8, 4));
  line.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(RailSchedulerTest, BehindARefusalInTheMiddleOfABatchAllAreHeldInOrder) {
  Line line(host, 0, {16, 100000});
  line.one_sided.answer = [&](const Op&) {
    return line.one_sided.attempts == 3 ? Post{PostStatus::again, 0} : Post{};
  };
  const auto transfer = submit(scattered(8, 10), {0});
  EXPECT_EQ(line.scheduler.pump(), 8U) << "refused counts as in flight";
  EXPECT_THAT(line.one_sided.batches, ElementsAre(8));
  EXPECT_EQ(line.one_sided.posted.size(), 2U);
  EXPECT_EQ(line.one_sided.attempts, 3U);
  EXPECT_TRUE(line.scheduler.holds_posts());
  EXPECT_EQ(line.scheduler.pump(), 6U);
  EXPECT_FALSE(line.scheduler.holds_posts());
  ASSERT_EQ(line.one_sided.posted.size(), 8U);
  EXPECT_TRUE(in_order(line.one_sided.posted));
  line.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_EQ(transfer->report().operations, 8U);
}

TEST_F(RailSchedulerTest, BehindAFailureInTheMiddleOfABatchTheOthersGo) {
  Line bad(host, 0, {16, 100000}), good(host, 1, {16, 100000});
  bad.one_sided.limit = 10;  // half of the transfer is a batch
  bad.one_sided.answer = [&](const Op&) {
    return bad.one_sided.attempts == 3 ? Post{PostStatus::failed, 5} : Post{};
  };
  const auto transfer = submit(scattered(16, 10), {0, 1});
  bad.scheduler.pump();
  EXPECT_THAT(bad.one_sided.batches, ElementsAre(8, 5)) << "the second without the one that failed";
  EXPECT_EQ(bad.one_sided.posted.size(), 7U);
  EXPECT_FALSE(bad.scheduler.holds_posts());
  good.scheduler.pump();
  EXPECT_EQ(good.one_sided.posted.size(), 9U) << "its own half, and what failed";
  bad.one_sided.end_all();
  good.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_EQ(transfer->report().bytes_done, 160U);
}

TEST_F(RailSchedulerTest, HeldChunksOfATransferThatEndedAreGivenBack) {
  Line line(host, 0, {16, 100000});
  line.one_sided.answer = [](const Op&) { return Post{PostStatus::again, 0}; };
  const auto transfer = submit(scattered(4, 10), {0});
  line.scheduler.pump();
  transfer->end_early(State::timed_out, Error(Code::timed_out, "late"));
  EXPECT_FALSE(transfer->quiescent());
  line.scheduler.pump();
  EXPECT_TRUE(transfer->quiescent());
  EXPECT_TRUE(transfer->wait_quiescent(Deadline::now()));
  EXPECT_EQ(line.scheduler.in_flight(), 0U);
  EXPECT_EQ(line.one_sided.given_up.size(), 4U) << "the transport may keep something for each";
}

TEST_F(RailSchedulerTest, AfterARefusalOtherTransfersStillEnd) {
  Line line(host, 0, {16, 100000});
  bool refuse = true;
  line.one_sided.answer = [&](const Op&) {
    return Post{refuse ? PostStatus::again : PostStatus::posted, 0};
  };
  const auto first = submit(scattered(4, 10), {0});
  const auto second = submit(scattered(4, 10), {0});
  line.scheduler.pump();
  refuse = false;
  line.scheduler.pump();
  line.one_sided.end_all();
  EXPECT_EQ(first->state(), State::done);
  EXPECT_EQ(second->state(), State::done);
}

TEST_F(RailSchedulerTest, WhatThereIsNoRoomForInAllItsPatienceIsCarriedByTheOthers) {
  const RailScheduler::Window window = patient();
  Line full(host, 0, window), free(host, 1, window);
  full.one_sided.answer = [](const Op&) { return Post{PostStatus::again, 0}; };
  const auto transfer = submit(scattered(8, 100), {0, 1});
  const auto start = Clock::now();
  full.scheduler.pump(start);
  free.scheduler.pump(start);
  free.one_sided.end_all();
  for (auto at = start; at < start + 1900ms; at += 400ms) {
    full.scheduler.pump(at);
    free.scheduler.pump(at);
  }
  EXPECT_TRUE(free.one_sided.posted.empty()) << "not before its time";
  EXPECT_FALSE(peer->route_by_rail[0]->is_aside(Clock::now()));
  full.scheduler.pump(start + 2s);
  EXPECT_EQ(full.scheduler.in_flight(), 0U);
  EXPECT_EQ(full.one_sided.given_up.size(), 4U);
  EXPECT_TRUE(peer->route_by_rail[0]->is_aside(Clock::now()));
  free.scheduler.pump(start + 2s);
  free.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_EQ(free.scheduler.bytes_done(), 800U);
}

TEST_F(RailSchedulerTest, WhereThereIsNoOtherLaneRoomIsWaitedFor) {
  const RailScheduler::Window window = patient();
  Line line(host, 0, window);
  bool full = true;
  line.one_sided.answer = [&](const Op&) {
    return Post{full ? PostStatus::again : PostStatus::posted, 0};
  };
  const auto transfer = submit(scattered(4, 10), {0});
  const auto start = Clock::now();
  for (auto at = start; at < start + 4s; at += 400ms) line.scheduler.pump(at);
  EXPECT_FALSE(transfer->ended());
  EXPECT_EQ(line.scheduler.in_flight(), 4U);
  full = false;
  line.scheduler.pump(start + 4s);
  line.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(RailSchedulerTest, ADeadlineThatPassesForLackOfRoomNamesTheRail) {
  Line line(host, 0, patient());
  line.one_sided.answer = [](const Op&) { return Post{PostStatus::again, 0}; };
  const auto transfer = submit(scattered(4, 10), {0});
  const auto start = Clock::now();
  for (auto at = start; at < start + 4s; at += 400ms) line.scheduler.pump(at);
  transfer->end_overdue(transfer->submission().deadline);
  ASSERT_EQ(transfer->state(), State::timed_out);
  EXPECT_NE(transfer->error()->message().find("rail:0 has had no room"), std::string::npos)
      << transfer->error()->message();
  line.scheduler.pump(start + 4s);  // What it holds comes home.
  EXPECT_TRUE(transfer->quiescent());
}

TEST_F(RailSchedulerTest, ARailThatIsSlowButMovesKeepsWhatItHolds) {
  const RailScheduler::Window window = patient();
  Line slow(host, 0, window), other(host, 1, window);
  int room = 2;
  slow.one_sided.answer = [&](const Op&) {
    return Post{room-- > 0 ? PostStatus::posted : PostStatus::again, 0};
  };
  const auto transfer = submit(scattered(4, 100), {0, 1});
  const auto start = Clock::now();
  for (auto at = start; at < start + 1600ms; at += 400ms) slow.scheduler.pump(at);
  slow.one_sided.end(0);
  for (auto at = start + 1600ms; at < start + 3200ms; at += 400ms) slow.scheduler.pump(at);
  EXPECT_EQ(slow.scheduler.in_flight(), 3U);
  EXPECT_TRUE(slow.one_sided.given_up.empty());
  slow.scheduler.pump(start + 3200ms);
  slow.scheduler.pump(start + 3600ms);
  EXPECT_EQ(slow.scheduler.in_flight(), 1U) << "what is out";
  slow.one_sided.end_all();
  other.scheduler.pump();
  other.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(RailSchedulerTest, TimeInWhichNobodyPumpedIsNotTheProviders) {
  const RailScheduler::Window window = patient();
  Line full(host, 0, window), other(host, 1, window);
  full.one_sided.answer = [](const Op&) { return Post{PostStatus::again, 0}; };
  const auto transfer = submit(scattered(4, 10), {0, 1});
  const auto start = Clock::now();
  full.scheduler.pump(start);
  full.scheduler.pump(start + 10s);
  full.scheduler.pump(start + 10400ms);
  EXPECT_EQ(full.scheduler.in_flight(), 2U) << "its half";
  EXPECT_TRUE(full.one_sided.given_up.empty());
  full.one_sided.answer = nullptr;
  while (!transfer->ended()) {
    full.scheduler.pump();
    full.one_sided.end_all();
  }
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(RailSchedulerTest, WhatComesToARailInDoubtThatHasNoRoomDoesNotWaitAsLong) {
  const RailScheduler::Window window = patient();
  Line full(host, 0, window), free(host, 1, window);
  full.one_sided.answer = [](const Op&) { return Post{PostStatus::again, 0}; };
  std::vector<std::shared_ptr<TransferState>> transfers;
  spare = {1};
  for (int i = 0; i < 20; ++i) transfers.push_back(submit(scattered(1, 10), {0}));
  const auto start = Clock::now();
  for (auto at = start; at < start + 2s; at += 400ms) full.scheduler.pump(at);
  for (auto at = start + 2s; at < start + 2s + 25ms; at += 1ms) full.scheduler.pump(at);
  EXPECT_EQ(full.scheduler.in_flight(), 0U);
  for (const auto& each : transfers) EXPECT_THAT(each->carriers(), ElementsAre(1U));
  while (free.scheduler.pump() > 0) free.one_sided.end_all();
  for (const auto& each : transfers) EXPECT_EQ(each->state(), State::done);
}

TEST_F(RailSchedulerTest, WhatARailHasCarriedItProvesThoughOthersCarryTheRest) {
  proofs = 1;
  Line silent(host, 0, {8, 100000}), other(host, 1, {8, 100000});
  silent.one_sided.cut = true;
  const auto transfer = submit(scattered(4, 10), {0, 1});
  silent.scheduler.pump();
  silent.one_sided.end(0);
  silent.scheduler.went_silent();
  while (!silent.one_sided.posted.empty()) silent.one_sided.end(0, false);
  EXPECT_THAT(transfer->carriers(), ElementsAre(1U));
  other.scheduler.pump();
  other.one_sided.end_all();
  EXPECT_THAT(transfer->carriers(), testing::UnorderedElementsAre(0U, 1U));
  for (Line* line : {&silent, &other}) {
    line->scheduler.pump();
    line->bounce.end_all();
  }
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(RailSchedulerTest, WhatWasCutFromARailInDoubtIsCarriedByTheOthers) {
  Line silent(host, 0, {8, 100000}), other(host, 1, {8, 100000});
  silent.one_sided.cut = true;
  const auto transfer = submit(scattered(4, 10), {0, 1});
  silent.scheduler.pump();
  silent.scheduler.went_silent();
  silent.one_sided.end(0, false);
  EXPECT_THAT(transfer->carriers(), ElementsAre(1U));
  while (!silent.one_sided.posted.empty()) silent.one_sided.end(0, false);
  silent.scheduler.pump();
  EXPECT_TRUE(silent.one_sided.posted.empty());
  other.scheduler.pump();
  other.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(RailSchedulerTest, WhatWasCutFromTheOnlyRailIsCarriedByItOnceMore) {
  Line silent(host, 0, {8, 100000});
  silent.one_sided.cut = true;
  const auto transfer = submit(scattered(4, 10), {0});
  silent.scheduler.pump();
  silent.scheduler.went_silent();
  for (int each = 0; each < 4; ++each) silent.one_sided.end(0, false);
  silent.scheduler.pump();
  silent.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(RailSchedulerTest, APostThatFailsMovesTheTransferToTheOtherLane) {
  Line broken(host, 0, {16, 100000}), whole(host, 1, {16, 100000});
  int good = 3;
  broken.one_sided.answer = [&](const Op&) {
    return good-- > 0 ? Post{} : Post{PostStatus::failed, 5};
  };
  const auto transfer = submit(scattered(30, 10), {0, 1});
  broken.scheduler.pump();
  EXPECT_LE(broken.one_sided.attempts, 3U + 8U) << "a scheduler that left pulls no more";
  broken.one_sided.end_all();
  while (!transfer->ended()) {
    whole.scheduler.pump();
    broken.scheduler.pump();
    ASSERT_FALSE(whole.one_sided.posted.empty());
    whole.one_sided.end_all();
  }
  EXPECT_EQ(transfer->state(), State::done);
  const Report report = transfer->report();
  EXPECT_EQ(report.bytes_done, 300U);
  ASSERT_EQ(report.rails.size(), 2U);
  EXPECT_EQ(report.rails[0].operations, 3U);
  EXPECT_EQ(report.rails[1].operations, 27U);
  EXPECT_FALSE(broken.scheduler.has_work());
}

TEST_F(RailSchedulerTest, WhenEveryLanesPostFailsTheErrorNamesTheLastRail) {
  Line first(host, 0, {16, 100000}), second(host, 1, {16, 100000});
  const auto fails = [](const Op&) { return Post{PostStatus::failed, 5}; };
  first.one_sided.answer = second.one_sided.answer = fails;
  const auto transfer = submit(scattered(30, 10), {0, 1});
  first.scheduler.pump();
  EXPECT_EQ(transfer->state(), State::active);
  second.scheduler.pump();
  EXPECT_EQ(transfer->state(), State::failed);
  EXPECT_TRUE(transfer->quiescent());
  const Error error = *transfer->error();
  EXPECT_EQ(error.code(), Code::fabric_failed);
  EXPECT_EQ(error.fabric_code(), 5);
  EXPECT_EQ(error.rail(), "rail:1");
  EXPECT_EQ(error.peer(), "peer");
  EXPECT_EQ(error.operation(), "write");
  EXPECT_TRUE(transfer->wait_quiescent(Deadline::now()));
}

TEST_F(RailSchedulerTest, AFailedChunkFailsTheTransferWithItsContext) {
  Line line(host, 0, {16, 100000});
  const auto transfer = submit(scattered(3, 10), {0});
  line.scheduler.pump();
  line.one_sided.end(1, false);
  EXPECT_EQ(transfer->state(), State::failed);
  EXPECT_FALSE(transfer->quiescent());
  EXPECT_THAT(transfer->error()->message(), testing::HasSubstr("a write of 10 bytes failed"));
  EXPECT_THAT(transfer->error()->message(), testing::HasSubstr("in other words"));
  EXPECT_EQ(transfer->error()->rail(), "rail:0");
  line.one_sided.end_all();
  EXPECT_TRUE(transfer->quiescent());
}

TEST_F(RailSchedulerTest, OfATransferThatTimedOutTheWayIsSetAsideOnWhichSomethingIsOut) {
  Line line(host, 0, {2, 1000}), other(host, 1, {2, 1000});
  const auto transfer = submit(scattered(2, 10), {0, 1});
  EXPECT_EQ(line.scheduler.pump(), 2U);
  other.scheduler.pump();
  transfer->end_early(State::timed_out, Error(Code::timed_out, "its deadline passed"));
  line.scheduler.timed_out(*transfer);
  other.scheduler.timed_out(*transfer);
  EXPECT_TRUE(peer->routes[0]->is_aside(Clock::time_point{}));
  EXPECT_FALSE(peer->routes[1]->is_aside(Clock::time_point{}));
  line.one_sided.end_all();
  EXPECT_FALSE(peer->routes[0]->is_aside(Clock::time_point{})) << "it works after all";
}

TEST_F(RailSchedulerTest, OfATransferThatWaitedForThePeersLeaveNoWayIsSetAside) {
  Line line(host, 0, {2, 1000});
  const auto transfer = submit(scattered(2, 10), {0});
  EXPECT_EQ(line.scheduler.pump(), 2U);
  line.one_sided.waits = true;
  transfer->end_early(State::timed_out, Error(Code::timed_out, "its deadline passed"));
  line.scheduler.timed_out(*transfer);
  EXPECT_FALSE(peer->routes[0]->is_aside(Clock::time_point{}));
  line.one_sided.end_all();
}

TEST_F(RailSchedulerTest, ALaneThatTheLastTransferHasLeftRests) {
  Line line(host, 0, {4, 1000}), other(host, 1, {4, 1000});
  const auto transfer = submit(scattered(10, 10), {0, 1});
  EXPECT_EQ(line.scheduler.pump(), 4U);
  Op& broken = *line.one_sided.posted.front();
  line.one_sided.posted.erase(line.one_sided.posted.begin());
  providers::Completion completion;
  completion.ok = false;
  completion.fabric_code = 5;
  completion.path_failed = true;
  line.one_sided.sink_of_scheduler().chunk_ended(broken, completion);
  EXPECT_EQ(line.scheduler.pump(), 0U) << "it pulls no more";
  line.one_sided.end_all();
  EXPECT_FALSE(line.scheduler.has_work());
  while (!transfer->ended()) {
    ASSERT_GT(other.scheduler.pump(), 0U);
    other.one_sided.end_all();
  }
  EXPECT_EQ(transfer->state(), State::done);
}

/// Three chunks of the greatest size would be two for one rail and one for the other.
TEST_F(RailSchedulerTest, LanesCarryPartsOfOneSize) {
  constexpr std::uint64_t limit = 512 << 10, bytes = 3 * limit;
  Line line(host, 0, {1, bytes}), other(host, 1, {1, bytes});
  for (Line* each : {&line, &other}) each->one_sided.limit = limit;
  const auto transfer = submit(PieceList(std::vector<Pair>{{0, 0, bytes}}), {0, 1}, nullptr,
                               TransportKind::one_sided, {bytes / 2, true});
  std::array<std::uint64_t, 2> carried{};
  while (!transfer->ended()) {
    for (Line* each : {&line, &other}) {
      ASSERT_EQ(each->scheduler.pump(), 1U);
      carried[each == &other] += each->one_sided.bytes;
    }
    for (Line* each : {&line, &other}) each->one_sided.end_all();
  }
  EXPECT_EQ(carried[0], bytes / 2);
  EXPECT_EQ(carried[1], bytes / 2);
}

TEST_F(RailSchedulerTest, TransfersShareTheLane) {
  Line line(host, 0, {16, 100000});
  constexpr std::size_t count = 4;
  std::vector<std::shared_ptr<TransferState>> transfers;
  for (std::size_t i = 0; i < count; ++i) transfers.push_back(submit(scattered(200, 10), {0}));
  std::vector<std::size_t> posted(count);
  for (int step = 0; step < 20; ++step) {
    line.scheduler.pump();
    for (const Op* op : line.one_sided.posted)
      for (std::size_t i = 0; i < count; ++i)
        if (op->transfer == transfers[i].get()) ++posted[i];
    line.one_sided.end_all();
  }
  const auto [least, most] = std::minmax_element(posted.begin(), posted.end());
  EXPECT_LE(*most - *least, 8U) << "no more than a batch apart";
  for (const auto& transfer : transfers) transfer->cancel();
  line.scheduler.pump();
  line.one_sided.end_all();
}

TEST_F(RailSchedulerTest, APeerThatTakesNothingHoldsUpNobodyElse) {
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
      line.scheduler.pump();
      for (std::size_t i = line.one_sided.posted.size(); i-- > 0;)
        if (line.one_sided.posted[i]->transfer == going.get()) line.one_sided.end(i);
    }
    EXPECT_EQ(going->state(), State::done);
    EXPECT_EQ(stuck->report().operations, 8U) << "no more than its window was taken";
    // And it goes on when it can.
    line.one_sided.answer = nullptr;
    for (int step = 0; step < 1000 && !stuck->ended(); ++step) {
      line.scheduler.pump();
      line.one_sided.end_all();
    }
    EXPECT_EQ(stuck->state(), State::done);
    EXPECT_EQ(stuck->report().operations, 100U);
  }
}

TEST_F(RailSchedulerTest, AllPeersTogetherKeepToTheProvidersQueue) {
  Line line(host, 0, {8, 100000, 12});
  const auto other = make_peer(1, "other");
  const auto one = submit(scattered(100, 10), {0}), two = submit(scattered(100, 10), {0}, other);
  while (!one->ended() || !two->ended()) {
    line.scheduler.pump();
    line.one_sided.end(0);
  }
  EXPECT_EQ(line.one_sided.most_operations, 12U);
}

TEST_F(RailSchedulerTest, ADeadPeersChunksAreWrittenOffAndHoldTheirMemory) {
  Line line(host, 0, {8, 100000, 8});
  const auto other = make_peer(1, "other");
  const auto dying = submit(scattered(20, 10), {0});
  line.scheduler.pump();
  EXPECT_EQ(line.scheduler.in_flight(), 8U);
  const auto waiting = submit(scattered(20, 10), {0}, other);
  EXPECT_EQ(line.scheduler.pump(), 0U) << "the window is full";

  peer->set_down(Error(Code::peer_down, "gone"));
  dying->end_early(State::failed, peer->down_error());
  line.scheduler.peer_died(*peer->route_by_rail[0]);
  EXPECT_EQ(line.scheduler.lost(), 8U);
  EXPECT_EQ(line.scheduler.in_flight(), 0U);
  EXPECT_FALSE(dying->quiescent()) << "what is posted may still be read";
  EXPECT_EQ(line.scheduler.pump(), 8U) << "others have the room";

  // Late completions are settled one by one.
  for (int i = 0; i < 8; ++i) line.one_sided.end(0);
  EXPECT_TRUE(dying->quiescent());
  EXPECT_EQ(line.scheduler.lost(), 0U);
  EXPECT_EQ(line.scheduler.in_flight(), 8U);
  while (!waiting->ended()) {
    line.one_sided.end_all();
    line.scheduler.pump();
  }
  EXPECT_EQ(waiting->state(), State::done);
}

TEST_F(RailSchedulerTest, ADeadPeersHeldChunksComeBackAtOnce) {
  Line line(host, 0, {8, 100000});
  line.one_sided.answer = [](const Op&) { return Post{PostStatus::again, 0}; };
  const auto dying = submit(scattered(20, 10), {0});
  line.scheduler.pump();
  peer->set_down(Error(Code::peer_down, "gone"));
  dying->end_early(State::failed, peer->down_error());
  line.scheduler.peer_died(*peer->route_by_rail[0]);
  EXPECT_TRUE(dying->quiescent());
  EXPECT_EQ(line.scheduler.in_flight(), 0U);
  EXPECT_EQ(line.scheduler.lost(), 0U);
  EXPECT_EQ(line.one_sided.given_up.size(), 8U);
  line.scheduler.pump();
  EXPECT_FALSE(line.scheduler.has_work());
}

TEST_F(RailSchedulerTest, ChunksOutWhenTheRailGoesAreItsOrphans) {
  Line line(host, 0, {8, 100000});
  const auto transfer = submit(scattered(3, 10), {0});
  line.scheduler.pump();
  transfer->end_early(State::failed, Error(Code::closed, "closed"));
  auto orphans = line.scheduler.take_orphans();
  ASSERT_EQ(orphans.size(), 3U);
  for (const auto& [owner, chunk] : orphans) owner->give_back(chunk);
  EXPECT_TRUE(transfer->quiescent());
  EXPECT_TRUE(transfer->wait_quiescent(Deadline::now()));
}

TEST_F(RailSchedulerTest, TransfersThatEndedWhileTheWindowIsStuckAreLetGo) {
  Line line(host, 0, {4, 100000});
  const auto stuck = submit(scattered(4, 10), {0});
  line.scheduler.pump();
  std::vector<std::weak_ptr<TransferState>> ended;
  for (int i = 0; i < 1000; ++i) {
    const auto transfer = submit(scattered(1, 10), {0});
    transfer->end_early(State::timed_out, Error(Code::timed_out, "late"));
    ended.push_back(transfer);
    line.scheduler.pump();
  }
  const auto kept =
      std::count_if(ended.begin(), ended.end(), [](const auto& each) { return !each.expired(); });
  EXPECT_LT(kept, 200) << "a rail that does not move must not collect what has ended";
  line.one_sided.end_all();
}

TEST_F(RailSchedulerTest, ALaneThatIsAwakeFirstLeavesTheOthersTheirParts) {
  for (const std::size_t chunks : {2U, 4U, 8U}) {
    Line first(host, 0, {8, 800}), second(host, 1, {8, 800});
    const auto transfer = submit(scattered(chunks, 100), {0, 1});
    // The other one's thread comes while the first post of this one takes its time.
    first.one_sided.answer = [&](const Op&) {
      if (second.one_sided.attempts == 0) second.scheduler.pump();
      return Post{};
    };
    first.scheduler.pump();
    EXPECT_EQ(first.one_sided.posted.size(), chunks / 2);
    EXPECT_EQ(second.one_sided.posted.size(), chunks / 2);
    first.one_sided.end_all();
    second.one_sided.end_all();
    EXPECT_EQ(transfer->state(), State::done);
    EXPECT_EQ(transfer->report().bytes_done, chunks * 100);
  }
}

TEST_F(RailSchedulerTest, ALaneTakesTheWholeTransferWhileTheOthersSleep) {
  Line awake(host, 0, {8, 800}), asleep(host, 1, {8, 800});
  const auto transfer = submit(scattered(4, 100), {0, 1});
  EXPECT_EQ(awake.scheduler.pump(), 4U);
  awake.one_sided.end_all();
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(RailSchedulerTest, LanesShareATransferAndEveryByteGoesOnce) {
  Line first(host, 0, {4, 1000}), second(host, 1, {4, 1000}), third(host, 2, {4, 1000});
  const auto transfer = submit(scattered(300, 10), {0, 1, 2});
  std::map<std::uint64_t, int> seen;
  std::array<Line*, 3> lines = {&first, &second, &third};
  while (!transfer->ended())
    for (Line* line : lines) {
      line->scheduler.pump();
      for (const Op* op : line->one_sided.posted) ++seen[op->chunk.local];
      line->one_sided.end_all();
    }
  EXPECT_EQ(seen.size(), 300U);
  for (const auto& [offset, times] : seen) EXPECT_EQ(times, 1) << offset;
  EXPECT_EQ(transfer->report().rails.size(), 3U);
}

}  // namespace
}  // namespace weft::core::test
