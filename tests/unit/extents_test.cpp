// Memory in parts that NICs take, and keys that grants share.
#include <gmock/gmock.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "base/use_count.hpp"
#include "lease/key_replacements.hpp"
#include "memory/cover.hpp"
#include "memory/shared_keys.hpp"
#include "parts.hpp"

namespace weft::core::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

TEST(Extents, CutASegmentInEqualParts) {
  const Extents extents(10 * mib + 1, 4 * mib);
  EXPECT_EQ(extents.bytes(), 4 * mib);
  EXPECT_EQ(extents.count(), 3U);
  EXPECT_EQ(extents.of(4 * mib - 1), 0U);
  EXPECT_EQ(extents.of(4 * mib), 1U);
  EXPECT_EQ(extents.range(1).offset, 4 * mib);
  EXPECT_EQ(extents.range(1).length, 4 * mib);
  EXPECT_EQ(extents.range(2).length, 2 * mib + 1);
}

TEST(Extents, AreOneWhereNobodyLimitsThem) {
  const Extents extents(10 * mib);
  EXPECT_EQ(extents.count(), 1U);
  EXPECT_EQ(extents.range(0).length, 10 * mib);
  EXPECT_EQ(Extents(4 * mib, 4 * mib).count(), 1U);
}

TEST(Extents, FollowTheNicsLimitAndThePages) {
  EXPECT_EQ(extent_bytes_for(0, 4096), no_seams);
  EXPECT_EQ(extent_bytes_for(1 << 20, 4096), std::uint64_t{4} << 30);
  EXPECT_EQ(extent_bytes_for(1 << 20, 2 << 20), std::uint64_t{2} << 40);
  EXPECT_EQ(extent_bytes_for(1000, 4096), 2 * mib) << "a power of two";
  EXPECT_EQ(extent_bytes_for(~std::uint64_t{0}, 4096), no_seams);
}

TEST(Extents, AreMadeSmallerDownToABound) {
  EXPECT_EQ(smaller_extent(100 * mib, no_seams), 64 * mib);
  EXPECT_EQ(smaller_extent(100 * mib, 64 * mib), 32 * mib);
  EXPECT_EQ(smaller_extent(100 * mib, 16 * mib), 0U);
  EXPECT_EQ(smaller_extent(mib, no_seams), 0U) << "it is one already";
}

/// NICs with room for so many extents each.
struct Nics {
  explicit Nics(std::vector<std::size_t> room) : left(std::move(room)), has(left.size()) {}
  static std::vector<std::size_t> up_to(std::size_t count) {
    std::vector<std::size_t> all(count);
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }
  Result<void> cover(std::size_t extents) {
    return core::cover(
        up_to(extents), up_to(left.size()),
        [&](std::size_t rail, std::size_t each) { return has[rail].contains(each); },
        [&](std::size_t rail, std::size_t each) {
          return refused.contains({rail, each});
        },
        [&](std::size_t rail, std::size_t each) -> Result<void> {
          ++asked;
          if (broken) return fail(Code::fabric_failed, "it is broken");
          if (left[rail] == 0) {
            refused.insert({rail, each});
            return fail(Error(Code::out_of_memory, "it is full").with_fabric_code(ENOMEM));
          }
          --left[rail];
          has[rail].insert(each);
          return {};
        });
  }
  std::vector<std::size_t> left;
  std::vector<std::set<std::size_t>> has;
  std::set<std::pair<std::size_t, std::size_t>> refused;
  std::size_t asked = 0;
  bool broken = false;
};

TEST(Cover, AllNicsTakeAllWhereTheyCan) {
  Nics nics({100, 100});
  EXPECT_TRUE(nics.cover(10));
  EXPECT_EQ(nics.has[0].size(), 10U);
  EXPECT_EQ(nics.has[1].size(), 10U);
  EXPECT_TRUE(nics.cover(10));
  EXPECT_EQ(nics.asked, 20U) << "what is registered is not asked for";
}

TEST(Cover, NicsShareWhatIsTooMuchForOne) {
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    const std::size_t nics = 1 + random() % 8, extents = 1 + random() % 100;
    // Together they have room for all.
    const std::size_t each = (extents + nics - 1) / nics;
    Nics all(std::vector<std::size_t>(nics, each));
    ASSERT_TRUE(all.cover(extents)) << nics << " NICs, " << extents << " extents";
    EXPECT_LE(all.asked, nics * (each + 1)) << "a NIC that is full is not asked again";
  }
}

