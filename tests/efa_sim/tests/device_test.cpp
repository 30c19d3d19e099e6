// The device as its users' rings see it: what arrives, in which order, with which status, and what
// each fault does. No libfabric, and no time but the test's own.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <algorithm>

#include "pattern.hpp"
#include "wire_endpoint.hpp"

namespace weft::efa_sim {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class Devices : public testing::Test {
 protected:
  /// Lets the device work for a time, in steps of 100 us.
  void pass(std::chrono::microseconds time) {
    for (const Time end = now + time; now < end; now += 100us) fabric.advance(now);
  }
  /// The completion that comes within a time.
  std::optional<CompletionEntry> next(WireEndpoint& endpoint,
                                      std::chrono::milliseconds within = 1s) {
    for (const Time end = now + within; now < end; now += 100us) {
      fabric.advance(now);
      if (auto entry = endpoint.poll()) return entry;
    }
    return std::nullopt;
  }
  /// How the next operation of `here` ended.
  Status ended(std::chrono::milliseconds within = 5s) {
    const auto entry = next(here, within);
    EXPECT_TRUE(entry) << "nothing ends";
    return entry ? entry->status : Status::ok;
  }
  Status run(Opcode opcode, std::uint32_t length) {
    here.post(here.entry(opcode, there, length));
    return ended();
  }
  SendEntry write_with_data(std::uint32_t length, std::uint32_t data) {
    SendEntry entry = here.entry(Opcode::write, there, length);
    entry.control1 |= send_has_immediate;
    entry.immediate = data;
    return entry;
  }

