// Notifications in parts.
#include "nixl/notification.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace weft::nixl {
namespace {

constexpr std::size_t signal_bytes = 512;

std::string bytes_of(std::size_t length) {
  std::string bytes(length, '\0');
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<char>(i * 131 + i / 256);
  return bytes;
}

std::vector<Blob> parts_of(std::uint64_t id, const std::string& bytes, std::size_t carriers) {
  const std::string agent = "sender";
  const auto outgoing = Outgoing::make(id, agent, bytes, signal_bytes, carriers);
  EXPECT_TRUE(outgoing);
  EXPECT_EQ(outgoing->parts_ahead() + carriers, outgoing->parts());
  std::vector<Blob> parts;
  for (std::size_t i = 0; i < outgoing->parts(); ++i) {
    parts.push_back(outgoing->part(i));
    EXPECT_LE(parts.back().size(), signal_bytes);
  }
  return parts;
}

TEST(Notifications, AreWholeAfterTheLastPartInAnyOrder) {
  std::mt19937 random(1);
  for (const std::size_t length : {0, 1, 400, 409, 410, 411, 5000, 100'000})
    for (const std::size_t carriers : {0, 1, 2, 24}) {
      const std::string bytes = bytes_of(length);
      auto parts = parts_of(length, bytes, carriers);
      EXPECT_GE(parts.size(), std::max<std::size_t>(carriers, 1));
      std::shuffle(parts.begin(), parts.end(), random);
      Assembly assembly;
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) EXPECT_FALSE(assembly.take(parts[i]));
      const auto whole = assembly.take(parts.back());
      ASSERT_TRUE(whole);
      EXPECT_EQ(whole->agent, "sender");
      EXPECT_EQ(whole->bytes, bytes);
    }
}

TEST(Notifications, DoNotMixWithEachOther) {
  const auto first = parts_of(1, bytes_of(1000), 3),
             second = parts_of(2, std::string(1000, 'x'), 3);
  Assembly assembly;
  for (std::size_t i = 0; i + 1 < first.size(); ++i) {
    EXPECT_FALSE(assembly.take(first[i]));
    EXPECT_FALSE(assembly.take(second[i]));
  }
  EXPECT_EQ(assembly.take(second.back())->bytes, std::string(1000, 'x'));
  EXPECT_EQ(assembly.take(first.back())->bytes, bytes_of(1000));
}

TEST(Notifications, APartThatComesTwiceCountsOnce) {
  const auto parts = parts_of(1, bytes_of(1000), 0);
  Assembly assembly;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i)
    for (int twice = 0; twice < 2; ++twice) EXPECT_FALSE(assembly.take(parts[i]));
  EXPECT_TRUE(assembly.take(parts.back()));
}

TEST(Notifications, ThatAreWithdrawnNeverCome) {
  const auto parts = parts_of(1, bytes_of(1000), 3);
  Assembly assembly;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) EXPECT_FALSE(assembly.take(parts[i]));
  EXPECT_FALSE(assembly.take(withdrawal(1)));
  EXPECT_FALSE(assembly.take(parts.back()));
}

TEST(Notifications, WhatIsNoPartIsDropped) {
  const auto parts = parts_of(1, bytes_of(1000), 0);
  Assembly assembly;
  EXPECT_FALSE(assembly.take({}));
  EXPECT_FALSE(assembly.take(Blob(100, std::byte{0xff})));
  std::mt19937 random(2);
  for (int i = 0; i < 20'000; ++i) {
    Blob damaged = parts[random() % parts.size()];
    for (int n = 0; n < 4; ++n) damaged[random() % damaged.size()] ^= std::byte(1 << random() % 8);
    if (i % 2 == 0) damaged.resize(random() % damaged.size());
    Assembly().take(damaged);
  }
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) EXPECT_FALSE(assembly.take(parts[i]));
  EXPECT_TRUE(assembly.take(parts.back()));
}

TEST(Notifications, ThatDoNotFitAreRefused) {
  const std::string agent(signal_bytes, 'a'), bytes;
  EXPECT_FALSE(Outgoing::make(1, agent, bytes, signal_bytes, 1));
}

}  // namespace
}  // namespace weft::nixl