TEST(Cover, NicsThatAreFullAreAskedOnceMoreForWhatNoOtherHas) {
  Nics nics({1, 0});
  const auto covered = nics.cover(2);
  ASSERT_FALSE(covered);
  EXPECT_EQ(covered.error().message(), "it is full");
  nics.left[1] = 1;  // something else has gone
  EXPECT_TRUE(nics.cover(2));
  const std::size_t asked = nics.asked;
  EXPECT_TRUE(nics.cover(2));
  EXPECT_EQ(nics.asked, asked) << "all have a NIC, and those that were refused are not tried";
}

TEST(Cover, AnotherReasonThanRoomIsAnError) {
  Nics nics({1, 1});
  nics.broken = true;
  const auto covered = nics.cover(3);
  ASSERT_FALSE(covered);
  EXPECT_EQ(covered.error().message(), "it is broken");
  EXPECT_EQ(nics.asked, 1U);
}

/// Registrations that count themselves.
struct Registered final : providers::Registration {
  Registered(std::uint64_t number, int& open) : number(number), open(open) { ++open; }
  ~Registered() override { --open; }
  void* descriptor() const noexcept override { return nullptr; }
  std::uint64_t key() const noexcept override { return number; }
  bool close() override { return closes; }
  const std::uint64_t number;
  int& open;
  bool closes = true;
};

class SharedKeysTest : public testing::Test {
 protected:
  using KeyPtr = std::shared_ptr<ExtentKey>;
  KeyPtr key(std::uint64_t number, std::uint32_t rail = 0) {
    return std::make_shared<ExtentKey>(rail, Range{0, 16 * mib}, 0, ExtentKey::Use::shared,
                                       std::make_unique<Registered>(number, open));
  }
  int open = 0;
  SharedKeys keys{64 * mib, no_seams};
  static constexpr auto access = providers::Access::remote_write;
};

TEST_F(SharedKeysTest, AreFoundByRightsRailAndExtent) {
  const KeyPtr one = key(1), other = key(2, 3);
  keys.add(access, 0, one);
  keys.add(access, 7, other);
  EXPECT_EQ(keys.find(access, 0, 0), one);
  EXPECT_EQ(keys.find(access, 3, 7), other);
  EXPECT_EQ(keys.find(access, 3, 0), nullptr);
  EXPECT_EQ(keys.find(providers::Access::remote_read, 0, 0), nullptr);
  keys.forget(*one);
  EXPECT_EQ(keys.find(access, 0, 0), nullptr);
  keys.close();
  EXPECT_EQ(open, 1) << "one is forgotten, and its grants'";
  EXPECT_TRUE(other->closed());
}

TEST_F(SharedKeysTest, ExtentsGetSmallerWhileNoGrantHasOne) {
  EXPECT_EQ(keys.extents(access).count(), 1U);
  keys.add(access, 0, key(1));
  keys.refuse(access, 1, 0);
  EXPECT_TRUE(keys.shrink(access));
  EXPECT_EQ(keys.extents(access).bytes(), 32 * mib);
  EXPECT_EQ(open, 0) << "larger ones went";
  EXPECT_FALSE(keys.refused(access, 1, 0)) << "a smaller one was not refused";
  EXPECT_EQ(keys.extents(providers::Access::remote_read).count(), 1U) << "other rights have theirs";
  const KeyPtr used = key(2);
  keys.add(access, 0, used);
  EXPECT_FALSE(keys.shrink(access));
  EXPECT_EQ(keys.find(access, 0, 0), used);
}

class KeyReplacementsTest : public SharedKeysTest {
 protected:
  KeyReplacements replacements;
  const KeyPtr shared = key(1);
  std::uint64_t replace(std::set<LinkId> holders) {
    std::vector<KeyReplacements::Old> old;
    old.push_back({shared, shared->replace(std::make_unique<Registered>(2, open))});
    return replacements.begin(std::move(old), std::move(holders));
  }
};

TEST_F(KeyReplacementsTest, TheOldKeyIsClosedOnceAllHaveAnswered) {
  const std::uint64_t before = shared->number();
  const std::uint64_t request = replace({1, 2});
  EXPECT_EQ(shared->value(), 2U);
  EXPECT_EQ(replacements.of(*shared), request);
  EXPECT_FALSE(shared->closed_through(before));
  replacements.take(1, KeysDrained{request});
  replacements.take(7, KeysDrained{request});
  replacements.take(2, KeysDrained{request + 1});
  replacements.close_answered();
  EXPECT_EQ(open, 2);
  EXPECT_FALSE(replacements.wait(request, Deadline::now()));
  replacements.take(2, KeysDrained{request});
  EXPECT_TRUE(replacements.wait(request, Deadline::now()));
  EXPECT_FALSE(shared->closed_through(before)) << "it is closed by threads that may wait";
  replacements.close_answered();
  EXPECT_TRUE(shared->closed_through(before));
  EXPECT_FALSE(shared->closed_through(shared->number()));
  EXPECT_EQ(open, 1);
  EXPECT_EQ(replacements.of(*shared), 0U);
}

