// Grants under names, and the lookups that wait for them.
#include "lease/directory.hpp"

#include <gtest/gtest.h>

namespace weft::core::test {
namespace {

TEST(Directory, LookupsBeforeAndAfterPublishing) {
  Directory directory;
  const Blob bytes(3);
  EXPECT_FALSE(directory.ask("name", {1, 10}).value());
  EXPECT_FALSE(directory.ask("name", {2, 20}).value());
  EXPECT_FALSE(directory.ask("other", {1, 11}).value());
  const auto askers = directory.publish("name", bytes, 5);
  ASSERT_EQ(askers.size(), 2U);
  EXPECT_EQ(askers[1].request, 20U);
  EXPECT_EQ(directory.ask("name", {3, 30}).value(), bytes);
  EXPECT_TRUE(directory.publish("name", Blob(4), 6).empty());
  EXPECT_EQ(directory.ask("name", {3, 31}).value()->size(), 4U) << "the newer one";
  directory.withdraw(6);
  EXPECT_FALSE(directory.ask("name", {3, 32}).value()) << "revoked, so no longer published";
}

TEST(Directory, WithdrawsAllNamesOfAGrantAndNoOthers) {
  Directory directory;
  const Blob first(1), second(2);
  for (const char* name : {"a", "b", "c", "a"}) directory.publish(name, first, 5);
  directory.publish("b", second, 6);
  directory.publish("d", second, 6);
  directory.withdraw(5);
  EXPECT_FALSE(directory.ask("a", {1, 10}).value());
  EXPECT_FALSE(directory.ask("c", {1, 11}).value());
  EXPECT_EQ(directory.ask("b", {1, 12}).value(), second) << "it is another grant's since";
  EXPECT_EQ(directory.ask("d", {1, 13}).value(), second);
  directory.withdraw(5);
  directory.withdraw(6);
  EXPECT_FALSE(directory.ask("b", {1, 14}).value());
  EXPECT_FALSE(directory.ask("d", {1, 15}).value());
}

TEST(Directory, ForgetsAskersWhoGaveUpOrWent) {
  Directory directory;
  directory.ask("name", {1, 10}).value();
  directory.ask("name", {2, 10}).value();
  directory.ask("name", {3, 10}).value();
  directory.forget({1, 10});
  directory.link_down(2, Error(Code::peer_down, "gone"));
  const auto askers = directory.publish("name", Blob(1), 5);
  ASSERT_EQ(askers.size(), 1U);
  EXPECT_EQ(askers[0].link, 3U);
}

TEST(Directory, BoundsTheLookupsOfOnePeer) {
  Directory directory;
  Result<std::optional<Blob>> answer;
  std::uint64_t request = 0;
  while (request < 5000 &&
         (answer = directory.ask("n" + std::to_string(request % 50), {1, request})))
    ++request;
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::queue_full);
  EXPECT_TRUE(directory.ask("n0", {2, 1})) << "another peer's count is its own";
}

TEST(Directory, LookupsOfOursEndWithTheirLink) {
  Directory directory;
  const auto mine = std::make_shared<LookupState>(), other = std::make_shared<LookupState>();
  mine->link = 1;
  other->link = 2;
  directory.add_lookup(10, mine);
  directory.add_lookup(11, other);
  directory.link_down(1, Error(Code::peer_down, "gone"));
  EXPECT_TRUE(mine->done());
  EXPECT_EQ(mine->error()->code(), Code::peer_down);
  EXPECT_FALSE(other->done());
  EXPECT_EQ(directory.take_lookup(10), nullptr);
  EXPECT_EQ(directory.take_lookup(11), other);
  EXPECT_EQ(directory.take_lookup(11), nullptr);
}

}  // namespace
}  // namespace weft::core::test
