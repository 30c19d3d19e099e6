#include "providers/libfabric/doorbell.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <random>
#include <vector>

namespace weft::providers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// What efa-direct does over libefa, the strictest that is known: a post without room takes all
/// back that waits for the doorbell, and nobody is told of those.
class Nic {
 public:
  explicit Nic(std::size_t places) : places_(places) {}
  Post post(const RmaPost& each, bool leave_doorbell) {
    if (!each.piece.target.known()) return {PostStatus::failed, EHOSTUNREACH};
    left.push_back(leave_doorbell);
    spoilt_ = spoilt_ || room() == waiting_.size();
    if (!spoilt_) waiting_.push_back(each.posted);
    if (leave_doorbell) return {};
    return ring();
  }
  std::size_t room() const { return places_ - started.size(); }
  bool nothing_waits() const { return waiting_.empty() && !spoilt_; }

  std::vector<bool> left;  // for each that came here, whether the doorbell was left to the next one
  std::vector<const Posted*> started;
  unsigned rings = 0;

 private:
  Post ring() {
    const bool refused = std::exchange(spoilt_, false);
    if (!refused) started.insert(started.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
    ++rings;
    return {refused ? PostStatus::again : PostStatus::posted, 0};
  }
  const std::size_t places_;
  std::vector<const Posted*> waiting_;
  bool spoilt_ = false;
};

class Doorbell : public testing::Test {
 protected:
  Doorbell() {
    for (Posted& each : operations) posts.push_back({&each, {}});
  }
  BatchPost post(Nic& nic, std::size_t room) {
    return post_with_one_ring(
        posts, room, [&](const RmaPost& each, bool leave) { return nic.post(each, leave); });
  }
  void forget_peer(std::size_t of) { posts[of].piece.target.peer = unknown_peer; }

  std::array<Posted, 4> operations;
  std::vector<RmaPost> posts;
};

TEST_F(Doorbell, IsLeftToTheLast) {
  Nic nic(4);
  EXPECT_EQ(post(nic, nic.room()).posted, 4U);
  EXPECT_THAT(nic.left, ElementsAre(true, true, true, false));
  EXPECT_THAT(nic.started,
              ElementsAre(&operations[0], &operations[1], &operations[2], &operations[3]));
  EXPECT_EQ(nic.rings, 1U);
}

TEST_F(Doorbell, IsRungByTheOnlyOne) {
  Nic nic(1);
  posts.resize(1);
  EXPECT_EQ(post(nic, nic.room()).posted, 1U);
  EXPECT_THAT(nic.left, ElementsAre(false));
}

TEST_F(Doorbell, NothingIsPostedOfNothing) {
  Nic nic(1);
  posts.clear();
  EXPECT_EQ(post(nic, nic.room()).posted, 0U);
  EXPECT_THAT(nic.left, IsEmpty());
}

TEST_F(Doorbell, IsNotLeftWhereThereMayBeNoRoomForAll) {
  Nic nic(3);
  const BatchPost batch = post(nic, nic.room());
  EXPECT_EQ(batch.posted, 3U);
  EXPECT_EQ(batch.refusal.status, PostStatus::again);
  EXPECT_THAT(nic.left, ElementsAre(false, false, false, false));
  EXPECT_EQ(nic.started.size(), 3U);
}

TEST_F(Doorbell, IsRungBeforeOneThatIsRefusedForItsPeer) {
  Nic nic(4);
  forget_peer(2);
  const BatchPost batch = post(nic, nic.room());
  EXPECT_EQ(batch.posted, 2U);
  EXPECT_EQ(batch.refusal.status, PostStatus::failed);
  EXPECT_EQ(batch.refusal.fabric_code, EHOSTUNREACH);
  EXPECT_THAT(nic.left, ElementsAre(true, false)) << "nor is anything tried behind it";
  EXPECT_THAT(nic.started, ElementsAre(&operations[0], &operations[1]));
}

TEST_F(Doorbell, WhateverHappensAllThatWerePostedHaveStarted) {
  std::mt19937 random(1);
  const auto up_to = [&](std::size_t most) { return random() % (most + 1); };
  for (int round = 0; round < 10'000; ++round) {
    posts.clear();
    for (Posted& each : operations)
      posts.push_back({&each, {{}, {up_to(7) == 0 ? unknown_peer : 0, 0, 0}}});
    posts.resize(up_to(posts.size()));
    Nic nic(up_to(5));
    const BatchPost batch = post(nic, up_to(nic.room()));
    ASSERT_TRUE(nic.nothing_waits());
    ASSERT_EQ(nic.started.size(), batch.posted);
    for (std::size_t i = 0; i < batch.posted; ++i) ASSERT_EQ(nic.started[i], posts[i].posted);
    ASSERT_EQ(batch.posted == posts.size() || batch.refusal.status != PostStatus::posted, true);
  }
}

}  // namespace
}  // namespace weft::providers