TEST_F(KeyReplacementsTest, ThoseThatAreGoneAreNotWaitedFor) {
  const std::uint64_t request = replace({1});
  replacements.link_down(1);
  EXPECT_TRUE(replacements.wait(request, Deadline::now()));
  EXPECT_TRUE(replacements.close(request));
  EXPECT_TRUE(replacements.close(request)) << "once more is once too often, and nothing else";
}

TEST_F(KeyReplacementsTest, AKeyThatCantBeClosedStaysUntilItCan) {
  auto stuck = std::make_unique<Registered>(2, open);
  const auto key = std::make_shared<ExtentKey>(0, Range{0, 1}, 0, ExtentKey::Use::shared,
                                               std::make_unique<Registered>(1, open));
  ExtentKey::Replaced old = key->replace(std::move(stuck));
  auto& registered = static_cast<Registered&>(*old.registration);
  registered.closes = false;
  std::vector<KeyReplacements::Old> all;
  all.push_back({key, std::move(old)});
  const std::uint64_t request = replacements.begin(std::move(all), {});
  EXPECT_FALSE(replacements.close(request));
  EXPECT_FALSE(key->closed_through(0));
  registered.closes = true;
  EXPECT_TRUE(replacements.close(request));
  EXPECT_TRUE(key->closed_through(0));
}

TEST(ExtentKeyTest, OneThatIsTakenSaysWhyThereIsNone) {
  int open = 0;
  ExtentKey key(0, {0, 1}, 0, ExtentKey::Use::shared, std::make_unique<Registered>(5, open));
  EXPECT_FALSE(key.why_lost());
  auto old = key.take("no room");
  EXPECT_EQ(key.why_lost(), "no room");
  EXPECT_EQ(key.value(), 5U);
  EXPECT_EQ(open, 1);
  EXPECT_TRUE(key.closed());
}

TEST(UseErasTest, TellWhenThoseThatWereThereHaveLeft) {
  UseEras eras;
  Entered first = eras.enter();
  int left = 0;
  eras.when_left([&] { ++left; });
  Entered second = eras.enter();
  EXPECT_TRUE(second);
  EXPECT_EQ(left, 0);
  first.leave();
  EXPECT_EQ(left, 1) << "though another has come meanwhile";
  EXPECT_FALSE(eras.idle());
  eras.when_left([&] { ++left; });
  second.leave();
  EXPECT_EQ(left, 2);
  EXPECT_TRUE(eras.idle());
  eras.when_left([&] { ++left; });
  EXPECT_EQ(left, 3) << "at once";
}

TEST(UseErasTest, AreIdleWhenAllErasAre) {
  UseEras eras;
  Entered first = eras.enter();
  eras.when_left([] {});
  Entered second = eras.enter();
  eras.close();
  EXPECT_FALSE(eras.enter());
  bool idle = false;
  eras.when_idle([&] { idle = true; });
  second.leave();
  EXPECT_FALSE(idle);
  EXPECT_FALSE(eras.wait_idle(Deadline::now()));
  first.leave();
  EXPECT_TRUE(idle);
  EXPECT_TRUE(eras.wait_idle(Deadline::now()));
}

TEST(UseErasTest, ManyThreadsComeAndGoMeanwhile) {
  UseEras eras;
  std::atomic<std::uint64_t> written{0};
  std::atomic<bool> wrong{false}, over{false};
  std::atomic<std::uint64_t> oldest_open{0};
  std::vector<std::jthread> users;
  for (int i = 0; i < 3; ++i)
    users.emplace_back([&] {
      while (!over) {
        const Entered use = eras.enter();
        const std::uint64_t seen = written;
        // What its era was told may be gone is not what it has seen.
        if (seen < oldest_open) wrong = true;
      }
    });
  for (std::uint64_t round = 1; round <= 2000; ++round) {
    written = round;
    std::atomic<bool> left{false};
    eras.when_left([&] { left = true; });
    while (!left) std::this_thread::yield();
    oldest_open = round;
  }
  over = true;
  users.clear();
  EXPECT_FALSE(wrong);
  EXPECT_TRUE(eras.idle());
}

}  // namespace
}  // namespace weft::core::test
