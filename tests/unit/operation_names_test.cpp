#include "providers/libfabric/operation_names.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace weft::providers {
namespace {

TEST(OperationNames, AnEndIsToldOnce) {
  OperationNames names;
  Posted one, other;
  void* const name = names.give(one);
  void* const second = names.give(other);
  EXPECT_NE(name, nullptr);
  EXPECT_NE(name, second);
  EXPECT_EQ(names.take_back(name), &one);
  EXPECT_EQ(names.take_back(name), nullptr);
  EXPECT_EQ(names.take_back(second), &other);
}

// The end of a receive is told again after its buffer was posted for the next message.
TEST(OperationNames, WhatIsPostedAnewIsNotEndedByItsFirstName) {
  OperationNames names;
  Posted buffer;
  void* const first = names.give(buffer);
  ASSERT_EQ(names.take_back(first), &buffer);
  void* const second = names.give(buffer);
  EXPECT_NE(first, second);
  EXPECT_EQ(names.take_back(first), nullptr);
  EXPECT_EQ(names.take_back(second), &buffer);
}

TEST(OperationNames, NoNameIsGivenTwice) {
  OperationNames names;
  std::array<Posted, 3> operations;
  std::set<const void*> given;
  for (int round = 0; round < 1000; ++round) {
    std::array<void*, 3> now{};
    for (std::size_t i = 0; i < operations.size(); ++i) {
      now[i] = names.give(operations[i]);
      EXPECT_TRUE(given.insert(now[i]).second) << "round " << round;
    }
    for (std::size_t i = 0; i < operations.size(); ++i)
      EXPECT_EQ(names.take_back(now[i]), &operations[i]);
  }
}

TEST(OperationNames, WhatWasNeverGivenIsNobodys) {
  OperationNames names;
  Posted one;
  EXPECT_EQ(names.take_back(nullptr), nullptr);
  EXPECT_EQ(names.take_back(&one), nullptr);
  names.give(one);
  EXPECT_EQ(names.take_back(reinterpret_cast<void*>(std::uintptr_t{2})), nullptr);
}

}  // namespace
}  // namespace weft::providers
