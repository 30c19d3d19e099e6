// Each fault as the real provider shows it: as an exact error, or as silence for as long as it
// lasts.
#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include "pair.hpp"

namespace weft::efa_sim {
namespace {

class Faults : public Pair {
 protected:
  /// Something that went well: from then on the two know each other.
  void warm_up() {
    fill(1);
    ASSERT_EQ(write(1'000'000, 0, 4096), 0);
    EXPECT_EQ(finish(1'000'000).error, 0);
    EXPECT_EQ(await_answer("check 1 0 4096 0", "yes"), "yes");
  }
  bool silent(std::uint64_t operation, std::chrono::milliseconds time) {
    std::this_thread::sleep_for(time);
    return !finished(operation);
  }
};

TEST_P(Faults, RefusedPosts) {
  if (FI_VERSION_LT(fi_version(), FI_VERSION(2, 0)))
    GTEST_SKIP() << "older providers count what they post, and give ENOMEM to their users as it is";
  warm_up();
  control_->set("eagain=0.3");
  fill(2);
  for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(write(i + 1, i * 10'000, 10'000), 0);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(finish(i + 1).error, 0);
  EXPECT_EQ(await_answer("check 2 0 1000000 0", "yes"), "yes");
}

TEST_P(Faults, FullQueue) {
  warm_up();
  control_->set("stall=1");
  std::uint64_t posted = 0;
  ssize_t result = 0;
  while (result == 0 && posted < 100'000) {
    result = node_->write(posted + 1, 0, 100, peer_, there_.base, there_.key);
    if (result == 0) ++posted;
  }
  EXPECT_EQ(result, -FI_EAGAIN);
  EXPECT_GE(posted, 16u);
  EXPECT_TRUE(silent(1, 50ms));
  control_->set("stall=0");
  for (std::uint64_t i = 1; i <= posted; ++i) ASSERT_EQ(finish(i).error, 0);
}

TEST_P(Faults, LateCompletions) {
  warm_up();
  control_->set("delay_us=300000,jitter_us=1000");
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(write(1, 0, 100), 0);
  EXPECT_EQ(finish(1).error, 0);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 300ms);
}

TEST_P(Faults, FailedOperation) {
  EFA_SKIP_UNLESS_DEVICE_WRITES();
  warm_up();
  control_->set("error_nth=2,error_operation=write,error_status=8");
  ask("fill 3");
  fill(4);
  ASSERT_EQ(write(1, 0, 1 << 20), 0);
  EXPECT_EQ(finish(1).error, 0);
  ASSERT_EQ(write(2, 2 << 20, 1 << 20), 0);
  EXPECT_EQ(finish(2).device_error, 8);
  // Half of it is there.
  expect_there(4, 2 << 20, 1 << 19, 2 << 20);
  expect_there(3, (2 << 20) + (1 << 19), 1 << 19, (2 << 20) + (1 << 19));
  ASSERT_EQ(write(3, 0, 4096), 0);
  EXPECT_EQ(finish(3).error, 0) << "the endpoint can't be used any more";
}

TEST_P(Faults, FailedMessage) {
  warm_up();
  ASSERT_EQ(ask("receive 1000 1"), "yes");
  control_->set("error_nth=1,error_operation=send,error_status=8");
  ASSERT_EQ(post([&] { return node_->send(1, 0, 1000, peer_); }), 0);
  EXPECT_EQ(finish(1).device_error, 8);
}

TEST_P(Faults, NicDownAndBack) {
  warm_up();
  control_->set("peer_timeout_ms=60000,nic_down=1");
  fill(5);
  ASSERT_EQ(write(1, 0, 100'000), 0);
  EXPECT_TRUE(silent(1, 200ms));
  control_->set("nic_down=0");
  EXPECT_EQ(finish(1).error, 0);
  EXPECT_EQ(await_answer("check 5 0 100000 0", "yes"), "yes");
}

TEST_P(Faults, NicDownForGood) {
  if (!direct()) GTEST_SKIP() << "the fabric \"efa\" has a handshake: see there";
  control_->set("peer_timeout_ms=100,nic_down=1");
  ASSERT_EQ(write(1, 0, 100), 0);
  EXPECT_EQ(finish(1).device_error, 15) << "unreachable";
  control_->set("nic_down=0");
  warm_up();
  control_->set("nic_down=1");
  ASSERT_EQ(write(2, 0, 100), 0);
  EXPECT_EQ(finish(2).device_error, 13) << "unresponsive";
}

TEST_P(Faults, HandshakeFails) {
  if (direct()) GTEST_SKIP() << "efa-direct has no handshake";
  control_->set("peer_timeout_ms=100,nic_down=1");
  ASSERT_EQ(write(1, 0, 100), 0);
  // Only the event queue is told of it: what waits for the handshake waits for ever.
  const auto end = std::chrono::steady_clock::now() + 20s;
  std::vector<int> events;
  while (events.empty() && std::chrono::steady_clock::now() < end && !finished(1)) {
    std::this_thread::sleep_for(1ms);
    events = node_->take_events();
  }
  EXPECT_FALSE(events.empty() && !finished(1)) << "nobody is told";
}

TEST_P(Faults, DeadPeer) {
  warm_up();
  control_->set(fmt::format("peer_timeout_ms=100,dead_process={}", target_->pid()));
  ASSERT_EQ(write(1, 0, 100), 0);
  // The fabric "efa" has words of its own for it in some versions.
  const Completion failed = finish(1);
  EXPECT_NE(failed.error, 0);
  if (direct()) {
    EXPECT_EQ(failed.device_error, 13);
  }
}

TEST_P(Faults, NotReady) {
  warm_up();
  control_->set("rnr=1");
  ASSERT_EQ(ask("receive 1000 1"), "yes");
  fill(6);
  ASSERT_EQ(post([&] { return node_->send(1, 0, 1000, peer_); }), 0);
  EXPECT_TRUE(silent(1, 200ms));
  EXPECT_EQ(ask("received"), "0");
  control_->set("rnr=0");
  EXPECT_EQ(finish(1).error, 0);
  EXPECT_EQ(await_answer("received", "1"), "1");
  expect_there(6, 0, 1000, 0);
}

TEST_P(Faults, LostData) {
  EFA_SKIP_UNLESS_DEVICE_WRITES();
  warm_up();
  control_->set("drop_data=1");
  fill(7);
  ASSERT_EQ(write_data(1, 0, 10'000, 0), 0);
  EXPECT_EQ(finish(1).error, 0);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(ask("data"), "0 0 0");
  expect_there(7, 0, 10'000, 0);
  control_->set("drop_data=0");
  ASSERT_EQ(write_data(2, 0, 10'000, 0), 0);
  EXPECT_EQ(await_answer("data", "1"), "1 0 0");
}

TEST_P(Faults, Duplicate) {
  EFA_SKIP_UNLESS_DEVICE_WRITES();
  warm_up();
  // Late enough for what follows, on any loaded machine.
  control_->set("duplicate=1,duplicate_us=1500000");
  fill(8);
  ASSERT_EQ(write(1, 0, 1000), 0);
  EXPECT_EQ(finish(1).error, 0);
  ask("fill 9");
  expect_there(9, 0, 1000, 0);
  EXPECT_EQ(await_answer("check 8 0 1000 0", "yes"), "yes");
  EXPECT_GE(control_->counters().duplicates, 1u);
}

TEST_P(Faults, ReusedKey) {
  EFA_SKIP_UNLESS_DEVICE_WRITES();
  control_->set("reuse_keys=1");
  const std::string key = ask("again");
  const auto write_with = [&](std::uint64_t operation) {
    return post(
        [&] { return node_->write(operation, 0, 100, peer_, there_.base, std::stoull(key)); });
  };
  ASSERT_EQ(write_with(1), 0);
  EXPECT_EQ(finish(1).error, 0);
  ask("forget");
  ASSERT_EQ(write_with(2), 0);
  EXPECT_EQ(finish(2).device_error, 7);
  EXPECT_EQ(ask("again"), key);
  ASSERT_EQ(write_with(3), 0);
  EXPECT_EQ(finish(3).error, 0) << "the old key reaches the new registration";
}

TEST_P(Faults, StrangerIsRefused) {
  if (!direct()) GTEST_SKIP() << "the fabric \"efa\" makes peers known in its handshake";
  // By another NIC, of which the target knows nothing.
  Node stranger(GetParam(), size, "efa_1");
  const fi_addr_t peer = stranger.add(there_);
  const auto write_of_it = [&](std::uint64_t operation) {
    EXPECT_EQ(
        post([&] { return stranger.write(operation, 0, 100, peer, there_.base, there_.key); }), 0);
    const auto end = std::chrono::steady_clock::now() + 20s;
    std::vector<Completion> ended;
    while (ended.empty() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(1ms);
      ended = stranger.take();
    }
    return ended.empty() ? -1 : ended.front().device_error;
  };
  EXPECT_EQ(write_of_it(1), 14);
  control_->set("require_address=0");
  EXPECT_EQ(write_of_it(2), 0);
}

TEST_P(Faults, RegistrationFails) {
  control_->set("register_fail=1");
  EXPECT_THROW(node_->register_again(), std::runtime_error);
  control_->set("register_fail=0");
  EXPECT_NO_THROW(node_->register_again());
}

TEST_P(Faults, RegionsHaveLimitedPages) {
  control_->set("region_pages=2000");
  EXPECT_THROW(node_->register_again(), std::runtime_error);
  control_->set("clear,write_pages=2000");
  if (device_writes()) {
    EXPECT_THROW(node_->register_again(), std::runtime_error);
  } else {
    EXPECT_NO_THROW(node_->register_again()) << "what the device does not write has no such limit";
  }
}

INSTANTIATE_TEST_SUITE_P(Over, Faults, testing::Values("efa", "efa-direct"), [](const auto& info) {
  return info.param == "efa" ? std::string("efa") : "efa_direct";
});

}  // namespace
}  // namespace weft::efa_sim
