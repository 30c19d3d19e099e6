// The initiator's side of a check, with a peer that answers what the test says.
#include "verify/checks.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include "parts.hpp"
#include "wire/control_codec.hpp"

namespace weft::core::test {
namespace {

class CheckHost final : public TransferHost {
 public:
  explicit CheckHost(Checks& checks) : checks_(checks) {}
  void verify(const std::shared_ptr<TransferState>& transfer) override { checks_.start(transfer); }
  void raise_signal(const std::shared_ptr<TransferState>&) override {}
  void offer_again(const std::shared_ptr<TransferState>&) override {}
  void transfer_ended(TransferState& transfer) override { checks_.end(transfer); }

 private:
  Checks& checks_;
};

class ChecksTest : public testing::Test {
 protected:
  using Transfer = std::shared_ptr<TransferState>;
  struct Question {
    LinkId link = 0;
    CheckRequest request;
  };

  /// A transfer whose bytes are all placed.
  Transfer placed(const std::shared_ptr<PeerState>& to, std::size_t pieces,
                  bool ended_first = false) {
    TransferOptions options;
    options.verify = true;
    auto prepared = make_prepared(to, scattered(pieces, 10));
    for (std::size_t i = 0; i < prepared->local->size(); ++i)
      prepared->local->address()[i] = static_cast<std::byte>(i);
    auto transfer =
        std::make_shared<TransferState>(make_submission(prepared, std::move(options)), host);
    transfer->start({0});
    std::vector<Chunk> chunks(pieces);
    EXPECT_EQ(transfer->take(0, chunks, 10), pieces);
    if (ended_first) transfer->end_early(State::timed_out, Error(Code::timed_out, "late"));
    for (const Chunk& chunk : chunks) transfer->completed(0, chunk);
    return transfer;
  }
  /// Runs what was posted until the transfer has ended and nothing looks at its memory.
  void run_until_quiescent(const TransferState& transfer) {
    while (!(transfer.ended() && transfer.quiescent())) {
      std::unique_lock lock(mutex);
      ASSERT_TRUE(changed.wait_until(lock, soon().when(), [&] { return !posted.empty(); }));
      const auto task = std::move(posted.front());
      posted.pop_front();
      lock.unlock();
      task();
    }
  }
  static std::uint64_t hash_of(const TransferState& transfer, std::size_t pieces) {
    Xxh3 hash;
    for (std::size_t i = 0; i < pieces; ++i)
      hash.add(transfer.prepared().local->address() + i * 11, 10);
    return hash.digest();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> posted;
  std::vector<Question> asked;  // on the test's own thread, but for long transfers
  Hasher hasher;
  Checks checks{hasher,
                [this](LinkId link, CheckRequest request) {
                  const std::lock_guard lock(mutex);
                  asked.push_back({link, std::move(request)});
                },
                [this](const TransferState&, std::function<void()> task) {
                  const std::lock_guard lock(mutex);
                  posted.push_back(std::move(task));
                  changed.notify_all();
                }};
  CheckHost host{checks};
  const std::shared_ptr<PeerState> peer = make_peer(1);

  void TearDown() override { hasher.stop(); }
};

TEST_F(ChecksTest, AsksForThePiecesInTheirOrderAndCompares) {
  const auto transfer = placed(peer, 3);
  ASSERT_EQ(asked.size(), 1U);
  const CheckRequest& question = asked[0].request;
  EXPECT_EQ(asked[0].link, peer->link);
  EXPECT_EQ(question.lease, transfer->prepared().remote->description().lease);
  ASSERT_EQ(question.ranges.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(question.ranges[i].offset, i * 11);
    EXPECT_EQ(question.ranges[i].length, 10U);
  }
  EXPECT_EQ(transfer->state(), State::active);
  checks.answered(peer->link, {question.request, Code{}, hash_of(*transfer, 3)});
  run_until_quiescent(*transfer);
  EXPECT_EQ(transfer->state(), State::done);
}

TEST_F(ChecksTest, AnotherHashIsCorruption) {
  const auto transfer = placed(peer, 3);
  checks.answered(peer->link, {asked.at(0).request.request, Code{}, hash_of(*transfer, 3) + 1});
  run_until_quiescent(*transfer);
  EXPECT_EQ(transfer->state(), State::failed);
  EXPECT_EQ(transfer->error()->code(), Code::corrupt);
  EXPECT_EQ(transfer->error()->peer(), "peer");
}

TEST_F(ChecksTest, ARefusalFailsTheTransferWithItsCode) {
  const auto transfer = placed(peer, 1);
  checks.answered(peer->link, {asked.at(0).request.request, Code::stale, 0});
  run_until_quiescent(*transfer);
  EXPECT_EQ(transfer->error()->code(), Code::stale);
}

TEST_F(ChecksTest, OnlyThePeersOwnFirstAnswerCounts) {
  const auto transfer = placed(peer, 3);
  const std::uint64_t request = asked.at(0).request.request;
  checks.answered(peer->link + 1, {request, Code::stale, 0});
  checks.answered(peer->link, {request + 1, Code::stale, 0});
  checks.answered(peer->link, {request, Code{}, hash_of(*transfer, 3)});
  checks.answered(peer->link, {request, Code{}, 0});
  checks.answered(peer->link, {request, Code::stale, 0});
  run_until_quiescent(*transfer);
  EXPECT_EQ(transfer->state(), State::done);
  checks.answered(peer->link, {request, Code::stale, 0});
}

TEST_F(ChecksTest, OfOnePeerSomeAreCheckedAtATime) {
  constexpr std::size_t count = Checks::at_a_time + 5;
  const auto other = make_peer(1, "other", peer->link + 1);
  std::vector<Transfer> transfers;
  for (std::size_t i = 0; i < count; ++i) transfers.push_back(placed(peer, 1));
  EXPECT_EQ(asked.size(), Checks::at_a_time);
  const auto to_other = placed(other, 1);
  ASSERT_EQ(asked.size(), Checks::at_a_time + 1);
  EXPECT_EQ(asked.back().link, other->link);
  // One that waits ends, and is not asked about when there is room.
  transfers.back()->end_early(State::timed_out, Error(Code::timed_out, "late"));
  EXPECT_TRUE(transfers.back()->quiescent());
  for (std::size_t i = 0; i < Checks::at_a_time; ++i)
    transfers[i]->end_early(State::timed_out, Error(Code::timed_out, "late"));
  EXPECT_EQ(asked.size(), count);
  for (const auto& each : transfers) each->end_early(State::failed, Error(Code::closed, "closed"));
  to_other->end_early(State::failed, Error(Code::closed, "closed"));
  for (const auto& each : transfers) run_until_quiescent(*each);
  run_until_quiescent(*to_other);
}

TEST_F(ChecksTest, OneThatHasEndedIsNotCheckedAndLeavesNothing) {
  const auto transfer = placed(peer, 1, true);
  checks.start(transfer);  // as if it had ended just before
  while (!posted.empty()) {
    posted.front()();
    posted.pop_front();
  }
  EXPECT_TRUE(asked.empty());
  EXPECT_TRUE(transfer->quiescent());
  for (std::size_t i = 0; i < Checks::at_a_time; ++i) {
    const auto next = placed(peer, 1);
    EXPECT_EQ(asked.size(), i + 1);
    next->end_early(State::failed, Error(Code::closed, "closed"));
    run_until_quiescent(*next);
  }
}

TEST_F(ChecksTest, AnswersAreGivenForWhatWasGrantedAndNoMoreThanAPartAtATime) {
  const std::vector<Range> granted = {{100, 50}, {1000, Checks::part + 10}};
  const auto code = [&](std::vector<Range> ranges) {
    const auto may = answerable({1, 2, std::move(ranges)}, granted);
    return may ? Code{} : may.error().code();
  };
  EXPECT_EQ(code({{100, 50}, {120, 1}, {1000, 10}}), Code{});
  EXPECT_EQ(code({{1000, Checks::part}}), Code{});
  EXPECT_EQ(code({{99, 2}}), Code::permission_denied);
  EXPECT_EQ(code({{100, 50}, {149, 2}}), Code::permission_denied);
  EXPECT_EQ(code({{100, ~std::uint64_t{0}}}), Code::permission_denied);
  EXPECT_EQ(code({{~std::uint64_t{0}, 2}}), Code::permission_denied);
  EXPECT_EQ(code({{1000, Checks::part + 1}}), Code::invalid_argument);
  EXPECT_EQ(code({{1000, Checks::part}, {100, 1}}), Code::invalid_argument);
}

}  // namespace
}  // namespace weft::core::test
