// One reading of a lease's word for all whose bytes have come.
#include "transport/lease_reader.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "parts.hpp"
#include "scripted_endpoint.hpp"

namespace weft::core::test {
namespace {

using providers::Completion;
using providers::Post;
using providers::Posted;
using providers::PostStatus;

/// Its reads end when the test says so.
class Words final : public ScriptedEndpoint {
 public:
  struct Read {
    Posted* posted = nullptr;
    providers::Local into;
    providers::Target from;
  };
  Result<std::unique_ptr<providers::Registration>> register_memory(const providers::Extent&,
                                                                   providers::Access) override {
    return std::make_unique<Registered>();
  }
  Post read(Posted& posted, const providers::Local& into, const providers::Target& from) override {
    if (answer.status == PostStatus::posted) reads.push_back({&posted, into, from});
    return answer;
  }

  /// The oldest read ends, with that word if it went well.
  Read end(std::optional<std::uint64_t> word) {
    const Read read = reads.front();
    reads.pop_front();
    if (word) std::memcpy(read.into.address, &*word, sizeof *word);
    tell(read, word.has_value());
    return read;
  }
  static void tell(const Read& read, bool ok) {
    Completion completion;
    completion.ok = ok;
    completion.fabric_code = ok ? 0 : 5;
    read.posted->handler->completed(*read.posted, completion);
  }

  std::deque<Read> reads;

 private:
  class Registered final : public providers::Registration {
   public:
    void* descriptor() const noexcept override { return nullptr; }
    std::uint64_t key() const noexcept override { return 0; }
    bool close() override { return true; }
  };
};

class EpochReading : public testing::Test {
 protected:
  static constexpr std::uint64_t epoch = 42;

  EpochReading() { EXPECT_TRUE(reader.prepare().has_value()); }
  void TearDown() override {
    for (const auto& each : transfers_)
      each->end_early(State::cancelled, Error(Code::cancelled, "the test is over"));
  }

  std::shared_ptr<PreparedState> lease(const std::shared_ptr<PeerState>& owner,
                                       std::uint64_t word_address) {
    GrantDescription grant;
    grant.engine = owner->introduction.name;
    grant.segment_size = 4096;
    grant.rights = Rights::read;
    grant.ranges = {{0, 4096}};
    grant.epoch = epoch;
    grant.keys = {{0, 0, 1}};
    grant.epoch_keys = {{0, word_address, 2}};
    auto prepared = make_prepared(owner, scattered(1, 10), Direction::read);
    prepared->remote = std::make_shared<RemoteState>(owner, std::move(grant));
    return prepared;
  }
  /// One whose bytes have come.
  Op& add(const std::shared_ptr<PreparedState>& under) {
    transfers_.push_back(std::make_shared<TransferState>(make_submission(under), host_));
    transfers_.back()->start({0});
    Op& op = ops_.emplace_back();
    op.transfer = transfers_.back().get();
    op.route = under->path->of(0)->route;
    op.chunk.kind = Chunk::Kind::epoch;
    reader.add(op);
    return op;
  }

  Words words;
  std::map<const Op*, Completion> ends;
  LeaseReader reader{words, 0, [this](Op& op, const Completion& completion) {
                       EXPECT_TRUE(ends.emplace(&op, completion).second) << "told twice";
                       ends.at(&op).text = {};
                     }};
  const std::shared_ptr<PeerState> peer = make_peer(1);

 private:
  NoHost host_;
  std::deque<Op> ops_;
  std::vector<std::shared_ptr<TransferState>> transfers_;
};

TEST_F(EpochReading, OneReadingServesAllWhoseBytesHaveCome) {
  const auto one = lease(peer, 8), another = lease(peer, 16);
  for (int i = 0; i < 3; ++i) add(one);
  add(another);
  EXPECT_EQ(reader.progress(), 2U);
  ASSERT_EQ(words.reads.size(), 2U) << "one for each lease";
  words.end(epoch);
  words.end(epoch);
  ASSERT_EQ(ends.size(), 4U);
  for (const auto& [op, end] : ends) EXPECT_TRUE(end.ok);
  EXPECT_EQ(reader.progress(), 0U);
}

TEST_F(EpochReading, WhoComesWhileOneIsUnderWayIsServedByTheNext) {
  const auto under = lease(peer, 8);
  const Op& early = add(under);
  EXPECT_EQ(reader.progress(), 1U);
  const Op &late = add(under), &later = add(under);
  EXPECT_EQ(reader.progress(), 0U) << "one at a time";
  EXPECT_EQ(words.reads.size(), 1U);
  EXPECT_EQ(words.end(epoch).from.address, 8U);
  EXPECT_TRUE(ends.at(&early).ok);
  EXPECT_EQ(ends.size(), 1U) << "what was read before the bytes came says nothing of them";
  EXPECT_EQ(reader.progress(), 1U);
  words.end(epoch + 1);
  for (const Op* op : {&late, &later}) {
    EXPECT_FALSE(ends.at(op).ok);
    EXPECT_EQ(ends.at(op).refusal, Code::stale);
  }
}

TEST_F(EpochReading, WithoutRoomItIsBegunLater) {
  const Op& op = add(lease(peer, 8));
  words.answer = {PostStatus::again, 0};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(reader.progress(), 0U);
  EXPECT_TRUE(ends.empty());
  words.answer = {PostStatus::posted, 0};
  EXPECT_EQ(reader.progress(), 1U);
  words.end(epoch);
  EXPECT_TRUE(ends.at(&op).ok);
}

TEST_F(EpochReading, ARefusedReadingIsAFailureOfTheWay) {
  const auto under = lease(peer, 8);
  const Op &one = add(under), &two = add(under);
  words.answer = {PostStatus::failed, 111};
  reader.progress();
  for (const Op* op : {&one, &two}) {
    EXPECT_FALSE(ends.at(op).ok);
    EXPECT_TRUE(ends.at(op).path_failed);
    EXPECT_EQ(ends.at(op).fabric_code, 111);
  }
}

TEST_F(EpochReading, WithThePeerOnlyThoseEndForWhomNothingIsUnderWay) {
  const auto other = make_peer(1, "other");
  const auto under = lease(peer, 8);
  const Op& out = add(under);
  reader.progress();
  const Op &waiting = add(under), &unread = add(lease(peer, 16)), &elsewhere = add(lease(other, 8));
  reader.peer_died(*out.route);
  EXPECT_EQ(ends.size(), 2U);
  EXPECT_FALSE(ends.at(&waiting).ok);
  EXPECT_FALSE(ends.at(&unread).ok);
  EXPECT_EQ(reader.progress(), 1U) << "of the other peer";
  words.end(std::nullopt);
  EXPECT_FALSE(ends.at(&out).ok);
  words.end(epoch);
  EXPECT_TRUE(ends.at(&elsewhere).ok);
  EXPECT_EQ(reader.progress(), 0U);
}

}  // namespace
}  // namespace weft::core::test
