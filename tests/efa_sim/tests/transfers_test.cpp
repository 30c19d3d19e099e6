// What the software device moves, over the real provider.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <random>
#include <sstream>

#include "pair.hpp"

namespace weft::efa_sim {
namespace {

using Transfers = Pair;

TEST_P(Transfers, Write) {
  ask("fill 1");
  fill(2);
  // Of sizes around those of packets, and of those between which the provider changes its ways.
  std::size_t at = 3, operation = 1;
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  for (const std::size_t length : {1, 7, 31, 32, 33, 4095, 4096, 8191, 8192, 8193, 8928, 8929,
                                   65536, 65537, 1 << 20, (1 << 20) + 1}) {
    ASSERT_EQ(write(operation, at, length), 0);
    parts.emplace_back(at, length);
    at += length + 5;
    ++operation;
  }
  for (std::size_t i = 1; i < operation; ++i) EXPECT_EQ(finish(i).error, 0);
  std::size_t end = 0;
  for (const auto& [from, length] : parts) {
    // Emulated writes end when they were sent, not when they are there.
    await_answer(fmt::format("check 2 {} {} {}", from, length, from), "yes");
    expect_there(2, from, length, from);
    expect_there(1, end, from - end, end);
    end = from + length;
  }
  expect_there(1, end, size - end, end);
}

TEST_P(Transfers, WriteOfAll) {
  fill(3);
  ASSERT_EQ(write(1, 0, size), 0);
  EXPECT_EQ(finish(1).error, 0);
  EXPECT_EQ(await_answer(fmt::format("check 3 0 {} 0", size), "yes"), "yes");
  if (device_writes()) {
    EXPECT_GT(control_->counters().overtakes, 0u);
  }
}

TEST_P(Transfers, WriteWithData) {
  constexpr std::size_t count = 200, block = 32768;
  fill(4);
  ask(fmt::format("watch 4 {}", block));
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(write_data(i + 1, i * block, block, i), 0);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(finish(i + 1).error, 0);
  std::istringstream answer(await_answer("data", std::to_string(count)));
  unsigned arrived = 0, inverted = 0, early = 0;
  answer >> arrived >> inverted >> early;
  EXPECT_EQ(arrived, count);
  EXPECT_EQ(early, 0u) << "data arrived before the bytes that it stands for";
  if (device_writes()) {
    EXPECT_GT(inverted, 0u) << "nothing arrived out of order";
  }
  expect_there(4, 0, count * block, 0);
}

TEST_P(Transfers, CompletionsOutOfOrder) {
  EFA_SKIP_UNLESS_DEVICE_WRITES();
  for (std::size_t i = 1; i <= 200; ++i) ASSERT_EQ(write(i, i * 1000, 1000), 0);
  for (std::size_t i = 1; i <= 200; ++i) EXPECT_EQ(finish(i).error, 0);
  EXPECT_FALSE(std::ranges::is_sorted(order()));
}

TEST_P(Transfers, InOrderIfAsked) {
  EFA_SKIP_UNLESS_DEVICE_WRITES();
  control_->set("reorder=1");
  const auto before = control_->counters().overtakes;
  for (std::size_t i = 1; i <= 50; ++i) ASSERT_EQ(write(i, i * 100'000, 100'000), 0);
  for (std::size_t i = 1; i <= 50; ++i) EXPECT_EQ(finish(i).error, 0);
  EXPECT_TRUE(std::ranges::is_sorted(order()));
  EXPECT_EQ(control_->counters().overtakes, before);
}

TEST_P(Transfers, Read) {
  ask("fill 5");
  fill(6);
  ASSERT_EQ(read(1, 12345, 3'000'001), 0);
  ASSERT_EQ(read(2, 4'000'000, 1), 0);
  EXPECT_EQ(finish(1).error, 0);
  EXPECT_EQ(finish(2).error, 0);
  const std::span memory(node_->memory(), size);
  EXPECT_TRUE(test::holds(memory.subspan(0, 12345), 6));
  EXPECT_TRUE(test::holds(memory.subspan(12345, 3'000'001), 5, 12345));
  EXPECT_TRUE(test::holds(memory.subspan(4'000'000, 1), 5, 4'000'000));
  EXPECT_TRUE(test::holds(memory.subspan(4'000'001), 6, 4'000'001));
}

TEST_P(Transfers, Messages) {
  const std::size_t bytes = direct() ? 8000 : 50'000;
  constexpr std::size_t count = 100;
  fill(7);
  ASSERT_EQ(ask(fmt::format("receive {} {}", bytes, count)), "yes");
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(post([&] { return node_->send(i + 1, i * bytes, bytes, peer_); }), 0);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(finish(i + 1).error, 0);
  EXPECT_EQ(await_answer("received", std::to_string(count)), std::to_string(count));
  // The fabric "efa" puts messages back into order.
  if (!direct()) expect_there(7, 0, count * bytes, 0);
}

TEST_P(Transfers, TaggedMessages) {
  if (direct()) GTEST_SKIP() << "efa-direct has no tagged messages";
  constexpr std::size_t bytes = 20'000, count = 50;
  fill(8);
  ASSERT_EQ(ask(fmt::format("receive tagged {} {}", bytes, count)), "yes");
  // In any order: tags say where each belongs.
  std::vector<std::size_t> places(count);
  for (std::size_t i = 0; i < count; ++i) places[i] = i;
  std::shuffle(places.begin(), places.end(), std::mt19937(1));
  for (const std::size_t i : places)
    ASSERT_EQ(post([&] { return node_->send_tagged(i + 1, i * bytes, bytes, peer_, 1000 + i); }),
              0);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(finish(i + 1).error, 0);
  EXPECT_EQ(await_answer("received", std::to_string(count)), std::to_string(count));
  expect_there(8, 0, count * bytes, 0);
}

TEST_P(Transfers, TwoNodesOfOneProcess) {
  Node second(GetParam(), size);
  const fi_addr_t peer = node_->add(second.reach());
  second.add(node_->reach());
  const auto before = control_->counters().operations;
  fill(13);
  ASSERT_EQ(post([&] {
              return node_->write(1, 0, 1 << 20, peer, second.reach().base, second.reach().key);
            }),
            0);
  EXPECT_EQ(finish(1).error, 0);
  const auto there = [&] { return bool(test::holds({second.memory(), 1 << 20}, 13)); };
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!there() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(there());
  EXPECT_GT(control_->counters().operations, before) << "it went past the device";
}

TEST_P(Transfers, WrongKeyIsRefused) {
  // Emulated by the provider, a wrong key ends the target's process: it is the target that checks.
  EFA_SKIP_UNLESS_DEVICE_WRITES();
  ask("fill 9");
  fill(10);
  ASSERT_EQ(post([&] { return node_->write(1, 0, 4096, peer_, there_.base, there_.key + 1); }), 0);
  EXPECT_EQ(finish(1).device_error, 7);
  // The right key, beyond its region.
  ASSERT_EQ(
      post([&] { return node_->write(2, 0, 4096, peer_, there_.base + size - 4095, there_.key); }),
      0);
  EXPECT_EQ(finish(2).device_error, 7);
  expect_there(9, 0, size, 0);
  ASSERT_EQ(write(3, 0, 4096), 0);
  EXPECT_EQ(finish(3).error, 0) << "the endpoint can't be used any more";
}

TEST_P(Transfers, StoppedTargetIsWrittenAndRead) {
  EFA_SKIP_UNLESS_DEVICE_WRITES();
  ask("fill 11");
  // The fabric "efa" has the two shake hands first.
  ASSERT_EQ(write(3, 0, 1), 0);
  EXPECT_EQ(finish(3).error, 0);
  fill(12);
  target_->signal(SIGSTOP);
  ASSERT_EQ(write_data(1, 0, 1 << 20, 0), 0);
  EXPECT_EQ(finish(1).error, 0);
  ASSERT_EQ(post([&] { return node_->read(2, 1 << 20, 1 << 20, peer_, there_.base, there_.key); }),
            0);
  EXPECT_EQ(finish(2).error, 0);
  EXPECT_TRUE(test::holds({node_->memory() + (1 << 20), 1 << 20}, 12));
  target_->signal(SIGCONT);
  expect_there(12, 0, 1 << 20, 0);
  EXPECT_EQ(await_answer("data", "1 0 0"), "1 0 0");
}

TEST_P(Transfers, KilledTarget) {
  EFA_SKIP_UNLESS_DEVICE_WRITES();
  ASSERT_EQ(write(1, 0, 4096), 0);
  EXPECT_EQ(finish(1).error, 0);
  target_->kill();
  ASSERT_EQ(write(2, 0, 4096), 0);
  EXPECT_EQ(finish(2).device_error, 9);
  node_.reset();
  target_.reset();
}

/// By which the other nodes of its host reach the one of that address.
std::filesystem::path shared_memory_of(const std::string& address) {
  struct {
    std::array<unsigned char, 16> gid;
    std::uint16_t number, padding;
    std::uint32_t queue_key;
  } raw;
  EXPECT_GE(address.size(), sizeof raw);
  std::memcpy(&raw, address.data(), sizeof raw);
  std::array<char, INET6_ADDRSTRLEN> gid{};
  inet_ntop(AF_INET6, raw.gid.data(), gid.data(), gid.size());
  return fmt::format("/dev/shm/{}_{:04x}_{:08x}_{:04x}", gid.data(), raw.number, raw.queue_key,
                     getuid());
}

TEST_P(Transfers, AKilledProcessLeavesNoSharedMemory) {
  const auto memory = shared_memory_of(there_.address);
  if (!std::filesystem::exists(memory)) GTEST_SKIP() << "this fabric has no such memory";
  const auto own = shared_memory_of(node_->reach().address);
  EXPECT_TRUE(std::filesystem::exists(own));
  target_->kill();
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (std::filesystem::exists(memory) && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(std::filesystem::exists(memory));
  EXPECT_TRUE(std::filesystem::exists(own));
  node_.reset();
  target_.reset();
}

INSTANTIATE_TEST_SUITE_P(Over, Transfers, testing::Values("efa", "efa-direct"),
                         [](const auto& info) {
                           return info.param == "efa" ? std::string("efa") : "efa_direct";
                         });

}  // namespace
}  // namespace weft::efa_sim
