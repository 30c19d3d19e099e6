// What goes to the endpoint of several posts of one transfer.
#include "transport/rma.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <deque>
#include <memory>
#include <vector>

#include "parts.hpp"
#include "scripted_endpoint.hpp"

namespace weft::core::test {
namespace {

using providers::BatchPost;
using providers::Post;
using providers::PostStatus;
using testing::ElementsAre;
using testing::IsEmpty;

class Batches final : public ScriptedEndpoint {
 public:
  Post write(providers::Posted& posted, const providers::Local&,
             const providers::Target&) override {
    singly.push_back(&posted);
    return {};
  }
  BatchPost post_all(bool writes, std::span<const providers::RmaPost> posts) override {
    EXPECT_TRUE(writes);
    EXPECT_FALSE(posts.empty());
    together.emplace_back(posts.begin(), posts.end());
    return {std::min(takes, posts.size()), {PostStatus::again, 0}};
  }
  std::size_t takes = 100;
  std::vector<const providers::Posted*> singly;
  std::vector<std::vector<providers::RmaPost>> together;
};

class RmaTest : public testing::Test {
 protected:
  /// The peer's rails take turns.
  static constexpr std::uint32_t rails = 2;

  RmaTest() {
    Route& route = *peer->routes.front();
    route.targets = {};
    GrantDescription grant;
    grant.engine = peer->introduction.name;
    grant.segment_size = 4096;
    grant.rights = Rights::read_write;
    grant.ranges = {{0, 4096}};
    for (std::uint32_t rail = 0; rail < rails; ++rail) {
      const auto [place, added] = route.addresses.try_emplace(rail, rail + 10);
      place->second = rail + 10;
      route.targets.add({rail, &place->second});
      grant.keys.push_back({rail, 1000 * rail, 100 + rail});
      grant.epoch_keys.push_back({rail, 0, 1});
    }
    prepared = make_prepared(peer, scattered(4, 10));
    prepared->remote = std::make_shared<RemoteState>(peer, std::move(grant));
    prepared->local->keys()->serve(0, false);
    prepared->losses = losses_of(*prepared->local, *prepared->remote);
    transfer = std::make_shared<TransferState>(make_submission(prepared), host);
    transfer->start({0});
    for (std::size_t i = 0; i < 4; ++i) {
      Op& op = ops.emplace_back();
      op.transfer = transfer.get();
      op.route = &route;
      op.chunk.local = op.chunk.remote = 11 * i;
      op.chunk.length = 10;
      all.push_back(&op);
    }
  }
  ~RmaTest() override {
    transfer->end_early(State::cancelled, Error(Code::cancelled, "the test is over"));
  }
  void lose_key_of(std::uint32_t rail) {
    RenewedKey lost;
    lost.rail = rail;
    lost.why_lost = "the device's memory can't be registered any more";
    prepared->remote->renew(lost);
  }
  Rma transport() { return Rma(endpoint, 0, 4096); }

  NoHost host;
  Batches endpoint;
  const std::shared_ptr<PeerState> peer = make_peer(1);
  std::shared_ptr<PreparedState> prepared;
  std::shared_ptr<TransferState> transfer;
  std::deque<Op> ops;
  std::vector<Op*> all;
};

TEST_F(RmaTest, WhereTheyShareADoorbellAllGoTogether) {
  endpoint.record.shared_doorbell = true;
  EXPECT_EQ(transport().post_all(all).posted, 4U);
  EXPECT_THAT(endpoint.singly, IsEmpty());
  ASSERT_EQ(endpoint.together.size(), 1U);
  ASSERT_EQ(endpoint.together.front().size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const providers::RmaPost& each = endpoint.together.front()[i];
    EXPECT_EQ(each.posted, all[i]);
    EXPECT_NE(each.posted->handler, nullptr);
    EXPECT_EQ(each.piece.local.address, prepared->local->address() + 11 * i);
    EXPECT_EQ(each.piece.local.length, 10U);
    EXPECT_EQ(each.piece.target.peer, 10 + i % rails);
    EXPECT_EQ(each.piece.target.address, 1000 * (i % rails) + 11 * i);
    EXPECT_EQ(each.piece.target.key, 100 + i % rails);
  }
}

TEST_F(RmaTest, WhereTheyDoNotEachGoesAlone) {
  EXPECT_EQ(transport().post_all(all).posted, 4U);
  EXPECT_THAT(endpoint.together, IsEmpty());
  EXPECT_THAT(endpoint.singly, ElementsAre(all[0], all[1], all[2], all[3]));
}

TEST_F(RmaTest, WhereOneTargetHasLostItsKeyTheOthersTakeItsTurns) {
  endpoint.record.shared_doorbell = true;
  lose_key_of(1);
  EXPECT_EQ(transport().post_all(all).posted, 4U);
  ASSERT_EQ(endpoint.together.size(), 1U);
  for (const providers::RmaPost& each : endpoint.together.front()) {
    EXPECT_EQ(each.piece.target.peer, 10U);
    EXPECT_EQ(each.piece.target.key, 100U);
  }
}

TEST_F(RmaTest, WithoutAKeyNothingComesToTheEndpoint) {
  lose_key_of(1);
  lose_key_of(0);
  for (const bool together : {true, false}) {
    endpoint.record.shared_doorbell = together;
    const BatchPost batch = transport().post_all(all);
    EXPECT_EQ(batch.posted, 0U);
    EXPECT_EQ(batch.refusal.status, PostStatus::failed);
    EXPECT_EQ(batch.refusal.fabric_code, ENOKEY);
  }
  EXPECT_THAT(endpoint.together, IsEmpty());
  EXPECT_THAT(endpoint.singly, IsEmpty());
}

/// It was prepared when the key was missing, and nothing was lost since.
TEST_F(RmaTest, WhatIsNotCompleteGoesToTargetsThatHaveItsKeys) {
  endpoint.record.shared_doorbell = true;
  lose_key_of(1);
  prepared->losses = losses_of(*prepared->local, *prepared->remote);
  SideExtents remote = make_extents(2048, {1, 1}, 1);
  remote.reached = [](std::uint64_t) { return SideExtents::Reached{1, true, false}; };
  prepared->reach = *Reach::find(prepared->pieces, {0}, make_extents(4096, {1}, 1), remote);
  EXPECT_EQ(transport().post_all(all).posted, 4U);
  ASSERT_EQ(endpoint.together.size(), 1U);
  for (const providers::RmaPost& each : endpoint.together.front())
    EXPECT_EQ(each.piece.target.peer, 10U);
}

TEST_F(RmaTest, TheEndpointsRefusalComesFirst) {
  endpoint.record.shared_doorbell = true;
  endpoint.takes = 2;
  const BatchPost batch = transport().post_all(all);
  EXPECT_EQ(batch.posted, 2U);
  EXPECT_EQ(batch.refusal.status, PostStatus::again);
}

}  // namespace
}  // namespace weft::core::test
