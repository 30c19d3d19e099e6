// Which of many transfers a rail posts, to which peers, and how many steps it takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "null_transport.hpp"
#include "parts.hpp"
#include "rail/rail_scheduler.hpp"

namespace weft::core::test {
namespace {

using weft::test::NullTransport;

class OneScheduler final : public TransferHost {
 public:
  explicit OneScheduler(RailScheduler& scheduler) : scheduler_(scheduler) {}
  void raise_signal(const std::shared_ptr<TransferState>& transfer) override {
    transfer->signal_ended(std::nullopt);
  }
  void offer_again(const std::shared_ptr<TransferState>& transfer) override {
    scheduler_.add(transfer);
  }
  void transfer_ended(TransferState&) override {}

 private:
  RailScheduler& scheduler_;
};

class SchedulerOrder : public testing::Test {
 protected:
  using Transfer = std::shared_ptr<TransferState>;

  /// One that is under way holds itself.
  void TearDown() override {
    for (const auto& each : submitted_)
      if (const Transfer transfer = each.lock())
        transfer->end_early(State::cancelled, Error(Code::cancelled, "the test is over"));
    null.thaw();
    null.progress();
    EXPECT_TRUE(std::all_of(submitted_.begin(), submitted_.end(), [](const auto& each) {
      const Transfer transfer = each.lock();
      return !transfer || transfer->quiescent();
    }));
  }
  /// A transfer of so many chunks.
  Transfer submit(const std::shared_ptr<PeerState>& to, std::size_t chunks,
                  Priority priority = Priority::normal) {
    const Transfer transfer = start(to, chunks, priority);
    scheduler.add(transfer);
    return transfer;
  }
  /// The same, which may go out at once.
  Transfer begin(const std::shared_ptr<PeerState>& to, std::size_t chunks,
                 Priority priority = Priority::normal) {
    const Transfer transfer = start(to, chunks, priority);
    scheduler.begin(transfer, Clock::now());
    return transfer;
  }
  std::size_t step() {
    const std::size_t posted = scheduler.pump();
    null.progress();
    return posted;
  }
  /// Carries everything that can be carried; how many steps it took.
  std::size_t carry(std::size_t most_steps) {
    for (std::size_t steps = 0; steps < most_steps; ++steps)
      if (step() == 0) return steps;
    ADD_FAILURE() << "it takes more than " << most_steps << " steps";
    return most_steps;
  }

  const Deadline deadline = soon();
  NullTransport null{NullTransport::Completes::on_progress, 10};
  NullTransport bounce{NullTransport::Completes::on_progress, 10}, copies;
  // Sixteen operations to one peer, two more for what is urgent, and so much for all together.
  static constexpr std::size_t window = 16, spare = 2, all = 64;
  RailScheduler scheduler{0,    "null:0", {window, 1000000, all, spare, 1000000},
                          null, bounce,   copies};

 private:
  Transfer start(const std::shared_ptr<PeerState>& to, std::size_t chunks, Priority priority) {
    auto& prepared = prepared_[{to.get(), chunks}];
    if (!prepared) prepared = make_prepared(to, scattered(chunks, 10));
    Submission submission(Clock::now());
    submission.bytes = prepared->bytes;
    submission.prepared = prepared;
    submission.priority = priority;
    submission.deadline = deadline.when();
    auto transfer = std::make_shared<TransferState>(std::move(submission), host_);
    transfer->start({0});
    submitted_.push_back(transfer);
    return transfer;
  }

