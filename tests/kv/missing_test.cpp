#include <gtest/gtest.h>

#include <weft/kv.hpp>

namespace weft::kv {
namespace {

BlockHash hash_of(int number) {
  BlockHash hash{};
  hash[0] = static_cast<std::byte>(number);
  return hash;
}

std::vector<BlockHash> hashes(std::initializer_list<int> numbers) {
  std::vector<BlockHash> list;
  for (const int number : numbers) list.push_back(hash_of(number));
  return list;
}

constexpr std::uint64_t all_tokens = 90;  // five blocks of 16 and a part of one

TokenRange missing_in(const Group& group, std::initializer_list<int> held) {
  return missing(group, hashes({1, 2, 3, 4, 5}), hashes(held), 16, all_tokens).value();
}

void expect_range(TokenRange range, std::uint64_t first, std::uint64_t end) {
  EXPECT_EQ(range.first, first);
  EXPECT_EQ(range.first + range.count, end);
}

TEST(KvMissing, ThePrefixStays) {
  const Group group = {.tokens_per_block = 16};
  expect_range(missing_in(group, {}), 0, all_tokens);
  expect_range(missing_in(group, {2, 1}), 32, all_tokens);
  expect_range(missing_in(group, {1, 2, 3, 4, 5}), 80, all_tokens);
  expect_range(missing_in(group, {2, 3, 9}), 0, all_tokens);  // without the first it is no prefix
}

TEST(KvMissing, AWindowNeedsNoPrefix) {
  Group group = {.tokens_per_block = 16};
  group.window = 40;
  expect_range(missing_in(group, {}), 50, all_tokens);
  expect_range(missing_in(group, {1, 2, 3}), 50, all_tokens);
  expect_range(missing_in(group, {4}), 64, all_tokens);
  expect_range(missing_in(group, {4, 5}), 80, all_tokens);
  group.window = 100;
  expect_range(missing_in(group, {1}), 16, all_tokens);
}

TEST(KvMissing, AStateIsOfTheLastToken) {
  const Group group = {};
  EXPECT_EQ(missing_in(group, {1, 2, 3, 4, 5}).count, all_tokens);
  const auto offered = hashes({1, 2});
  EXPECT_EQ(missing(group, offered, hashes({2}), 16, 32)->count, 0u);
  EXPECT_EQ(missing(group, offered, hashes({1}), 16, 32)->count, 32u);
}

TEST(KvMissing, WrongNumbersAreRefused) {
  const Group group = {.tokens_per_block = 16};
  EXPECT_FALSE(missing(group, hashes({1, 2}), {}, 16, 31));
  EXPECT_FALSE(missing(group, {}, {}, 0, 31));
}

}  // namespace
}  // namespace weft::kv
