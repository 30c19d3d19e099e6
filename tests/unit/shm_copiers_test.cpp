// Who copies at a time by an shm endpoint.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "providers/shm/copiers.hpp"
#include "shm_pair.hpp"

namespace weft::providers::shm {
namespace {

TEST(ShmCopiers, AreTakenByAsManyAsThereAreAndNoMore) {
  Copiers copiers;
  std::vector<std::unique_ptr<Copiers::Turn>> turns;
  std::vector<bool> taken(copier_count, false);
  for (std::size_t i = 0; i < copier_count; ++i) {
    turns.emplace_back(new Copiers::Turn(copiers.take()));
    ASSERT_TRUE(*turns.back());
    EXPECT_FALSE(taken[turns.back()->number()]) << "twice";
    taken[turns.back()->number()] = true;
  }
  EXPECT_FALSE(copiers.take());
  const std::size_t free = turns[3]->number();
  turns[3].reset();
  const Copiers::Turn again = copiers.take();
  ASSERT_TRUE(again);
  EXPECT_EQ(again.number(), free);
}

TEST(ShmCopiers, AThreadFindsWhatItHadAtHand) {
  Copiers copiers;
  const auto number = [&] { return copiers.take().number(); };
  const std::size_t first = number();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(number(), first);
}

TEST(ShmCopiers, AreVisitedOnceEachAsSoonAsTheyAreFree) {
  Copiers copiers;
  std::vector<std::size_t> visited;
  const auto note = [&](const Copiers::Turn& turn) {
    visited.push_back(turn.number());
    EXPECT_TRUE((*turn).taken) << "nobody else may take it meanwhile";
  };
  Copiers::Set left;
  left.set();
  std::size_t last = 0;
  {
    const Copiers::Turn busy = copiers.take();
    last = busy.number();
    copiers.visit(left, note);
    EXPECT_EQ(visited.size(), copier_count - 1);
    EXPECT_EQ(std::count(visited.begin(), visited.end(), last), 0);
    visited.clear();
    copiers.visit(left, note);
    EXPECT_TRUE(visited.empty()) << "the others were visited";
    EXPECT_TRUE(left.any());
  }
  copiers.visit(left, note);
  EXPECT_EQ(visited, std::vector<std::size_t>{last});
  EXPECT_TRUE(left.none());
}

TEST_F(ShmPair, WhoWasRemovedIsNotCopiedWithAnyMore) {
  const auto granted =
      b->register_memory({there.data(), there.size()}, Access::remote_read_write).value();
  EXPECT_TRUE(write(0, 100, granted->key()).ok);
  a->remove(to_b);
  Operation operation;
  const Post post = a->write(operation, {here.data(), 100, nullptr}, {to_b, 0, granted->key()});
  EXPECT_EQ(post.status, PostStatus::failed);
  EXPECT_EQ(post.fabric_code, EHOSTUNREACH);
  to_b = a->insert(b->address()).value();
  EXPECT_TRUE(write(0, 100, granted->key()).ok);
}

}  // namespace
}  // namespace weft::providers::shm