  OneScheduler host_{scheduler};
  std::vector<std::weak_ptr<TransferState>> submitted_;
  std::map<std::pair<const PeerState*, std::size_t>, std::shared_ptr<PreparedState>> prepared_;
};

TEST_F(SchedulerOrder, WhatBeginsGoesOutAtOnceAsFarAsThereIsRoom) {
  const auto peer = make_peer(1), other = make_peer(1, "other");
  const auto one = begin(peer, 1);
  EXPECT_EQ(scheduler.in_flight(), 1U);
  EXPECT_EQ(scheduler.pump(), 0U);
  const auto many = begin(peer, 3 * window);
  EXPECT_GT(scheduler.in_flight(), 1U);
  scheduler.pump();
  EXPECT_EQ(scheduler.in_flight(), window);
  const auto behind = begin(peer, 1), beside = begin(other, 1);
  EXPECT_EQ(scheduler.in_flight(), window) << "somebody waits";
  carry(100);
  for (const Transfer& each : {one, many, behind, beside}) EXPECT_EQ(each->state(), State::done);
}

TEST_F(SchedulerOrder, WhatIsUrgentBeginsInTheSpareRoom) {
  const auto peer = make_peer(1);
  const auto half = begin(peer, window / 2), whole = begin(peer, window / 2);
  ASSERT_EQ(scheduler.in_flight(), window);
  const auto urgent = begin(peer, 1, Priority::latency);
  EXPECT_EQ(scheduler.in_flight(), window + 1);
  const auto other = begin(peer, 1);
  EXPECT_EQ(scheduler.in_flight(), window + 1);
  step();
  carry(10);
  for (const Transfer& each : {half, whole, urgent, other}) EXPECT_EQ(each->state(), State::done);
}

TEST_F(SchedulerOrder, WhatBeginsGoesBehindWhatWaits) {
  const auto peer = make_peer(1);
  std::vector<const TransferState*> order;
  null.on_post = [&](const Op& op) { order.push_back(op.transfer); };
  const auto first = submit(peer, 1);
  const auto second = begin(peer, 1);
  EXPECT_EQ(scheduler.in_flight(), 0U);
  carry(10);
  EXPECT_EQ(order, (std::vector<const TransferState*>{first.get(), second.get()}));
}

TEST_F(SchedulerOrder, WhatIsUrgentGoesOutWithTheNextCompletion) {
  const auto peer = make_peer(1);
  const auto bulk = submit(peer, 10000, Priority::bulk);
  EXPECT_EQ(scheduler.pump(), window);
  const auto urgent = submit(peer, 3, Priority::latency);
  EXPECT_EQ(scheduler.pump(), spare) << "the spare room is for it";
  const std::uint64_t before = bulk->report().operations;
  null.progress();
  scheduler.pump();
  null.progress();
  EXPECT_EQ(urgent->state(), State::done);
  EXPECT_LE(bulk->report().operations, before + window);
}

TEST_F(SchedulerOrder, TheSpareRoomIsForWhatIsUrgentOnly) {
  const auto peer = make_peer(1);
  submit(peer, 100, Priority::bulk);
  submit(peer, 100, Priority::normal);
  EXPECT_EQ(scheduler.pump(), window);
  EXPECT_EQ(scheduler.pump(), 0U);
  const auto urgent = submit(peer, 100, Priority::latency);
  EXPECT_EQ(scheduler.pump(), spare);
  EXPECT_EQ(scheduler.pump(), 0U) << "and has an end";
  EXPECT_EQ(scheduler.in_flight(), window + spare);
}

TEST_F(SchedulerOrder, AFullQueueOfTheProvidersStillHasSpareRoom) {
  std::vector<std::shared_ptr<PeerState>> peers;
  for (std::size_t i = 0; i < 2 * all / window; ++i) {
    peers.push_back(make_peer(1, "peer " + std::to_string(i)));
    submit(peers.back(), 1000, Priority::bulk);
  }
  EXPECT_EQ(scheduler.pump(), all);
  submit(peers.back(), 1, Priority::latency);
  EXPECT_EQ(scheduler.pump(), 1U);
}

TEST_F(SchedulerOrder, AnEndlessStreamOfUrgentOnesDoesNotStarveTheOthers) {
  const auto peer = make_peer(1);
  const auto bulk = submit(peer, 200, Priority::bulk), normal = submit(peer, 200);
  std::size_t posted = 0;
  for (std::size_t steps = 0; steps < 2000 && !(bulk->ended() && normal->ended()); ++steps) {
    for (std::size_t i = 0; i < 2 * window; ++i) submit(peer, 1, Priority::latency);
    posted += step();
  }
  EXPECT_EQ(normal->state(), State::done);
  EXPECT_EQ(bulk->state(), State::done);
  EXPECT_GT(posted, 8U * 400) << "most of it went to the urgent ones";
}

TEST_F(SchedulerOrder, PeersTakeTurns) {
  std::map<const Route*, int> posted;
  null.on_post = [&](const Op& op) { ++posted[op.route]; };
  std::vector<std::shared_ptr<PeerState>> peers;
  for (int i = 0; i < 8; ++i) {
    peers.push_back(make_peer(1, "peer " + std::to_string(i)));
    // The first has a hundred transfers, the last has one.
    for (int each = 0; each < (i == 0 ? 100 : 1); ++each) submit(peers.back(), 100000);
  }
  for (int i = 0; i < 1000; ++i) step();
  ASSERT_EQ(posted.size(), 8U);
  const auto [least, most] = std::minmax_element(
      posted.begin(), posted.end(), [](auto& a, auto& b) { return a.second < b.second; });
  EXPECT_LE(most->second - least->second, static_cast<int>(window));
}

TEST_F(SchedulerOrder, AFrozenPeerWithFiftyThousandTransfersCostsOneLook) {
  const auto frozen = make_peer(1, "frozen"), going = make_peer(1, "going");
  null.frozen.insert(frozen->route_by_rail[0]);
  std::vector<Transfer> stuck;
  for (int i = 0; i < 50000; ++i) stuck.push_back(submit(frozen, 1));
  scheduler.pump();
  EXPECT_EQ(scheduler.in_flight(), window);

  constexpr std::size_t chunks = 10000;
  const auto transfer = submit(going, chunks);
  const std::uint64_t before = null.looks;
  const std::size_t steps = carry(chunks);
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_LE(null.looks - before, chunks + 3 * steps + 10)
      << "the frozen one is passed over at once";

  null.thaw();
  null.progress();
  carry(50000);
  for (const auto& each : stuck) ASSERT_EQ(each->state(), State::done);
}

TEST_F(SchedulerOrder, FiftyThousandTransfersTakeStepsInProportion) {
  const auto peer = make_peer(1);
  std::map<std::size_t, double> looks_each;
  for (const std::size_t count : {500U, 50000U}) {
    std::vector<Transfer> transfers;
    for (std::size_t i = 0; i < count; ++i)
      transfers.push_back(submit(peer, 1, static_cast<Priority>(static_cast<int>(i % 3) - 1)));
    const std::uint64_t before = null.looks;
    carry(count);
    looks_each[count] = static_cast<double>(null.looks - before) / static_cast<double>(count);
    for (const auto& each : transfers) ASSERT_EQ(each->state(), State::done);
    EXPECT_FALSE(scheduler.has_work());
  }
  EXPECT_LT(looks_each[50000], 3);
  EXPECT_LT(looks_each[50000], looks_each[500] * 1.5);
}

TEST_F(SchedulerOrder, AFrozenPeersOwnTransfersEndByTheirDeadlinesAndAreLetGo) {
  const auto frozen = make_peer(1, "frozen");
  null.frozen.insert(frozen->route_by_rail[0]);
  std::vector<std::weak_ptr<TransferState>> ended;
  for (int i = 0; i < 1000; ++i) ended.push_back(submit(frozen, 1));
  scheduler.pump();
  for (const auto& each : ended)
    if (const auto transfer = each.lock())
      transfer->end_early(State::timed_out, Error(Code::timed_out, "late"));
  scheduler.pump();
  const auto kept =
      std::count_if(ended.begin(), ended.end(), [](const auto& each) { return !each.expired(); });
  EXPECT_EQ(static_cast<std::size_t>(kept), window) << "those that are out";
  null.thaw();
  null.progress();
  EXPECT_FALSE(scheduler.has_work());
}

TEST_F(SchedulerOrder, WhatWaitsForAPeerGoesWithIt) {
  const auto dying = make_peer(1, "dying"), other = make_peer(1, "other");
  null.frozen.insert(dying->route_by_rail[0]);
  std::vector<Transfer> transfers;
  for (int i = 0; i < 100; ++i) transfers.push_back(submit(dying, 1));
  scheduler.pump();
  dying->set_down(Error(Code::peer_down, "gone"));
  for (const auto& each : transfers) each->end_early(State::failed, dying->down_error());
  scheduler.peer_died(*dying->route_by_rail[0]);
  EXPECT_EQ(scheduler.in_flight(), 0U);
  EXPECT_FALSE(scheduler.has_work());
  scheduler.add(transfers.front());
  EXPECT_FALSE(scheduler.has_work()) << "nothing is taken for a dead peer";
  const auto going = submit(other, 10);
  carry(100);
  EXPECT_EQ(going->state(), State::done);
  null.thaw();
  null.progress();
  EXPECT_EQ(scheduler.lost(), 0U);
}

}  // namespace
}  // namespace weft::core::test
