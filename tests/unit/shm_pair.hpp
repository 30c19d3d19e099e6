// Two endpoints of the shm provider in one process, and what becomes of their operations.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "providers/shm/shm.hpp"

namespace weft::providers::shm {

inline Blob numbers(std::size_t count, unsigned from = 0) {
  Blob bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((from + i) % 251);
  return bytes;
}

/// Counts how operations end.
struct Operation final : Posted, CompletionHandler {
  Operation() { handler = this; }
  void completed(Posted&, const Completion& completion) override {
    ++ended;
    mapped = completion.mapped;
    ok = completion.ok;
    error = completion.fabric_code;
    length = completion.length;
  }
  int ended = 0, error = 0;
  bool ok = false, mapped = false;
  std::size_t length = 0;
};

/// Two endpoints that know each other.
class ShmPair : public testing::Test {
 protected:
  void SetUp() override {
    to_b = a->insert(b->address()).value();
    to_a = b->insert(a->address()).value();
  }
  std::unique_ptr<Endpoint> a = open_endpoint().value(), b = open_endpoint().value();
  FabricAddress to_a = 0, to_b = 0;
  Blob here = numbers(10'000), there = Blob(10'000);

  Operation write(std::uint64_t offset, std::size_t length, std::uint64_t key) {
    Operation operation;
    const Post post = a->write(operation, {here.data(), length, nullptr}, {to_b, offset, key});
    EXPECT_EQ(post.status, PostStatus::posted);
    EXPECT_EQ(operation.ended, 0) << "never within the post";
    EXPECT_EQ(a->poll(), 1U);
    EXPECT_EQ(operation.ended, 1);
    return operation;
  }
};

}  // namespace weft::providers::shm