  Fabric fabric{parse_nics(nics_text(2)), 1};
  Time now = Clock::now();
  WireEndpoint here{fabric, 0}, there{fabric, 1};
  // The target knows the initiator, as it must.
  const std::uint16_t known_ = there.nic.addresses.add(there.domain, here.nic.gid);
};

TEST_F(Devices, Write) {
  test::fill(here.memory, 1);
  EXPECT_EQ(run(Opcode::write, 500'000), Status::ok);
  EXPECT_TRUE(test::holds(std::span(there.memory).first(500'000), 1));
  EXPECT_EQ(there.memory[500'000], std::byte{0});
  EXPECT_FALSE(there.poll()) << "the target is told of a plain write";
  EXPECT_GT(fabric.counters().overtakes, 0u);
  EXPECT_EQ(run(Opcode::write, 0), Status::ok);
}

TEST_F(Devices, Read) {
  test::fill(there.memory, 2);
  EXPECT_EQ(run(Opcode::read, 500'001), Status::ok);
  EXPECT_TRUE(test::holds(std::span(here.memory).first(500'001), 2));
}

TEST_F(Devices, WriteWithData) {
  test::fill(here.memory, 3);
  here.post(write_with_data(70'000, 0xabcd1234));
  const auto arrived = next(there);
  ASSERT_TRUE(arrived);
  EXPECT_TRUE(test::holds(std::span(there.memory).first(70'000), 3));
  EXPECT_EQ(arrived->immediate, 0xabcd1234u);
  EXPECT_EQ(arrived->length | arrived->length_high << 16, 70'000);
  EXPECT_EQ(arrived->opcode(), Opcode::write);
  EXPECT_NE(arrived->flags & completion_unsolicited, 0);
  EXPECT_EQ(arrived->source_queue_pair, here.queue_pair.number);
  EXPECT_EQ(arrived->address_handle, known_);
}

TEST_F(Devices, WriteWithDataMayNeedAReceive) {
  WireEndpoint asking(fabric, 2, false);
  asking.nic.addresses.add(asking.domain, here.nic.gid);
  SendEntry entry = here.entry(Opcode::write, asking, 100);
  entry.control1 |= send_has_immediate;
  here.post(entry);
  EXPECT_FALSE(next(here, 20ms));
  asking.post_receive(7, {64});
  const auto arrived = next(asking);
  ASSERT_TRUE(arrived);
  EXPECT_EQ(arrived->request_id, 7);
  EXPECT_EQ(arrived->flags & completion_unsolicited, 0);
  EXPECT_EQ(ended(), Status::ok);
}

TEST_F(Devices, Messages) {
  test::fill(here.memory, 4);
  there.post_receive(1, {3, 500, 1000});
  there.post_receive(2, {1500});
  EXPECT_EQ(run(Opcode::send, 1400), Status::ok);
  EXPECT_TRUE(test::holds(std::span(there.memory).first(1400), 4));
  const auto arrived = next(there);
  ASSERT_TRUE(arrived);
  EXPECT_EQ(arrived->request_id, 1);
  EXPECT_EQ(arrived->length, 1400);
  SendEntry entry = here.entry(Opcode::send, there, 0);
  entry.control1 |= send_is_inline;
  entry.length = 5;
  std::memcpy(entry.inlined, "hello", 5);
  here.post(entry);
  EXPECT_EQ(ended(), Status::ok);
  EXPECT_EQ(std::memcmp(there.memory.data(), "hello", 5), 0);
}

TEST_F(Devices, MessageOfAStranger) {
  WireEndpoint stranger(fabric, 3);
  there.post_receive(1, {64});
  stranger.post(stranger.entry(Opcode::send, there, 10));
  const auto arrived = next(there);
  ASSERT_TRUE(arrived);
  EXPECT_EQ(arrived->address_handle, no_address_handle);
  EXPECT_TRUE(std::ranges::equal(arrived->source, stranger.nic.gid));
}

TEST_F(Devices, MessageTooLong) {
  there.post_receive(1, {10});
  EXPECT_EQ(run(Opcode::send, 11), Status::remote_bad_length);
  EXPECT_EQ(next(there)->status, Status::bad_length);
  EXPECT_EQ(run(Opcode::send, 8929), Status::bad_length);
}

TEST_F(Devices, RingsTurnAround) {
  // More than the rings hold, and than 16 bits count.
  for (int i = 0; i < 70'000; ++i) {
    here.post(here.entry(Opcode::write, there, 8));
    const auto entry = next(here);
    ASSERT_TRUE(entry);
    ASSERT_EQ(entry->request_id, static_cast<std::uint16_t>(i));
  }
}

TEST_F(Devices, KeysRangesAndRightsAreChecked) {
  const auto with = [&](auto change) {
    SendEntry entry = here.entry(Opcode::write, there, 100);
    change(entry);
    here.post(entry);
    return ended();
  };
  using Entry = SendEntry&;
  EXPECT_EQ(with([](Entry e) { e.rdma.remote.key += 1; }), Status::remote_bad_address);
  EXPECT_EQ(with([](Entry e) { e.rdma.remote.address_low -= 1; }), Status::remote_bad_address);
  EXPECT_EQ(with([](Entry e) { e.rdma.local.length = WireEndpoint::bytes + 1; }),
            Status::invalid_local_key);
  EXPECT_EQ(with([](Entry e) { e.rdma.local.key += 1; }), Status::invalid_local_key);
  EXPECT_EQ(with([](Entry e) { e.queue_key += 1; }), Status::remote_bad_queue_pair);
  EXPECT_EQ(with([](Entry e) { e.destination_queue_pair += 1; }), Status::remote_bad_queue_pair);
  EXPECT_EQ(with([](Entry e) { e.address_handle = 99; }), Status::invalid_address_handle);
  there.key = there.add_region(remote_read);
  EXPECT_EQ(run(Opcode::write, 100), Status::remote_bad_address);
  EXPECT_EQ(run(Opcode::read, 100), Status::ok);
  fabric.configure("write=0");
  EXPECT_EQ(run(Opcode::write, 100), Status::unsupported_operation);
  EXPECT_EQ(fabric.counters().packets, 1u);
}

TEST_F(Devices, TargetMustKnowTheInitiator) {
  there.nic.addresses.remove(known_, there.domain);
  EXPECT_EQ(run(Opcode::write, 100), Status::remote_unknown_peer);
  fabric.configure("require_address=0");
  EXPECT_EQ(run(Opcode::write, 100), Status::ok);
}

TEST_F(Devices, Stall) {
  fabric.configure("stall=1");
  here.post(here.entry(Opcode::write, there, 100));
  EXPECT_FALSE(next(here, 100ms));
  fabric.configure("stall=0");
  EXPECT_EQ(ended(), Status::ok);
}

TEST_F(Devices, DelayAndJitter) {
  fabric.configure("delay_us=5000");
  here.post(here.entry(Opcode::write, there, 100));
  EXPECT_FALSE(next(here, 4ms));
  EXPECT_TRUE(next(here, 3ms));
  fabric.configure("clear reorder=1 jitter_us=10000");
  std::vector<int> order;
  for (int i = 0; i < 20; ++i) here.post(here.entry(Opcode::write, there, 100));
  for (int i = 0; i < 20; ++i) order.push_back(next(here)->request_id);
  EXPECT_FALSE(std::ranges::is_sorted(order));
}

TEST_F(Devices, ErrorAfterAPart) {
  test::fill(here.memory, 5);
  fabric.configure("error_nth=2,error_operation=write,error_status=8,mtu=1000");
  EXPECT_EQ(run(Opcode::read, 100), Status::ok) << "it isn't meant";
  test::fill(here.memory, 5);
  EXPECT_EQ(run(Opcode::write, 100), Status::ok);
  EXPECT_EQ(run(Opcode::write, 10'000), Status::remote_abort);
  EXPECT_TRUE(test::holds(std::span(there.memory).first(5000), 5));
  EXPECT_EQ(there.memory[5000], std::byte{0});
  EXPECT_EQ(run(Opcode::write, 10'000), Status::ok);
}

TEST_F(Devices, ErrorByChance) {
  fabric.configure("error=0.5,error_part=0");
  int failed = 0;
  for (int i = 0; i < 100; ++i) failed += run(Opcode::write, 100) != Status::ok ? 1 : 0;
  EXPECT_GT(failed, 20);
  EXPECT_LT(failed, 80);
}

TEST_F(Devices, NotReady) {
  // No receive: for ever, or as often as the queue pair says.
  here.post(here.entry(Opcode::send, there, 10));
  EXPECT_FALSE(next(here, 200ms));
  there.post_receive(1, {64});
  EXPECT_EQ(ended(), Status::ok);
  here.queue_pair.retries = 3;
  EXPECT_EQ(run(Opcode::send, 10), Status::remote_not_ready);
  EXPECT_GE(fabric.counters().not_ready, 2u);
}

TEST_F(Devices, NotReadyAsAFault) {
  for (std::uint16_t i = 0; i < 3; ++i) there.post_receive(i, {64});
  fabric.configure("rnr=1,rnr_us=20000");
  here.post(here.entry(Opcode::send, there, 10));
  EXPECT_FALSE(next(here, 15ms));
  EXPECT_TRUE(next(here, 10ms));
  fabric.configure("rnr_us=0");
  here.post(here.entry(Opcode::send, there, 10));
  EXPECT_FALSE(next(here, 1s));
  fabric.configure("clear");
  EXPECT_EQ(ended(), Status::ok);
  fabric.configure("rnr_fail=1");
  EXPECT_EQ(run(Opcode::send, 10), Status::remote_not_ready);
}

TEST_F(Devices, LostData) {
  test::fill(here.memory, 6);
  fabric.configure("drop_data=1");
  here.post(write_with_data(100, 1));
  EXPECT_EQ(ended(), Status::ok);
  EXPECT_TRUE(test::holds(std::span(there.memory).first(100), 6));
  pass(100ms);
  EXPECT_FALSE(there.poll());
}

TEST_F(Devices, Duplicate) {
  test::fill(here.memory, 7);
  fabric.configure("duplicate=1,duplicate_us=3000");
  EXPECT_EQ(run(Opcode::write, 100), Status::ok);
  std::ranges::fill(there.memory, std::byte{0});
  std::ranges::fill(here.memory, std::byte{0});
  pass(2ms);
  EXPECT_EQ(there.memory[0], std::byte{0});
  pass(2ms);
  EXPECT_TRUE(test::holds(std::span(there.memory).first(100), 7)) << "the old bytes again";
  EXPECT_EQ(fabric.counters().duplicates, 1u);
  // A key that is gone guards the memory.
  EXPECT_EQ(run(Opcode::write, 100), Status::ok);
  there.nic.regions.remove(there.key, there.domain);
  std::ranges::fill(there.memory, std::byte{9});
  pass(5ms);
  EXPECT_EQ(there.memory[0], std::byte{9});
}

TEST_F(Devices, KeysAreReused) {
  fabric.configure("reuse_keys=1");
  there.key = there.add_region(remote_write);
  const std::uint32_t old = there.key;
  there.nic.regions.remove(old, there.domain);
  EXPECT_EQ(run(Opcode::write, 100), Status::remote_bad_address);
  EXPECT_EQ(there.add_region(remote_write), old);
  EXPECT_EQ(run(Opcode::write, 100), Status::ok) << "an old key reaches the new region";
}

TEST_F(Devices, NicDown) {
  fabric.configure("peer_timeout_ms=100,h1.nic_down=1");
  here.post(here.entry(Opcode::write, there, 100));
  EXPECT_FALSE(next(here, 90ms));
  EXPECT_EQ(ended(20ms), Status::unreachable_remote) << "it never answered";
  fabric.configure("h1.nic_down=0");
  EXPECT_EQ(run(Opcode::write, 100), Status::ok);
  fabric.configure("h0.nic_down=1");
  EXPECT_EQ(run(Opcode::write, 100), Status::unresponsive_remote);
  // Back before anybody gave up.
  here.post(here.entry(Opcode::write, there, 100'000));
  EXPECT_FALSE(next(here, 50ms));
  fabric.configure("h0.nic_down=0");
  EXPECT_EQ(ended(), Status::ok);
}

TEST_F(Devices, DeadPeers) {
  fabric.configure("peer_timeout_ms=50,h1.dead_queue_pair=" +
                   std::to_string(there.queue_pair.number));
  EXPECT_EQ(run(Opcode::write, 100), Status::unreachable_remote);
  WireEndpoint second(fabric, 1);
  second.nic.addresses.add(second.domain, here.nic.gid);
  here.post(here.entry(Opcode::write, second, 100));
  EXPECT_EQ(ended(), Status::ok) << "the others of that NIC live";
  fabric.configure("clear peer_timeout_ms=50,h1.dead_process=" + std::to_string(getpid()));
  EXPECT_EQ(run(Opcode::write, 100), Status::unreachable_remote);
}

TEST_F(Devices, AProcessThatHasEndedHasNoQueuePair) {
  const pid_t process = fork();
  if (process == 0) _exit(0);
  waitpid(process, nullptr, 0);
  WireEndpoint ended_one(fabric, 2, true, process);
  ended_one.nic.addresses.add(ended_one.domain, here.nic.gid);
  ended_one.post_receive(1, {100});
  // Whatever the device has not been told yet: its memory is not wrong, it is gone.
  for (const Opcode opcode : {Opcode::send, Opcode::read, Opcode::write}) {
    here.post(here.entry(opcode, ended_one, 100));
    EXPECT_EQ(ended(), Status::remote_bad_queue_pair);
  }
}

TEST_F(Devices, ASilentPeerDoesNotStopOthers) {
  fabric.configure("h1.nic_down=1");
  WireEndpoint living(fabric, 2);
  living.nic.addresses.add(living.domain, here.nic.gid);
  for (int i = 0; i < 10; ++i) here.post(here.entry(Opcode::write, there, 1 << 20));
  here.post(here.entry(Opcode::write, living, 100'000));
  const auto entry = next(here);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->status, Status::ok);
}

TEST_F(Devices, QueuePairInErrorFlushes) {
  fabric.configure("h1.nic_down=1");
  here.post(here.entry(Opcode::write, there, 100));
  pass(1ms);
  here.queue_pair.state = QueuePairState::error;
  here.nic.flush(here.queue_pair);
  EXPECT_EQ(ended(), Status::flushed);
  EXPECT_EQ(run(Opcode::write, 100), Status::flushed);
}

TEST_F(Devices, QueuePairsOfOneNicDifferInTheirLowBits) {
  std::vector<std::uint32_t> numbers{here.queue_pair.number % 256u};
  for (int i = 0; i < 254; ++i) {
    QueuePair* const made = here.nic.create_queue_pair(here.queue_pair.attributes);
    ASSERT_NE(made, nullptr);
    numbers.push_back(made->number % 256u);
  }
  EXPECT_EQ(here.nic.create_queue_pair(here.queue_pair.attributes), nullptr);
  std::ranges::sort(numbers);
  EXPECT_TRUE(std::ranges::adjacent_find(numbers) == numbers.end());
}

}  // namespace
}  // namespace weft::efa_sim
